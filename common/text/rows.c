/* SPDX-License-Identifier: MIT */
#include "common/text/rows.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "common/units.h"
#include "common/util.h"
#include "common/word.h"

/* Arbitrary: far above any table, and memory for it. */
enum { FILE_MOST = 256 << 20 };
/* Fields are cut in messages. */
#define CUT(f) (int)MIN((f)->n, 40), (f)->text

static struct rows_field trimmed(const char *from, const char *to)
{
	while (from < to && isspace((unsigned char)*from))
		from++;
	while (to > from && isspace((unsigned char)to[-1]))
		to--;
	return (struct rows_field){ from, (size_t)(to - from) };
}

/* Where the quoted text that begins at `p` ends: its second quote, behind which
 * only blanks may stand before the delimiter. NULL: it is no quoted text. */
static const char *closing(const char *p, const char *end, char delimiter)
{
	const char *quote = p, *next;

	do {
		quote = memchr(quote + 1, '"', (size_t)(end - quote - 1));
	} while (quote && quote + 1 < end && quote[1] == '"' && quote++);
	if (!quote)
		return NULL;
	next = quote + 1;
	while (next < end && *next != delimiter &&
	       isspace((unsigned char)*next))
		next++;
	return next == end || *next == delimiter ? quote : NULL;
}

int rows_split_by(const char *line, const char *end, char delimiter,
		  struct rows_field *ret)
{
	bool blanks = delimiter == ' ';
	int n = 0;

	for (const char *p = line; n < ROWS_COLUMNS_MAX; p++) {
		const char *stop, *from = p, *quote = NULL;

		while (from < end && isspace((unsigned char)*from) &&
		       (blanks || *from != delimiter))
			from++;
		if (blanks && from == end && n)
			break; /* blanks at the end begin no field */
		if (from < end && *from == '"')
			quote = closing(from, end, delimiter);
		p = quote ? quote + 1 : from;
		stop = p < end ? memchr(p, delimiter, (size_t)(end - p)) : NULL;
		ret[n++] = quote ? (struct rows_field){ from + 1,
							(size_t)(quote - from -
								 1) }
				 : trimmed(from, stop ? stop : end);
		if (!stop)
			break;
		p = stop;
	}
	return n;
}

int rows_split(const char *line, const char *end, struct rows_field *ret)
{
	return rows_split_by(line, end, ',', ret);
}

const char *rows_begin(const char *at, const char *end)
{
	static const char mark[] = { '\xef', '\xbb', '\xbf' };

	return end - at >= (ptrdiff_t)sizeof(mark) &&
			       !memcmp(at, mark, sizeof(mark))
		       ? at + sizeof(mark)
		       : at;
}

bool rows_is(const struct rows_field *f, const char *word)
{
	return f->n == strlen(word) && !strncasecmp(f->text, word, f->n);
}

bool rows_u64(const struct rows_field *f, uint64_t *ret)
{
	uint64_t v = 0;

	for (size_t i = 0; i < f->n; i++) {
		if (!isdigit((unsigned char)f->text[i]) ||
		    __builtin_mul_overflow(v, 10, &v) ||
		    __builtin_add_overflow(v, f->text[i] - '0', &v))
			return false;
	}
	*ret = v;
	return f->n > 0;
}

bool rows_double(const struct rows_field *f, double *ret)
{
	char text[64];

	if (f->n >= sizeof(text) || memchr(f->text, 0, f->n))
		return false;
	memcpy(text, f->text, f->n);
	text[f->n] = 0;
	return units_parse_double(text, ret) == 0;
}

/* Step to the next line; returns its end, or NULL behind the last one. */
static const char *next_line(struct rows *c)
{
	const char *eol;

	if (!c->line)
		c->at = rows_begin(c->at, c->end);
	if (c->at >= c->end)
		return NULL;
	eol = memchr(c->at, '\n', (size_t)(c->end - c->at));
	eol = eol ? eol : c->end;
	c->start = c->at;
	c->line++;
	c->at = eol < c->end ? eol + 1 : eol;
	return eol;
}

bool rows_next(struct rows *c)
{
	const char *eol;

	while ((eol = next_line(c))) {
		c->n = rows_split_by(c->start, eol,
				     c->separator ? c->separator : ',', c->f);
		if (!(c->n == 1 && !c->f[0].n) && c->start[0] != '#')
			return true;
	}
	return false;
}

bool rows_next_words(struct rows *c)
{
	const char *eol;

	while ((eol = next_line(c))) {
		const char *p = c->start;

		for (c->n = 0; c->n < ROWS_COLUMNS_MAX; c->n++) {
			while (p < eol && strchr(" \t\r", *p) && *p)
				p++;
			c->f[c->n].text = p;
			while (p < eol && (!*p || !strchr(" \t\r", *p)))
				p++;
			c->f[c->n].n = (size_t)(p - c->f[c->n].text);
			if (!c->f[c->n].n)
				break;
		}
		if (c->n && c->f[0].text[0] != '#')
			return true;
	}
	return false;
}

void rows_rewind(struct rows *c)
{
	c->at = c->start;
	c->line--;
}

int rows_error(const struct rows *c, const struct rows_field *f,
	       const char *fmt, ...)
{
	_cleanup_free_ char *text = NULL;
	va_list ap;
	int n;

	va_start(ap, fmt);
	n = vasprintf(&text, fmt, ap);
	va_end(ap);
	if (n < 0)
		text = NULL;
	return err_set(c->err, -EINVAL, "%s:%" PRIu64 ":%zu: %s", c->name,
		       c->line, f ? (size_t)(f->text - c->start) + 1 : 1,
		       text ? text : "invalid");
}

int rows_header(struct rows *c, const char *const *words, int n, int required,
		int *ret_columns)
{
	for (int w = 0; w < n; w++) {
		ret_columns[w] = -1;
		for (int i = 0; i < c->n && ret_columns[w] < 0; i++)
			if (rows_is(&c->f[i], words[w]))
				ret_columns[w] = i;
		if (w < required && ret_columns[w] < 0)
			return rows_error(c, NULL,
					  "no column '%s' in the header",
					  words[w]);
	}
	return 0;
}

int rows_load(struct rows *c, const char *path, char **ret_bytes,
	      struct err *err)
{
	size_t n;
	int r = util_read_file(path, FILE_MOST, ret_bytes, &n);

	if (r < 0)
		return err_set(err, r, "%s: %s", path, strerror(-r));
	*c = (struct rows){ .name = path,
			    .at = *ret_bytes,
			    .end = *ret_bytes + n,
			    .err = err };
	return 0;
}

int rows_begin_table(struct rows *c, const char *const *words, int n,
		     int required, int *ret_columns)
{
	if (!rows_next(c))
		return err_set(c->err, -EINVAL, "%s:1:1: no rows", c->name);
	c->width = c->n;
	return rows_header(c, words, n, required, ret_columns);
}

int rows_check_width(const struct rows *c)
{
	return c->n == c->width
		       ? 0
		       : rows_error(c, NULL, "%d cells where the header has %d",
				    c->n, c->width);
}

static int unknown_column(const struct rows *c, const struct rows_field *f,
			  const char *const *words, int n)
{
	struct word_list list = WORD_LIST(f->text, (size_t)MIN(f->n, 40));
	struct err err = { 0 };

	for (int w = 0; w < n; w++)
		word_list_add(&list, words[w]);
	word_unknown(&list, "column", &err);
	return rows_error(c, f, "%s", err.text);
}

int rows_closed(const struct rows *c, const char *const *words, int n)
{
	for (int i = 0; i < c->n; i++) {
		const struct rows_field *f = &c->f[i];
		int w = 0;

		while (w < n && !rows_is(f, words[w]))
			w++;
		if (w == n)
			return unknown_column(c, f, words, n);
		for (int k = 0; k < i; k++)
			if (rows_is(&c->f[k], words[w]))
				return rows_error(c, f,
						  "column '%s' a second time",
						  words[w]);
	}
	return 0;
}

/* The field, or NULL: the row has no such column. */
static const struct rows_field *field(const struct rows *c, int at)
{
	return at >= 0 && at < c->n ? &c->f[at] : NULL;
}

/* Of a field that `field` does not find: it may have no column. */
static int missing(const struct rows *c, int at, const char *what)
{
	return at < 0 ? 0
		      : rows_error(c, NULL,
				   "%s: missing, the row has %d fields and the "
				   "header has it as field %d",
				   what, c->n, at + 1);
}

int rows_number(const struct rows *c, int at, const char *what, double min,
		double max, double *ret)
{
	const struct rows_field *f = field(c, at);

	*ret = 0;
	if (!f)
		return missing(c, at, what);
	if (!rows_double(f, ret))
		return rows_error(c, f, "%s: '%.*s' is not a number", what,
				  CUT(f));
	if (*ret < min || *ret > max)
		return rows_error(c, f, "%s: %.*s is not from %g to %g", what,
				  CUT(f), min, max);
	return 0;
}

int rows_count(const struct rows *c, int at, const char *what, uint64_t max,
	       uint64_t *ret)
{
	const struct rows_field *f = field(c, at);

	*ret = 0;
	if (!f)
		return missing(c, at, what);
	if (!rows_u64(f, ret) || *ret > max)
		return rows_error(c, f,
				  "%s: '%.*s' is not a whole number up to "
				  "%" PRIu64,
				  what, CUT(f), max);
	return 0;
}

int rows_text(const struct rows *c, int at, char **ret)
{
	const struct rows_field *f = field(c, at);

	*ret = NULL;
	if (!f || !f->n)
		return 0;
	*ret = strndup(f->text, f->n);
	return *ret ? 0 : -ENOMEM;
}

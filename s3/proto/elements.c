/* SPDX-License-Identifier: MIT */
/*
 * Text is decoded in place: what is decoded is never longer than what it is
 * decoded from.
 */
#include "s3/proto/elements.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/util.h"

struct reader {
	char *at, *end;
	char *text, *out; /* of the element that is open; where it goes on */
	char path[ELEMENTS_PATH];
	size_t starts[ELEMENTS_DEPTH]; /* of the names in path */
	size_t depth;
	bool has_elements, ended; /* the innermost; the document */
	elements_fn *fn;
	void *ctx;
};

static bool begins(const struct reader *r, const char *word)
{
	size_t n = strlen(word);

	return (size_t)(r->end - r->at) >= n && !memcmp(r->at, word, n);
}

/* Move behind the next `word`; its begin, or NULL: there is none. */
static char *pass(struct reader *r, const char *word)
{
	size_t n = strlen(word);
	char *found = memmem(r->at, (size_t)(r->end - r->at), word, n);

	if (found)
		r->at = found + n;
	return found;
}

static void put_bytes(struct reader *r, const char *bytes, size_t n)
{
	memmove(r->out, bytes, n);
	r->out += n;
}

/* --- characters --------------------------------------------------------- */

/* U+0001 to U+10FFFF, but surrogates, in UTF-8. */
static bool put_character(struct reader *r, unsigned long c)
{
	char u[4];
	size_t n;

	if (!c || c > 0x10ffff || (c >= 0xd800 && c < 0xe000))
		return false;
	n = c < 0x80 ? 1 : c < 0x800 ? 2 : c < 0x10000 ? 3 : 4;
	for (size_t i = n; i-- > 1; c >>= 6)
		u[i] = (char)(0x80 | (c & 0x3f));
	u[0] = (char)(n == 1 ? c : (0xf00 >> n & 0xf0) | c);
	put_bytes(r, u, n);
	return true;
}

static bool read_reference(struct reader *r)
{
	static const struct {
		const char *name, *value;
	} known[] = { { "lt", "<" },
		      { "gt", ">" },
		      { "amp", "&" },
		      { "quot", "\"" },
		      { "apos", "'" } };
	char *name = r->at + 1, *end = pass(r, ";"), *last;
	unsigned long c;

	if (!end)
		return false;
	*end = 0;
	for (size_t i = 0; i < ARRAY_SIZE(known); i++) {
		if (strcmp(name, known[i].name) != 0)
			continue;
		put_bytes(r, known[i].value, 1);
		return true;
	}
	if (*name++ != '#')
		return false;
	errno = 0;
	c = *name == 'x' ? strtoul(name + 1, &last, 16)
			 : strtoul(name, &last, 10);
	return last == end && !errno && put_character(r, c);
}

/* --- elements ----------------------------------------------------------- */

static bool open_element(struct reader *r, const char *name, size_t n)
{
	size_t at = strlen(r->path);

	if (r->ended || r->depth == ELEMENTS_DEPTH || !n ||
	    at + n + 2 > sizeof(r->path))
		return false;
	r->starts[r->depth++] = at;
	if (at)
		r->path[at++] = '/';
	memcpy(r->path + at, name, n);
	r->path[at + n] = 0;
	r->text = r->out = r->at;
	r->has_elements = false;
	return true;
}

static bool close_element(struct reader *r, const char *name, size_t n)
{
	const char *own;
	size_t start;

	if (!r->depth)
		return false;
	start = r->starts[--r->depth];
	own = r->path + start + (start > 0);
	if (strlen(own) != n || memcmp(own, name, n) != 0)
		return false;
	*r->out = 0; /* before the end of the tag that closes it */
	if (!r->fn(r->ctx, r->path, r->has_elements ? "" : r->text))
		return false;
	r->path[start] = 0;
	r->has_elements = true;
	r->ended = !r->depth;
	r->text = r->out = r->at;
	return true;
}

/* The end of a tag, whose attributes may contain ">". */
static char *end_of_tag(struct reader *r)
{
	char quote = 0;

	for (; r->at < r->end; r->at++) {
		if (quote)
			quote = *r->at == quote ? 0 : quote;
		else if (*r->at == '"' || *r->at == '\'')
			quote = *r->at;
		else if (*r->at == '>')
			return r->at++;
	}
	return NULL;
}

static bool read_tag(struct reader *r)
{
	char *name = r->at + 1, *end = end_of_tag(r);
	bool closes, empty;
	size_t n;

	if (!end)
		return false;
	closes = *name == '/';
	name += closes;
	n = strcspn(name, " \t\r\n/>");
	if (closes)
		return n && close_element(r, name, n);
	empty = end[-1] == '/' && end > name;
	if (!open_element(r, name, n))
		return false;
	if (!empty)
		return true;
	r->text = r->out = end; /* not what follows the tag */
	return close_element(r, name, n);
}

static bool read_markup(struct reader *r)
{
	char *begin = r->at, *end;

	if (begins(r, "<!--")) {
		r->at += 4;
		return pass(r, "-->");
	}
	if (begins(r, "<?"))
		return pass(r, "?>");
	if (begins(r, "<![CDATA[")) {
		end = pass(r, "]]>");
		if (end && r->depth)
			put_bytes(r, begin + 9, (size_t)(end - begin - 9));
		return end && r->depth;
	}
	return !begins(r, "<!") && read_tag(r);
}

bool elements_read(char *text, size_t n, elements_fn *fn, void *ctx)
{
	struct reader r = { .at = text,
			    .end = text + n,
			    .text = text,
			    .out = text,
			    .fn = fn,
			    .ctx = ctx };

	if (memchr(text, 0, n))
		return false;
	if (begins(&r, "\xef\xbb\xbf"))
		r.at += 3;
	while (r.at < r.end) {
		if (*r.at == '<') {
			if (!read_markup(&r))
				return false;
		} else if (r.depth && *r.at == '&') {
			if (!read_reference(&r))
				return false;
		} else if (r.depth) {
			put_bytes(&r, r.at++, 1);
		} else if (!strchr(" \t\r\n", *r.at++)) {
			return false;
		}
	}
	return r.ended;
}

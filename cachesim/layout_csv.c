/* SPDX-License-Identifier: MIT */
/*
 * Traces of lines with columns. Which column is what is decided at the first
 * line that is no comment:
 *
 *	options		numbers: that line is data, or, if its size begins with
 *			a letter, a header; names: it is the header
 *	no options	it names id and size: a header; three columns: time, id,
 *			size; anything else is an error that says what to write
 *
 * From then on a line is a request, is left out for a reason that is counted,
 * or is an error.
 */
#include <ctype.h>
#include <errno.h>
#include <string.h>
#include <xxhash.h>

#include "common/text/rows.h"
#include "common/util.h"
#include "common/word.h"
#include "cachesim/layout.h"

/* arbitrary: 256 MiB in blocks of 4 KiB; a line of a few bytes may not become
 * any number of requests */
enum { BLOCKS_MOST = 1 << 16 };
/* arbitrary: a key of host and disk, a size of key and value */
enum { SUM_MOST = 4 };

static const char *const units[] = { "s", "ms", "us", "ns", "100ns" };
static const double unit_s[] = { 1, 1e-3, 1e-6, 1e-9, 1e-7 };
static const char *const delimiters[] = { "comma", "space", "tab",
					  "semicolon" };
static const char delimiter_chars[] = { ',', ' ', '\t', ';' };
static const char *const header_words[] = { "auto", "on", "off" };
enum { HEADER_AUTO, HEADER_ON, HEADER_OFF };
static const char *const unsized_words[] = { "error", "skip", "zero" };
enum { UNSIZED_ERROR, UNSIZED_SKIP, UNSIZED_ZERO };

#define CHECK_WORD(which, words)                                            \
	static int check_##which(const void *object, struct err *err)       \
	{                                                                   \
		return MIN(WORD_FIND(words, "word", *(char *const *)object, \
				     err),                                  \
			   0);                                              \
	}
CHECK_WORD(unit, units)
CHECK_WORD(delimiter, delimiters)
CHECK_WORD(header, header_words)
CHECK_WORD(unsized, unsized_words)

#define COLUMN(k, a, h)                                                  \
	{                                                                \
#k, CONF_STRING, offsetof(struct layout_csv_options, k), \
			.arg = a, .help = h                              \
	}
#define CHOICE(k, a, h)                                                  \
	{                                                                \
#k, CONF_STRING, offsetof(struct layout_csv_options, k), \
			.arg = a, .check = check_##k, .help = h          \
	}
const struct conf_field layout_csv_fields[] = {
	COLUMN(time, "COLUMN",
	       "column of the time: a number from 1, or its name in the "
	       "header"),
	COLUMN(key, "COLUMN[+COLUMN]", "columns that name an object"),
	COLUMN(size, "COLUMN[+COLUMN]",
	       "bytes of an object: the sum of these columns"),
	COLUMN(op, "COLUMN", "column of the operation"),
	COLUMN(ops, "NAME,...|all",
	       "operations that are requests; the others are left out"),
	COLUMN(offset, "COLUMN",
	       "column of the first byte of a request, in the file or "
	       "disk that key names; objects are its blocks"),
	{ CONF_KEY(block, CONF_SIZE, struct layout_csv_options), .min = 512,
	  .max = 1ull << 40, .arg = "SIZE",
	  .help = "bytes of a block, with offset" },
	CHOICE(unit, "s|ms|us|ns|100ns", "unit of the time"),
	CHOICE(delimiter, "comma|space|tab|semicolon", "separates columns"),
	CHOICE(header, "auto|on|off", "does the first line name the columns?"),
	CHOICE(unsized, "error|skip|zero",
	       "a request without a size is an error, or is left out; zero: "
	       "so is one whose size (of several columns: the last) is 0"),
	{ 0 },
};

struct columns {
	int at[SUM_MOST]; /* from 0 */
	int n;
};

struct csv {
	const struct layout_csv_options *o;
	struct sim_trace *t;
	struct cache_index index;
	struct rows row;
	char delimiter;
	int header, unsized;
	double unit_s;
	bool settled;
	struct columns time, key, size, op, offset;
};

static bool is_number(const char *s, size_t n)
{
	return n && strspn(s, "0123456789") >= n;
}

static bool begins_with_letter(const struct rows_field *f)
{
	return f->n &&
	       (isalpha((unsigned char)f->text[0]) || f->text[0] == '_');
}

/* --- columns ------------------------------------------------------------- */

/* Any of them a name. */
static bool has_name(const char *spec)
{
	for (; spec && *spec; spec += strcspn(spec, "+") + 1) {
		if (!is_number(spec, strcspn(spec, "+")))
			return true;
		if (!spec[strcspn(spec, "+")])
			break;
	}
	return false;
}

static int column(const struct csv *c, const char *spec, size_t n, int *ret)
{
	char name[256];
	int at = 0;

	snprintf(name, sizeof(name), "%.*s", (int)MIN(n, sizeof(name)), spec);
	if (is_number(spec, n)) {
		at = n < 4 ? atoi(name) : 0;
		if (at < 1 || at > ROWS_COLUMNS_MAX)
			return rows_error(&c->row, NULL,
					  "no column %s: they are 1 to %d",
					  name, ROWS_COLUMNS_MAX);
		*ret = at - 1;
		return 0;
	}
	for (*ret = 0; *ret < c->row.n; ++*ret)
		if (rows_is(&c->row.f[*ret], name))
			return 0;
	return rows_error(&c->row, NULL, "no column '%s' in the header", name);
}

/* "3+4" -> { 2, 3 }; NULL: none. Appends "what=3+4" to the columns read. */
static int resolve(struct csv *c, const char *what, const char *spec,
		   struct columns *ret)
{
	char *text = c->t->read.columns;
	int r = 0;

	for (; r == 0 && spec && *spec; ret->n++) {
		size_t n = strcspn(spec, "+"), used = strlen(text);

		if (ret->n == SUM_MOST)
			return rows_error(&c->row, NULL,
					  "%s: more than %d columns", what,
					  SUM_MOST);
		r = column(c, spec, n, &ret->at[ret->n]);
		spec += n + (spec[n] == '+');
		if (ret->n)
			snprintf(text + used, sizeof(c->t->read.columns) - used,
				 "+%d", ret->at[ret->n] + 1);
		else
			snprintf(text + used, sizeof(c->t->read.columns) - used,
				 "%s%s=%d", used ? "," : "", what,
				 ret->at[ret->n] + 1);
	}
	return r;
}

static int resolve_all(struct csv *c, const char *time, const char *key,
		       const char *size)
{
	int r = resolve(c, "time", time, &c->time);

	if (r == 0)
		r = resolve(c, "key", key, &c->key);
	if (r == 0)
		r = resolve(c, "size", size, &c->size);
	if (r == 0)
		r = resolve(c, "op", c->o->op, &c->op);
	return r == 0 ? resolve(c, "offset", c->o->offset, &c->offset) : r;
}

/* Which of the fields is called so; -1: none. */
static int named(const struct csv *c, const char *name)
{
	for (int i = 0; i < c->row.n; i++)
		if (rows_is(&c->row.f[i], name))
			return i;
	return -1;
}

#define WRITE                                                            \
	"say which is which, as in FILE:time=1,key=2,size=4, or name a " \
	"layout, as in FILE:twitter (--list layout)"

/* Without options: 1 for a header, 0 for data. */
static int by_default(struct csv *c)
{
	int id = named(c, "id"), size = named(c, "size");

	if ((id >= 0 || size >= 0) && c->header != HEADER_OFF) {
		if (id < 0 || size < 0)
			return rows_error(&c->row, NULL,
					  "no column '%s' in the header: say "
					  "which is which, as in FILE:key=NAME,"
					  "size=NAME",
					  id < 0 ? "id" : "size");
		return resolve_all(c, named(c, "time") < 0 ? NULL : "time",
				   "id", "size")
			       ?: 1;
	}
	if (c->row.n > 3)
		return rows_error(&c->row, NULL,
				  "%d columns and no header: " WRITE, c->row.n);
	if (c->row.n < 3)
		return rows_error(&c->row, NULL,
				  "%d columns where 3 are needed (time,id,"
				  "size): " WRITE,
				  c->row.n);
	if (c->header == HEADER_ON || begins_with_letter(&c->row.f[2]))
		return rows_error(&c->row, NULL,
				  "no column 'id' in the header: " WRITE);
	return resolve_all(c, "1", "2", "3");
}

/* With options. */
static int by_options(struct csv *c)
{
	const struct layout_csv_options *o = c->o;
	bool names = has_name(o->time) || has_name(o->key) ||
		     has_name(o->size) || has_name(o->op) ||
		     has_name(o->offset);
	int r;

	if (!o->key || !o->size)
		return rows_error(&c->row, NULL, "%s=COLUMN is missing: " WRITE,
				  o->key ? "size" : "key");
	if (names && c->header == HEADER_OFF)
		return rows_error(&c->row, NULL,
				  "names of columns need a header");
	r = resolve_all(c, o->time, o->key, o->size);
	if (r < 0 || names || c->header != HEADER_AUTO)
		return r < 0 ? r : names || c->header == HEADER_ON;
	return c->size.at[0] < c->row.n &&
	       begins_with_letter(&c->row.f[c->size.at[0]]);
}

/* --- records ------------------------------------------------------------- */

static bool is_request(const struct csv *c)
{
	const struct rows_field *op = &c->row.f[c->op.at[0]];

	for (const char *p = c->o->ops; *p; p += *p == ',') {
		size_t n = strcspn(p, ",");

		if (n == op->n && !strncasecmp(p, op->text, n))
			return true;
		p += n;
	}
	return false;
}

static int missing(const struct csv *c, const char *what, int at)
{
	return rows_error(&c->row, NULL, "%d columns, and %s is column %d",
			  c->row.n, what, at + 1);
}

/* Of another text it would be the number, too: "07" is not "7". */
static bool is_own_number(const struct rows_field *f, uint64_t *ret)
{
	return rows_u64(f, ret) && (f->n == 1 || f->text[0] != '0');
}

/* Numbers stand for themselves, other texts for a hash. */
static int get_key(const struct csv *c, uint64_t *ret)
{
	for (int i = 0; i < c->key.n; i++) {
		const struct rows_field *f = &c->row.f[c->key.at[i]];

		if (c->key.at[i] >= c->row.n)
			return missing(c, "key", c->key.at[i]);
		if (!f->n)
			return rows_error(&c->row, f, "empty id");
		if (f->text[0] == '"')
			return rows_error(&c->row, f,
					  "a quote that does not end");
		if (c->key.n > 1)
			*ret = XXH3_64bits_withSeed(f->text, f->n,
						    i ? *ret : 0);
		else if (!is_own_number(f, ret))
			*ret = XXH3_64bits(f->text, f->n);
	}
	return 0;
}

/* 1: unknown, to be left out. */
static int get_size(const struct csv *c, uint64_t *ret)
{
	uint64_t bytes = 0;

	*ret = 0;
	for (int i = 0; i < c->size.n; i++) {
		const struct rows_field *f = &c->row.f[c->size.at[i]];
		bool there = c->size.at[i] < c->row.n;

		if ((!there || !f->n) && c->unsized)
			return 1;
		if (!there)
			return missing(c, "size", c->size.at[i]);
		if (!rows_u64(f, &bytes) || bytes > SIM_MOST_BYTES - *ret)
			return rows_error(&c->row, f,
					  "'%.*s' is not a size in bytes",
					  (int)MIN(f->n, 40), f->text);
		*ret += bytes;
	}
	return c->unsized == UNSIZED_ZERO && !bytes;
}

/* The blocks of [offset, offset + n) in what `key` names. */
static int add_blocks(struct csv *c, uint64_t key, uint64_t n)
{
	const struct rows_field *f = &c->row.f[c->offset.at[0]];
	uint64_t offset, first, last;
	int r = 0;

	if (c->offset.at[0] >= c->row.n)
		return missing(c, "offset", c->offset.at[0]);
	if (!rows_u64(f, &offset) || offset > INT64_MAX)
		return rows_error(&c->row, f, "'%.*s' is not an offset",
				  (int)MIN(f->n, 40), f->text);
	if (!n) {
		c->t->read.unsized++;
		return 0;
	}
	first = offset / c->o->block;
	last = (offset + n - 1) / c->o->block;
	if (last - first >= BLOCKS_MOST)
		return rows_error(&c->row, f, "more than %d blocks at once",
				  BLOCKS_MOST);
	for (uint64_t i = first; r == 0 && i <= last; i++)
		r = sim_trace_add_key(c->t, &c->index,
				      XXH3_64bits_withSeed(&i, sizeof(i), key),
				      c->o->block);
	return r;
}

static int record(struct csv *c)
{
	uint64_t key = 0, bytes;
	double time;
	int r;

	c->t->read.records++;
	if (c->op.n && c->op.at[0] >= c->row.n)
		return missing(c, "op", c->op.at[0]);
	if (c->op.n && strcmp(c->o->ops, "all") && !is_request(c)) {
		c->t->read.other_ops++;
		return 0;
	}
	r = get_key(c, &key);
	if (r == 0)
		r = get_size(c, &bytes);
	if (r > 0)
		c->t->read.unsized++;
	if (r)
		return MIN(r, 0);
	if (c->time.n && c->time.at[0] < c->row.n &&
	    rows_double(&c->row.f[c->time.at[0]], &time))
		sim_read_time(&c->t->read, time * c->unit_s);
	return c->offset.n ? add_blocks(c, key, bytes)
			   : sim_trace_add_key(c->t, &c->index, key, bytes);
}

static int line(struct csv *c, const char *at, const char *end)
{
	int r = 0;

	c->row.line++;
	if (c->row.line == 1)
		at = rows_begin(at, end);
	c->row.start = at;
	if (at < end && *at == '#') {
		c->t->read.comments++;
		return 0;
	}
	c->row.n = rows_split_by(at, end, c->delimiter, c->row.f);
	if (c->row.n == 1 && !c->row.f[0].n)
		return 0; /* an empty line */
	if (!c->settled) {
		r = c->o->key || c->o->size ? by_options(c) : by_default(c);
		c->settled = true;
		c->t->read.header = r == 1;
	}
	return r ? MIN(r, 0) : record(c);
}

/* --- the whole ----------------------------------------------------------- */

static int settle_csv(struct csv *c, struct err *err)
{
	const struct layout_csv_options *o = c->o;

	c->unit_s = unit_s[WORD_FIND(units, "unit", o->unit, NULL)];
	c->delimiter = delimiter_chars[WORD_FIND(delimiters, "delimiter",
						 o->delimiter, NULL)];
	c->header = WORD_FIND(header_words, "header", o->header, NULL);
	c->unsized = WORD_FIND(unsized_words, "unsized", o->unsized, NULL);
	if (!o->op != !o->ops)
		return err_set(err, -EINVAL,
			       "%s: op=COLUMN and ops=NAME,... need each other",
			       c->row.name);
	if (!o->offset != !o->block)
		return err_set(err, -EINVAL,
			       "%s: offset=COLUMN and block=SIZE need each "
			       "other",
			       c->row.name);
	return 0;
}

int layout_csv_read(struct sim_input *in, const void *options,
		    struct sim_trace *t, struct err *err)
{
	struct csv c = { .o = options,
			 .t = t,
			 .row = { .name = in->name, .err = err } };
	const char *at, *end;
	int r = settle_csv(&c, err);

	if (r < 0)
		return r;
	r = cache_index_init(&c.index, sizeof(uint32_t), 0);
	while (r == 0 && (r = sim_input_line(in, &at, &end)) > 0)
		r = line(&c, at, end);
	cache_index_fini(&c.index);
	return r < 0 ? r : sim_trace_finish(t);
}

static bool is_csv(const char *name)
{
	return util_ends_in(name, ".csv");
}

static const struct layout_csv_options defaults = {
	.unit = (char *)"s",
	.delimiter = (char *)"comma",
	.header = (char *)"auto",
	.unsized = (char *)"error",
};

const struct layout_ops layout_csv = {
	.plugin = { .name = "csv",
		    .summary = "lines of columns: time,id,size, or as the "
			       "options say",
		    PLUGIN_OPTIONS(layout_csv_fields, defaults) },
	.named = is_csv,
	.read = layout_csv_read,
};

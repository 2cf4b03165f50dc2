/* SPDX-License-Identifier: MIT */
/*
 * v7, ustar, pax (path and size), GNU long names and base-256 sizes. Sparse
 * members are refused. A block of zeros, or the end of the file between two
 * members, ends the file.
 */
#include "loader/format/tar.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "common/util.h"

/* Offsets in a header. Source: POSIX pax(1), ustar Interchange Format */
enum {
	NAME = 0,
	NAME_BYTES = 100,
	SIZE = 124,
	SIZE_BYTES = 12,
	SUM = 148,
	SUM_BYTES = 8,
	TYPE = 156,
	MAGIC = 257,
	PREFIX = 345,
	PREFIX_BYTES = 155,
};

/* From the extended headers before a member's header. */
struct extended {
	char *name; /* owned; NULL: use the header's */
	size_t name_n;
	uint64_t size;
	bool has_size;
};

int tar_bad(struct tar_reader *t, const char *what)
{
	return err_set(t->err, -EINVAL, "byte %" PRIu64 ": %s", t->at, what);
}

int tar_failed(struct tar_reader *t, int r)
{
	if (r == -ENODATA)
		return tar_bad(t, "truncated: the file ends inside a member");
	return err_set(t->err, r, "byte %" PRIu64 ": %s", t->at, strerror(-r));
}

int tar_no_memory(struct tar_reader *t)
{
	return err_set(t->err, -ENOMEM, "out of memory");
}

static char *copy(const void *v, size_t n)
{
	char *s = malloc(n + 1);

	if (!s)
		return NULL;
	memcpy(s, v, n);
	s[n] = 0;
	return s;
}

/* --- one header --------------------------------------------------------- */

/* An octal number padded with blanks, or GNU's base 256. */
static int number(const uint8_t *v, size_t n, uint64_t *ret)
{
	size_t i = 0;

	*ret = 0;
	if (v[0] & 0x80) {
		/* 0xff: negative */
		if (v[0] != 0x80)
			return -EINVAL;
		for (i = 1; i < n; i++) {
			if (*ret >> 55)
				return -EINVAL;
			*ret = *ret << 8 | v[i];
		}
		return 0;
	}
	while (i < n && v[i] == ' ')
		i++;
	for (; i < n && v[i] >= '0' && v[i] <= '7'; i++)
		*ret = *ret << 3 | (uint64_t)(v[i] - '0');
	for (; i < n; i++)
		if (v[i] && v[i] != ' ')
			return -EINVAL;
	return 0;
}

static bool sum_is_right(const uint8_t *h)
{
	uint64_t said;
	uint32_t sum = 8 * ' ', old = 8 * ' ';

	if (number(h + SUM, SUM_BYTES, &said) < 0)
		return false;
	for (size_t i = 0; i < TAR_BLOCK; i++) {
		if (i >= SUM && i < SUM + SUM_BYTES)
			continue;
		sum += h[i];
		/* some old writers summed signed characters */
		old += (uint32_t)(int8_t)h[i];
	}
	return said == sum || said == old;
}

static bool is_zero(const uint8_t *h)
{
	for (size_t i = 0; i < TAR_BLOCK; i++)
		if (h[i])
			return false;
	return true;
}

static int header_name(const uint8_t *h, struct tar_member *m)
{
	size_t n = strnlen((const char *)h + NAME, NAME_BYTES), prefix = 0;

	/* "ustar" and a blank is GNU's; its prefix field has another use */
	if (!memcmp(h + MAGIC, "ustar", 6))
		prefix = strnlen((const char *)h + PREFIX, PREFIX_BYTES);
	m->name = malloc(prefix + n + 2);
	if (!m->name)
		return -ENOMEM;
	memcpy(m->name, h + PREFIX, prefix);
	if (prefix)
		m->name[prefix++] = '/';
	memcpy(m->name + prefix, h + NAME, n);
	m->name_n = prefix + n;
	m->name[m->name_n] = 0;
	return 0;
}

/* --- extended headers --------------------------------------------------- */

int tar_decimal(const char *v, size_t n, uint64_t *ret)
{
	*ret = 0;
	if (!n)
		return -EINVAL;
	for (size_t i = 0; i < n; i++) {
		if (!isdigit((unsigned char)v[i]) || *ret > INT64_MAX / 10 - 9)
			return -EINVAL;
		*ret = *ret * 10 + (uint64_t)(v[i] - '0');
	}
	return 0;
}

static bool is_key(const char *key, size_t n, const char *want)
{
	return n == strlen(want) && !memcmp(key, want, n);
}

static int set_name(struct tar_reader *t, struct extended *x, const char *v,
		    size_t n)
{
	if (memchr(v, 0, n))
		return tar_bad(t, "a NUL in a name");
	free(x->name);
	x->name = copy(v, n);
	x->name_n = n;
	return x->name ? 0 : tar_no_memory(t);
}

/* "key=value" of a pax header. */
static int pax_record(struct tar_reader *t, struct extended *x, bool global,
		      const char *v, size_t n)
{
	const char *equals = memchr(v, '=', n);
	size_t key_n = equals ? (size_t)(equals - v) : 0;
	const char *value = equals ? equals + 1 : NULL;
	bool path, size;

	if (!equals)
		return tar_bad(t, "a damaged extended header");
	if (key_n >= 11 && !memcmp(v, "GNU.sparse.", 11))
		return tar_bad(t, "a sparse member: not supported");
	path = is_key(v, key_n, "path");
	size = is_key(v, key_n, "size");
	if (global && (path || size))
		return tar_bad(t, "one path or size for all: not supported");
	n -= key_n + 1;
	if (path)
		return set_name(t, x, value, n);
	if (size && tar_decimal(value, n, &x->size) < 0)
		return tar_bad(t, "a damaged size in an extended header");
	x->has_size |= size;
	return 0;
}

/* Records "LENGTH key=value\n"; LENGTH is that of the whole record. */
static int pax(struct tar_reader *t, struct extended *x, bool global,
	       const char *v, size_t n)
{
	int r = 0;

	while (r == 0 && n && *v) {
		const char *blank = memchr(v, ' ', MIN(n, 20));
		uint64_t length = 0;
		size_t digits = blank ? (size_t)(blank - v) : 0;

		if (!blank || tar_decimal(v, digits, &length) < 0 ||
		    length > n || length < digits + 2 || v[length - 1] != '\n')
			return tar_bad(t, "a damaged extended header");
		r = pax_record(t, x, global, blank + 1,
			       (size_t)length - digits - 2);
		v += length;
		n -= (size_t)length;
	}
	return r;
}

static int extend(struct tar_reader *t, struct extended *x,
		  const struct tar_member *m, char type)
{
	_cleanup_free_ char *v = NULL;
	int r;

	if (type == 'K')
		return 0;
	if (m->size > PEEK_MOST)
		return tar_bad(t, "an extended header of more than 64 KiB");
	v = malloc(m->size + 1);
	if (!v)
		return tar_no_memory(t);
	r = peek_copy(t->p, m->offset, m->size, v);
	if (r < 0)
		return tar_failed(t, r);
	if (type == 'L')
		return set_name(t, x, v, strnlen(v, m->size));
	return pax(t, x, type == 'g', v, m->size);
}

/* --- members ------------------------------------------------------------ */

/* Types that have no data, whatever their size field holds. */
static bool has_data(char type)
{
	return !type || !strchr("123456", type);
}

/* Build a member from a header and its extended headers; `x` is used up. */
static int member_of(struct tar_reader *t, const uint8_t *h, struct extended *x,
		     struct tar_member *m)
{
	char type = (char)h[TYPE];

	if (number(h + SIZE, SIZE_BYTES, &m->size) < 0)
		return tar_bad(t, "a damaged size");
	if (x->has_size)
		m->size = x->size;
	if (!has_data(type))
		m->size = 0;
	m->offset = t->at + TAR_BLOCK;
	if (m->size > t->p->size - m->offset)
		return err_set(t->err, -EINVAL,
			       "byte %" PRIu64
			       ": truncated: a member of %" PRIu64
			       " bytes, and the file ends at %" PRIu64,
			       t->at, m->size, t->p->size);
	if (x->name) {
		m->name_n = x->name_n;
		m->name = TAKE_PTR(x->name);
	} else if (header_name(h, m) < 0) {
		return tar_no_memory(t);
	}
	m->is_file = type == '0' || type == '7' || !type;
	m->is_folder = type == '5';
	/* v7 marks folders like this */
	if (!type && m->name_n && m->name[m->name_n - 1] == '/') {
		m->is_file = false;
		m->is_folder = true;
	}
	return 0;
}

/* The next header of any type. 1: end of the shard. */
static int header(struct tar_reader *t, uint8_t h[TAR_BLOCK])
{
	int r;

	if (t->at >= t->p->size)
		return 1;
	r = peek_copy(t->p, t->at, TAR_BLOCK, h);
	if (r < 0)
		return tar_failed(t, r);
	if (is_zero(h))
		return 1;
	return sum_is_right(h) ? 0
			       : tar_bad(t, "not the header of a tar member");
}

int tar_next(struct tar_reader *t, struct tar_member *m)
{
	struct extended x = { 0 };
	uint8_t h[TAR_BLOCK];
	bool again = true;
	int r = 0;

	while (r == 0 && again) {
		char type;

		*m = (struct tar_member){ 0 };
		r = header(t, h);
		if (r)
			break;
		type = (char)h[TYPE];
		again = type && strchr("xXgLK", type);
		if (type == 'S')
			r = tar_bad(t, "a sparse member: not supported");
		if (r == 0)
			r = member_of(t, h,
				      again ? &(struct extended){ 0 } : &x, m);
		if (r == 0 && again)
			r = extend(t, &x, m, type);
		if (r == 0)
			t->at = m->offset + (m->size + TAR_BLOCK - 1) /
						    TAR_BLOCK * TAR_BLOCK;
		if (r < 0 || again)
			free(m->name);
	}
	if (r == 1 && (x.name || x.has_size))
		r = tar_bad(t,
			    "truncated: an extended header without a member");
	free(x.name);
	return r;
}

bool tar_looks(const uint8_t block[TAR_BLOCK])
{
	return !is_zero(block) && sum_is_right(block);
}

/* SPDX-License-Identifier: MIT */
/*
 *	"\x93NUMPY"  version, 2 bytes  length of the header, 2 or 4 bytes
 *	{'descr': '<f4', 'fortran_order': False, 'shape': (3, 224, 224), }
 *	data
 *
 * The header is a Python literal; exactly these keys, in any order.
 * Source: numpy/lib/format.py
 */
#include "loader/format/npy.h"

#include <ctype.h>
#include <errno.h>
#include <string.h>

#include "common/util.h"

enum { FIXED = 8 };

struct text {
	const char *at, *end;
	struct err *err;
};

static int bad(struct err *err, const char *what)
{
	return err_set(err, -EINVAL, "the header of an array: %s", what);
}

/* Skip blanks; consume `want` if it is next. */
static bool accept(struct text *t, const char *want)
{
	size_t n = strlen(want);

	while (t->at < t->end && isspace((unsigned char)*t->at))
		t->at++;
	if ((size_t)(t->end - t->at) < n || memcmp(t->at, want, n))
		return false;
	t->at += n;
	return true;
}

static int quoted(struct text *t, const char **ret, size_t *ret_n)
{
	const char *close;
	char quote;

	if (accept(t, "'"))
		quote = '\'';
	else if (accept(t, "\""))
		quote = '"';
	else
		return bad(t->err, "a name is missing");
	close = memchr(t->at, quote, (size_t)(t->end - t->at));
	if (!close)
		return bad(t->err, "a name that is not terminated");
	*ret = t->at;
	*ret_n = (size_t)(close - t->at);
	t->at = close + 1;
	return 0;
}

static int number(struct text *t, uint64_t *ret)
{
	const char *from;

	accept(t, "");
	from = t->at;
	for (*ret = 0; t->at < t->end && isdigit((unsigned char)*t->at);
	     t->at++)
		if (__builtin_mul_overflow(*ret, 10, ret) ||
		    __builtin_add_overflow(*ret, *t->at - '0', ret))
			return bad(t->err, "its shape is too large");
	if (t->at == from)
		return bad(t->err,
			   "its shape has an item that is not a number");
	/* Python 2's long integers */
	accept(t, "L");
	return 0;
}

static int shape(struct text *t, struct npy *ret)
{
	if (!accept(t, "("))
		return bad(t->err, "its shape is not a tuple");
	while (!accept(t, ")")) {
		int r;

		if (ret->n_dimensions == NPY_DIMENSIONS)
			return bad(t->err, "too many dimensions");
		r = number(t, &ret->shape[ret->n_dimensions++]);
		if (r < 0)
			return r;
		if (accept(t, ","))
			continue;
		if (!accept(t, ")"))
			return bad(t->err, "its shape is not terminated");
		break;
	}
	return 0;
}

/* "<f4", "|u1", "<U10" (characters of 4 bytes), "<M8[ns]". */
static int item_bytes(struct text *t, uint64_t *ret)
{
	const char *v;
	size_t n;
	struct text size;
	int r;

	if (accept(t, "["))
		return bad(t->err, "records of several types: not supported");
	r = quoted(t, &v, &n);
	if (r < 0)
		return r;
	if (n && strchr("<>=|", *v)) {
		v++;
		n--;
	}
	if (n && *v == 'O')
		return bad(t->err, "an array of objects: not supported");
	if (n < 2 || !strchr("biufcmMSaUV?", *v) ||
	    !isdigit((unsigned char)v[1]))
		return bad(t->err, "its type is unknown");
	size = (struct text){ v + 1, v + n, t->err };
	r = number(&size, ret);
	if (r == 0 && *v == 'U' && __builtin_mul_overflow(*ret, 4, ret))
		r = bad(t->err, "its items are too large");
	if (r == 0 && size.at != size.end && *size.at != '[')
		r = bad(t->err, "its type is unknown");
	return r;
}

enum { DESCR = 1, ORDER = 2, SHAPE = 4, ALL = 7 };

static int value(struct text *t, const char *key, size_t n, unsigned *seen,
		 uint64_t *item, struct npy *ret)
{
	unsigned this;

	if (n == 5 && !memcmp(key, "descr", n))
		this = DESCR;
	else if (n == 13 && !memcmp(key, "fortran_order", n))
		this = ORDER;
	else if (n == 5 && !memcmp(key, "shape", n))
		this = SHAPE;
	else
		return bad(t->err, "an unknown key");
	if (*seen & this)
		return bad(t->err, "a duplicate key");
	*seen |= this;
	if (this == DESCR)
		return item_bytes(t, item);
	if (this == SHAPE)
		return shape(t, ret);
	ret->fortran = accept(t, "True");
	return ret->fortran || accept(t, "False")
		       ? 0
		       : bad(t->err, "fortran_order is neither True nor False");
}

static int dictionary(struct text *t, uint64_t *item, struct npy *ret)
{
	unsigned seen = 0;

	if (!accept(t, "{"))
		return bad(t->err, "not a dictionary");
	while (!accept(t, "}")) {
		const char *key;
		size_t n;
		int r = quoted(t, &key, &n);

		if (r == 0 && !accept(t, ":"))
			r = bad(t->err, "a key without a value");
		if (r == 0)
			r = value(t, key, n, &seen, item, ret);
		if (r < 0)
			return r;
		if (accept(t, ","))
			continue;
		if (!accept(t, "}"))
			return bad(t->err, "the dictionary is not terminated");
		break;
	}
	accept(t, "");
	if (t->at != t->end)
		return bad(t->err, "text after the dictionary");
	return seen == ALL ? 0 : bad(t->err, "a key is missing");
}

/* Find the dictionary and its length. */
static int find_dict(struct peek *p, uint64_t at, uint64_t n, uint64_t *ret_at,
		     size_t *ret_n, struct err *err)
{
	const uint8_t *v;
	unsigned wide;
	int r = n < FIXED + 2 ? -ENODATA : peek_get(p, at, FIXED + 2, &v);

	if (r == -ENODATA)
		return bad(err, "truncated");
	if (r < 0)
		return err_set(err, r, "%s", strerror(-r));
	if (!npy_looks(v, FIXED))
		return bad(err, "not the header of a .npy file");
	if (v[6] < 1 || v[6] > 3)
		return bad(err, "an unknown version");
	wide = v[6] == 1 ? 2 : 4;
	*ret_at = at + FIXED + wide;
	*ret_n = 0;
	r = n < FIXED + wide ? -ENODATA : peek_get(p, at + FIXED, wide, &v);
	for (unsigned i = 0; r == 0 && i < wide; i++)
		*ret_n |= (size_t)v[i] << (8 * i);
	if (r == 0 && *ret_n > n - FIXED - wide)
		r = -ENODATA;
	if (r == -ENODATA)
		return bad(err, "truncated");
	if (r == 0 && *ret_n > PEEK_MOST)
		return bad(err, "longer than 64 KiB");
	return r;
}

int npy_parse(struct peek *p, uint64_t at, uint64_t n, struct npy *ret,
	      struct err *err)
{
	uint64_t header = 0, item = 0;
	struct text t = { .err = err };
	const uint8_t *v;
	size_t length = 0;
	int r = find_dict(p, at, n, &header, &length, err);

	*ret = (struct npy){ 0 };
	if (r < 0)
		return r;
	r = peek_get(p, header, length, &v);
	if (r < 0)
		return err_set(err, r, "%s", strerror(-r));
	t.at = (const char *)v;
	t.end = t.at + length;
	r = dictionary(&t, &item, ret);
	if (r < 0)
		return r;
	ret->offset = header + length;
	ret->bytes = item;
	for (unsigned i = 0; i < ret->n_dimensions; i++)
		if (__builtin_mul_overflow(ret->bytes, ret->shape[i],
					   &ret->bytes))
			return bad(err, "its shape is too large");
	if (ret->bytes > n - (ret->offset - at))
		return err_set(err, -EINVAL,
			       "truncated: the array has %llu bytes of %llu",
			       (unsigned long long)(n - (ret->offset - at)),
			       (unsigned long long)ret->bytes);
	return 0;
}

bool npy_looks(const uint8_t *head, size_t n)
{
	return n >= 6 && !memcmp(head, "\x93NUMPY", 6);
}

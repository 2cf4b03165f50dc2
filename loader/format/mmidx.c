/* SPDX-License-Identifier: MIT */
#include "loader/format/mmidx.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

static const char MAGIC[] = "MMIDIDX\0"; /* with the NUL that ends it: 9 */
enum { VERSION_AT = 9, TYPE_AT = 17, COUNTS_AT = 18, HEAD = 34 };

/* Bytes of a token by the type's code; 0: none of tokens. Source: class DType
 * there: uint8 int8 int16 int32 int64 float64 float32 uint16 */
static const uint8_t type_bytes[] = { 0, 1, 1, 2, 4, 8, 0, 0, 2 };

static int bad(struct err *err, uint64_t at, const char *what)
{
	return err_set(err, -EINVAL, "byte %" PRIu64 ": %s", at, what);
}

static int copy(struct peek *p, uint64_t at, size_t n, void *ret,
		struct err *err)
{
	int r = peek_copy(p, at, n, ret);

	if (r == -ENODATA)
		return bad(err, at, "truncated");
	return r < 0 ? err_set(err, r, "byte %" PRIu64 ": %s", at, strerror(-r))
		     : 0;
}

static uint64_t bound_at(const struct mmidx *x, uint64_t i)
{
	return x->bounds_at + i * sizeof(uint64_t);
}

/* The first bound and the last. */
static int check_ends(struct peek *p, const struct mmidx *x, struct err *err)
{
	uint64_t first, last;
	int r = copy(p, bound_at(x, 0), sizeof(first), &first, err);

	if (r == 0)
		r = copy(p, bound_at(x, x->documents), sizeof(last), &last,
			 err);
	if (r == 0 && first)
		r = bad(err, bound_at(x, 0),
			"the first document does not begin with sequence 0");
	if (r == 0 && last != x->n)
		r = bad(err, bound_at(x, x->documents),
			"the last document does not end with the last "
			"sequence");
	return r;
}

int mmidx_parse(struct peek *p, struct mmidx *ret, struct err *err)
{
	uint8_t head[HEAD];
	uint64_t version, count[2];
	int r = copy(p, 0, HEAD, head, err);

	if (r < 0)
		return r;
	if (memcmp(head, MAGIC, sizeof(MAGIC)))
		return bad(err, 0, "not an index of Megatron (MMIDIDX)");
	memcpy(&version, head + VERSION_AT, sizeof(version));
	if (version != 1)
		return bad(err, VERSION_AT, "not version 1");
	if (head[TYPE_AT] >= sizeof(type_bytes) || !type_bytes[head[TYPE_AT]])
		return bad(err, TYPE_AT, "not an integer type");
	memcpy(count, head + COUNTS_AT, sizeof(count));
	/* 12 bytes a sequence and 8 a bound, so that nothing below overflows */
	if (count[0] > (p->size - HEAD) / 12)
		return bad(err, COUNTS_AT,
			   "more sequences than the file has room for");
	if (count[1] > (p->size - HEAD - 12 * count[0]) / 8)
		return bad(err, COUNTS_AT + 8,
			   "more documents than the file has room for");
	if (!count[1])
		return bad(err, COUNTS_AT + 8, "no bounds of documents");
	*ret = (struct mmidx){
		.n = count[0],
		.documents = count[1] - 1,
		.token_bytes = type_bytes[head[TYPE_AT]],
		.lengths_at = HEAD,
		.pointers_at = HEAD + 4 * count[0],
		.bounds_at = HEAD + 12 * count[0],
	};
	return check_ends(p, ret, err);
}

int mmidx_read(struct peek *p, const struct mmidx *x, uint64_t first, size_t n,
	       int32_t *ret_tokens, int64_t *ret_offsets, struct err *err)
{
	int r = copy(p, x->lengths_at + first * sizeof(*ret_tokens),
		     n * sizeof(*ret_tokens), ret_tokens, err);

	return r < 0 ? r
		     : copy(p, x->pointers_at + first * sizeof(*ret_offsets),
			    n * sizeof(*ret_offsets), ret_offsets, err);
}

int mmidx_bounds(struct peek *p, const struct mmidx *x, uint64_t first,
		 size_t n, uint64_t *ret, struct err *err)
{
	uint64_t at = bound_at(x, first);
	int r = copy(p, at, (n + 1) * sizeof(*ret), ret, err);

	for (size_t i = 0; r == 0 && i <= n; i++)
		if (ret[i] > x->n || (i && ret[i] < ret[i - 1]))
			r = bad(err, at + i * sizeof(*ret),
				"a document that ends before it begins, or "
				"after the last sequence");
	return r;
}

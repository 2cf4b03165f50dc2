/* SPDX-License-Identifier: MIT */
/*
 * The messages, with the numbers of their fields
 * (tensorflow/core/example/{example,feature}.proto):
 *
 *	Example  { 1: Features }
 *	Features { 1: map entry { 1: string key, 2: Feature }, ... }
 *	Feature  { 1: BytesList | 2: FloatList | 3: Int64List }
 *	BytesList { 1: bytes, ... }   Int64List { 1: varint, packed or not }
 *
 * A message is a range of the file. Each step takes the next field off its
 * front; the field's content is a range inside it. So no byte is walked twice
 * and no range points outside.
 */
#include "loader/format/example.h"

#include <errno.h>
#include <string.h>

#include "common/util.h"

/* Source: protobuf's encoding, protobuf.dev/programming-guides/encoding */
enum wire { VARINT = 0, FIXED64 = 1, BYTES = 2, FIXED32 = 5 };
enum { VARINT_MOST = 10 };

struct range {
	uint64_t at, end;
};

struct field {
	uint64_t number;
	enum wire wire;
	uint64_t value;	 /* of a varint */
	struct range in; /* of bytes */
};

static int varint(struct peek *p, struct range *m, uint64_t *ret)
{
	size_t most = MIN(m->end - m->at, VARINT_MOST);
	const uint8_t *v;
	int r = peek_get(p, m->at, most, &v);

	if (r < 0)
		return r;
	*ret = 0;
	for (size_t i = 0; i < most; i++) {
		/* the tenth byte has only the last bit */
		if (i == VARINT_MOST - 1 && v[i] > 1)
			return -EBADMSG;
		*ret |= (uint64_t)(v[i] & 0x7f) << (7 * i);
		if (!(v[i] & 0x80)) {
			m->at += i + 1;
			return 0;
		}
	}
	return -EBADMSG;
}

static int skip(struct range *m, uint64_t n)
{
	if (n > m->end - m->at)
		return -EBADMSG;
	m->at += n;
	return 0;
}

/* Take a field off the front. 1: none left. */
static int next_field(struct peek *p, struct range *m, struct field *ret)
{
	uint64_t tag, n;
	int r;

	if (m->at == m->end)
		return 1;
	r = varint(p, m, &tag);
	if (r < 0)
		return r;
	ret->number = tag >> 3;
	ret->wire = (enum wire)(tag & 7);
	switch (ret->wire) {
	case VARINT: return varint(p, m, &ret->value);
	case FIXED64: return skip(m, 8);
	case FIXED32: return skip(m, 4);
	case BYTES:
		r = varint(p, m, &n);
		if (r < 0)
			return r;
		ret->in.at = m->at;
		r = skip(m, n);
		ret->in.end = m->at;
		return r;
	default: return -EBADMSG;
	}
}

static bool is(const struct field *f, uint64_t number, enum wire wire)
{
	return f->number == number && f->wire == wire;
}

/* The first value of a BytesList. */
static int first_bytes(struct peek *p, struct range list, struct example *ret)
{
	struct field f;
	int r;

	while ((r = next_field(p, &list, &f)) == 0) {
		if (!is(&f, 1, BYTES) || ret->image.found)
			continue;
		ret->image.found = true;
		ret->offset = f.in.at;
		ret->size = f.in.end - f.in.at;
	}
	return r < 0 ? r : 0;
}

/* The first value of an Int64List. */
static int first_int(struct peek *p, struct range list, struct example *ret)
{
	struct field f;
	int r;

	while ((r = next_field(p, &list, &f)) == 0) {
		uint64_t v = f.value;

		if (f.number != 1 || ret->label.found)
			continue;
		if (f.wire == BYTES && f.in.at < f.in.end)
			r = varint(p, &f.in, &v);
		else if (f.wire != VARINT)
			continue;
		if (r < 0)
			break;
		ret->label.found = true;
		ret->value = (int64_t)v;
	}
	return r < 0 ? r : 0;
}

/* The position of `key` in a list with commas, or -1. */
static int rank_of(const char *list, const char *key)
{
	size_t n = strlen(key);

	for (int rank = 0; n; rank++) {
		size_t m = strcspn(list, ",");

		if (m == n && !memcmp(list, key, n))
			return rank;
		if (!list[m])
			break;
		list += m + 1;
	}
	return -1;
}

/* Does the feature `key` replace what was found before? */
static bool better(struct example_feature *f, const char *list, const char *key)
{
	int rank = rank_of(list, key);

	if (rank < 0 || (f->rank >= 0 && rank >= f->rank))
		return false;
	*f = (struct example_feature){ .rank = rank };
	memcpy(f->key, key, strlen(key) + 1);
	return true;
}

static int feature(struct peek *p, struct range m, const char *key,
		   const struct example_names *names, struct example *ret)
{
	bool image = better(&ret->image, names->image, key);
	bool label = better(&ret->label, names->label, key);
	struct field f;
	int r;

	while ((r = next_field(p, &m, &f)) == 0) {
		if (image && is(&f, 1, BYTES))
			r = first_bytes(p, f.in, ret);
		else if (label && is(&f, 3, BYTES))
			r = first_int(p, f.in, ret);
		if (r < 0)
			break;
	}
	return r < 0 ? r : 0;
}

/* One that is too long becomes "". */
static int read_key(struct peek *p, const struct range *in,
		    char key[EXAMPLE_KEY])
{
	size_t n = in->end - in->at < EXAMPLE_KEY ? in->end - in->at : 0;
	const uint8_t *v;
	int r = peek_get(p, in->at, n, &v);

	if (r < 0)
		return r;
	memcpy(key, v, n);
	key[n] = 0;
	return 0;
}

static int entry(struct peek *p, struct range m,
		 const struct example_names *names, struct example *ret)
{
	struct range value = { 0 };
	char key[EXAMPLE_KEY] = "";
	struct field f;
	int r;

	while ((r = next_field(p, &m, &f)) == 0) {
		if (is(&f, 1, BYTES))
			r = read_key(p, &f.in, key);
		else if (is(&f, 2, BYTES))
			value = f.in;
		if (r < 0)
			return r;
	}
	if (!ret->n_features++)
		memcpy(ret->first, key, sizeof(key));
	return r < 0 ? r : feature(p, value, key, names, ret);
}

static int features(struct peek *p, struct range m,
		    const struct example_names *names, struct example *ret)
{
	struct field f;
	int r;

	while ((r = next_field(p, &m, &f)) == 0) {
		if (is(&f, 1, BYTES))
			r = entry(p, f.in, names, ret);
		if (r < 0)
			break;
	}
	return r < 0 ? r : 0;
}

int example_find(struct peek *p, uint64_t at, uint64_t n,
		 const struct example_names *names, struct example *ret)
{
	struct range m = { at, at + n };
	struct field f;
	int r;

	*ret = (struct example){ .image.rank = -1, .label.rank = -1 };
	while ((r = next_field(p, &m, &f)) == 0) {
		if (is(&f, 1, BYTES))
			r = features(p, f.in, names, ret);
		if (r < 0)
			break;
	}
	/* the range was checked to be inside the file */
	return r == -ENODATA ? -EBADMSG : MIN(r, 0);
}

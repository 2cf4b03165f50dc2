/* SPDX-License-Identifier: MIT */
/*
 * The readers of shards, on bytes made by hand: valid samples are found at
 * their offsets, invalid shards are refused with a reason. Whole files as other
 * programs write them are in tests/cli/formats.bats.
 */
#ifndef GPEMU_TESTS_UNIT_SHARD_H
#define GPEMU_TESTS_UNIT_SHARD_H

#include "tests/unit/test.h"

#include <endian.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/util.h"
#include "loader/dataset/format.h"

/* Bytes under construction, on the heap so that ASan sees their end. */
struct bytes {
	uint8_t *v;
	size_t n, allocated;
};

static inline void add(struct bytes *b, const void *v, size_t n)
{
	assert_int_equal(util_reserve(&b->v, &b->allocated, b->n + n + 1, 1),
			 0);
	if (n)
		memcpy(b->v + b->n, v, n);
	b->n += n;
}

static inline void add_le(struct bytes *b, uint64_t v, unsigned n)
{
	v = htole64(v);
	add(b, &v, n);
}

static inline void add_zeros(struct bytes *b, size_t n)
{
	static const uint8_t zeros[512];

	add(b, zeros, n);
}

static inline void add_text(struct bytes *b, const char *text)
{
	add(b, text, strlen(text));
}

static inline void drop(struct bytes *b)
{
	free(b->v);
	*b = (struct bytes){ 0 };
}

/* Scan exactly these bytes, from a copy that ends where they do. */
static inline int scan_with(const struct format_ops *f, const struct bytes *b,
			    const void *o, struct dataset_part *ret,
			    struct err *err)
{
	uint8_t *own = calloc(b->n ? b->n : 1, 1);
	struct peek p;
	int r;

	*ret = (struct dataset_part){ 0 };
	*err = (struct err){ 0 };
	if (b->n)
		memcpy(own, b->v, b->n);
	peek_init_memory(&p, own, b->n);
	r = f->scan(&p, o, ret, err);
	free(own);
	for (size_t i = 0; i < ret->n; i++) {
		assert_true(ret->sample[i].offset <= b->n);
		assert_true(ret->sample[i].size <=
			    b->n - ret->sample[i].offset);
	}
	return r;
}

static inline struct dataset_part good(const struct format_ops *f,
				       const struct bytes *b)
{
	struct dataset_part p;
	struct err err;

	if (scan_with(f, b, NULL, &p, &err) < 0)
		fail_msg("%s: %s", f->plugin.name, err.text);
	return p;
}

static inline void refused_with(const struct format_ops *f,
				const struct bytes *b, const void *o,
				const char *why)
{
	struct dataset_part p;
	struct err err;

	assert_int_equal(scan_with(f, b, o, &p, &err), -EINVAL);
	if (!strstr(err.text, why))
		fail_msg("%s: '%s', not '%s'", f->plugin.name, err.text, why);
	part_fini(&p);
}

static inline void refused(const struct format_ops *f, const struct bytes *b,
			   const char *why)
{
	refused_with(f, b, NULL, why);
}

/* Truncated anywhere, it is refused or has fewer samples; never more, never a
 * sample outside (scan_with checks). */
static inline void cut_anywhere(const struct format_ops *f,
				const struct bytes *b, size_t samples)
{
	for (size_t n = 0; n < b->n; n++) {
		struct bytes cut = { b->v, n };
		struct dataset_part p;
		struct err err;
		int r = scan_with(f, &cut, NULL, &p, &err);

		if (r < 0)
			assert_true(err.text[0]);
		else
			assert_true(p.n <= samples);
		part_fini(&p);
	}
}

static inline void sample_is(const struct bytes *b,
			     const struct dataset_part *p, size_t i,
			     const char *name, const char *data, uint32_t label)
{
	const struct part_sample *s = &p->sample[i];

	assert_true(i < p->n);
	assert_int_equal(s->size, strlen(data));
	assert_memory_equal(b->v + s->offset, data, s->size);
	assert_int_equal(s->label, label);
	if (name)
		assert_string_equal(p->names + s->name, name);
	else
		assert_int_equal(s->name, PART_NO_NAME);
}

#endif

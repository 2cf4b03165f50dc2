/* SPDX-License-Identifier: MIT */
/* A tree of files, and futures that access them. */
#ifndef GPEMU_TESTS_UNIT_FUTURE_RIG_H
#define GPEMU_TESTS_UNIT_FUTURE_RIG_H

#include "tests/unit/test.h"

#include <endian.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "common/rng.h"
#include "common/util.h"
#include "fs/peer/foresee.h"
#include "fs/server/object.h"

enum { N_FILES = 200, BYTES = 1000, EPOCHS = 8 };

/* Files of `bytes` in the root: node i + 1 is file i. */
static inline void make_tree(struct tree *t, uint64_t bytes)
{
	struct tree_child files[N_FILES] = { 0 };
	char names[N_FILES][8];

	assert_int_equal(tree_init(t), 0);
	for (uint32_t i = 0; i < N_FILES; i++) {
		snprintf(names[i], sizeof(names[i]), "f%03u", i);
		files[i] = (struct tree_child){ .name = names[i],
						.bytes = bytes,
						.mode = S_IFREG | 0444 };
	}
	assert_int_equal(tree_add_children(t, TREE_ROOT, files, N_FILES), 0);
}

struct text {
	unsigned char *bytes;
	size_t n;
};

static inline void put(struct text *x, uint32_t v)
{
	v = htole32(v);
	memcpy(x->bytes + x->n, &v, sizeof(v));
	x->n += sizeof(v);
}

/* `list`: `world * (first + (epochs - 1) * rest)` inode numbers. */
static inline struct text make_text(const uint32_t v[FUTURE_FIELDS],
				    const uint32_t *list, size_t n)
{
	struct text x = { malloc(FUTURE_HEAD + n * 4), 8 };

	memcpy(x.bytes, FUTURE_MAGIC, 8);
	for (int i = 0; i < FUTURE_FIELDS; i++)
		put(&x, v[i]);
	for (size_t i = 0; i < n; i++)
		put(&x, list[i]);
	return x;
}

/* Shuffled epochs of all files, seen by one rank. */
static inline struct future *shuffled(const struct tree *t, uint32_t rank,
				      uint32_t world, uint32_t epochs)
{
	const uint32_t v[FUTURE_FIELDS] = {
		FUTURE_IS_VERSION, rank, world, epochs, N_FILES / world,
		N_FILES / world,   0
	};
	uint32_t list[EPOCHS * N_FILES];
	struct future_in in = { 0 };
	struct future *f;
	struct err err;
	struct text x;

	for (uint32_t e = 0; e < epochs; e++) {
		struct rng rng = rng_stream(3, "epoch", e);

		for (uint32_t i = 0; i < N_FILES; i++)
			list[e * N_FILES + i] = i + 2;
		rng_shuffle_u32(&rng, list + (size_t)e * N_FILES, N_FILES);
	}
	x = make_text(v, list, (size_t)epochs * N_FILES);
	assert_int_equal(future_take(&in, t, 0, x.bytes, x.n, &f, &err), 0);
	assert_non_null(f);
	free(x.bytes);
	return f;
}

#endif

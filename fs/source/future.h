/* SPDX-License-Identifier: MIT */
/*
 * The future accesses of all ranks of a run, as a loader announces them
 * (common/system/future.h). Everything in it is checked: each access is to a
 * file of the tree, or to none.
 */
#ifndef GPEMU_FS_SOURCE_FUTURE_H
#define GPEMU_FS_SOURCE_FUTURE_H

#include "common/system/future.h"
#include "fs/source/tree.h"

struct future {
	unsigned refs; /* atomic */
	uint32_t rank, world;
	uint32_t first, rest; /* accesses of a rank in an epoch */
	bool continues;
	uint64_t n; /* accesses of each rank */
	/* n * world: numbers of nodes, or TREE_NONE */
	uint32_t node[];
};

/* Of a head (enum future_field) that is valid; its accesses are not set. NULL:
 * no memory. */
struct future *future_new(const uint32_t v[FUTURE_FIELDS]);

/* The i-th access of a rank. */
static inline uint32_t future_access(const struct future *f, uint32_t rank,
				     uint64_t i)
{
	return f->node[i * f->world + rank];
}

struct future *future_get(struct future *f);
/* NULL is allowed. */
void future_put(struct future *f);

/* A future that arrives in pieces. Zeroed: nothing has arrived. */
struct future_in {
	unsigned char head[FUTURE_HEAD];
	uint64_t bytes; /* arrived */
	uint64_t n_checked;
	struct future *future; /* once the head is complete */
};

void future_in_fini(struct future_in *in);
/* No more bytes come. -EINVAL with a text: some have, but not all. */
int future_end(struct future_in *in, struct err *err);
/*
 * Take the `n` bytes at `offset`; offset 0 begins anew. *ret: the future, with
 * a reference for the caller, once it is complete; else NULL. -EINVAL (not the
 * next bytes, a bad head, a number that is no file), -E2BIG, -ENOMEM with a
 * text; then nothing has arrived.
 */
int future_take(struct future_in *in, const struct tree *t, uint64_t offset,
		const void *bytes, size_t n, struct future **ret,
		struct err *err);

#endif

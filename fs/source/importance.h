/* SPDX-License-Identifier: MIT */
/* How much files matter to the training, as a loader announces it
 * (common/system/importance.h), for policies. */
#ifndef GPEMU_FS_SOURCE_IMPORTANCE_H
#define GPEMU_FS_SOURCE_IMPORTANCE_H

#include "fs/source/tree.h"

/* Zeroed: nothing is announced. */
struct importance {
	float *v; /* of each node of the tree; NULL: 0 for all */
	uint32_t n;
};

/* Space for `n` nodes, if there is none. -ENOMEM. */
int importance_init(struct importance *i, uint32_t n);
void importance_fini(struct importance *i);
/* As in struct policy_params, with a struct importance; of an object's file. */
double importance_of(const void *importance, uint64_t key);
/* Are these records all well-formed, and of files of the tree? -EINVAL with a
 * text. */
int importance_check(const struct tree *t, const void *bytes, size_t n,
		     struct err *err);

#endif

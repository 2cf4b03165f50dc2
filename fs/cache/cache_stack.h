/* SPDX-License-Identifier: MIT */
/* Caches behind each other, one per tier (fs/cache/tier.h), for simulators. */
#ifndef GPEMU_FS_CACHE_CACHE_STACK_H
#define GPEMU_FS_CACHE_CACHE_STACK_H

#include "fs/cache/cache.h"
#include "fs/cache/tier.h"

struct cache_stack {
	struct cache *c[TIERS_MAX];
	size_t n;
	enum tier_admit admit;
};

/* Frees the caches. */
void cache_stack_fini(struct cache_stack *s);
/* One access, from tier to tier until one has the object. The number of the
 * tier that has it; `n`: none, and those that missed may have admitted it. */
size_t cache_stack_access(struct cache_stack *s, const struct cache_object *o);
/* The first tier that has it, without counting; `n`: none. */
size_t cache_stack_peek(const struct cache_stack *s, uint64_t key);

#endif

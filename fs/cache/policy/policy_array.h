/* SPDX-License-Identifier: MIT */
/*
 * All cached entries in an unordered array, for policies that draw at random.
 * The index in the array is the first of the entry's private bytes. Grows in
 * admit, by half: 8 to 12 bytes per entry.
 */
#ifndef GPEMU_FS_CACHE_POLICY_POLICY_ARRAY_H
#define GPEMU_FS_CACHE_POLICY_POLICY_ARRAY_H

#include <stdlib.h>

#include "common/util.h"
#include "fs/cache/policy.h"

struct policy_array {
	struct cache_entry **v;
	uint32_t n;
	size_t allocated;
};

/* Reserve space for one more; false: no memory. */
static inline bool policy_array_reserve(struct policy_array *a)
{
	return util_reserve(&a->v, &a->allocated, (size_t)a->n + 1,
			    sizeof(*a->v)) == 0;
}

static inline void policy_array_add(struct policy_array *a,
				    struct cache_entry *e)
{
	uint32_t *place = cache_entry_data(e);

	*place = a->n;
	a->v[a->n++] = e;
}

static inline void policy_array_remove(struct policy_array *a,
				       struct cache_entry *e)
{
	uint32_t place = *(uint32_t *)cache_entry_data(e);
	struct cache_entry *last = a->v[--a->n];

	a->v[place] = last;
	*(uint32_t *)cache_entry_data(last) = place;
}

#endif

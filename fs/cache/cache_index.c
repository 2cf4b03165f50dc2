/* SPDX-License-Identifier: MIT */
#include "fs/cache/cache_index.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/util.h"

/* arbitrary: grows by doubling */
enum { FIRST_SLOTS = 256 };

int cache_index_init(struct cache_index *x, size_t data_bytes)
{
	size_t align = _Alignof(max_align_t);

	*x = (struct cache_index){
		.stride = sizeof(struct cache_entry) +
			  (data_bytes + align - 1) / align * align,
		.mask = FIRST_SLOTS - 1,
	};
	x->slots = calloc(FIRST_SLOTS, sizeof(*x->slots));
	return x->slots ? 0 : -ENOMEM;
}

void cache_index_fini(struct cache_index *x)
{
	for (uint32_t i = 0; i < x->n_slabs; i++)
		free(x->slabs[i]);
	free(x->slabs);
	free(x->slots);
	*x = (struct cache_index){ 0 };
}

static void put(uint64_t *slots, uint32_t mask, uint64_t slot)
{
	uint32_t i = (uint32_t)(slot >> 32) & mask;

	while (slots[i])
		i = (i + 1) & mask;
	slots[i] = slot;
}

/* Free slot i: shift the displaced slots behind it back. */
static void close_gap(struct cache_index *x, uint32_t i)
{
	for (uint32_t j = (i + 1) & x->mask; x->slots[j];
	     j = (j + 1) & x->mask) {
		uint32_t home = (uint32_t)(x->slots[j] >> 32) & x->mask;

		/* may it move to i, cyclically between its home and j? */
		if (((j - home) & x->mask) < ((j - i) & x->mask))
			continue;
		x->slots[i] = x->slots[j];
		i = j;
	}
	x->slots[i] = 0;
}

/* Free the slot, and the entry's number for reuse. */
static void release(struct cache_index *x, struct cache_entry *e)
{
	uint32_t i = cache_index_hash(e->key) & x->mask;

	while ((uint32_t)x->slots[i] != e->number + 1)
		i = (i + 1) & x->mask;
	close_gap(x, i);
	e->key = x->free_number; /* the free list's link */
	x->free_number = e->number + 1;
}

static void release_all(struct cache_index *x)
{
	for (int i = 0; i < INDEX_LEAVING; i++) {
		if (x->leaving[i])
			release(x, x->leaving[i]);
		x->leaving[i] = NULL;
	}
}

void cache_index_remove(struct cache_index *x, struct cache_entry *e)
{
	struct cache_entry **at = &x->leaving[x->n_removed % INDEX_LEAVING];

	if (*at)
		release(x, *at);
	*at = e;
	x->n_removed++;
	x->n--;
	e->cached = false;
	__builtin_prefetch(&x->slots[cache_index_hash(e->key) & x->mask], 1);
}

/* Keep the table at most half full. */
static int grow_table(struct cache_index *x)
{
	uint32_t mask = x->mask * 2 + 1;
	uint64_t *slots;

	if (x->n < x->mask / 2)
		return 0;
	if (mask == UINT32_MAX)
		return -ENOMEM;
	slots = calloc((size_t)mask + 1, sizeof(*slots));
	if (!slots)
		return -ENOMEM;
	release_all(x);
	for (uint32_t i = 0; i <= x->mask; i++)
		if (x->slots[i])
			put(slots, mask, x->slots[i]);
	free(x->slots);
	x->slots = slots;
	x->mask = mask;
	return 0;
}

static int grow_slabs(struct cache_index *x)
{
	char **slabs = x->slabs;

	/* the list doubles whenever its length is a power of two */
	if (!(x->n_slabs & (x->n_slabs - 1)))
		slabs = reallocarray(x->slabs, MAX(1, 2 * (size_t)x->n_slabs),
				     sizeof(*slabs));
	if (!slabs)
		return -ENOMEM;
	x->slabs = slabs;
	/* 64: a cache line, so that few entries lie across two */
	slabs[x->n_slabs] = util_aligned_alloc(64, INDEX_SLAB * x->stride);
	if (!slabs[x->n_slabs])
		return -ENOMEM;
	x->n_slabs++;
	return 0;
}

static struct cache_entry *take(struct cache_index *x)
{
	uint32_t number = x->free_number - 1;
	struct cache_entry *e;

	if (x->free_number) {
		e = cache_index_entry(x, number);
		x->free_number = (uint32_t)e->key;
	} else {
		if (x->n_used == x->n_slabs * INDEX_SLAB && grow_slabs(x) < 0)
			return NULL;
		number = x->n_used++;
		e = cache_index_entry(x, number);
	}
	memset(e, 0, x->stride);
	e->number = number;
	return e;
}

struct cache_entry *cache_index_add(struct cache_index *x, uint64_t key)
{
	struct cache_entry *e;

	if (grow_table(x) < 0)
		return NULL;
	e = take(x);
	if (!e)
		return NULL;
	e->key = key;
	e->cached = true;
	put(x->slots, x->mask,
	    (uint64_t)cache_index_hash(key) << 32 | (e->number + 1));
	x->n++;
	return e;
}

struct cache_entry *cache_index_any(struct cache_index *x, uint32_t *cursor)
{
	for (; *cursor < x->n_used; (*cursor)++) {
		struct cache_entry *e = cache_index_entry(x, *cursor);

		if (e->cached)
			return e;
	}
	return NULL;
}

uint64_t cache_index_bytes(const struct cache_index *x)
{
	return ((uint64_t)x->mask + 1) * sizeof(*x->slots) +
	       (uint64_t)x->n_slabs * INDEX_SLAB * x->stride;
}

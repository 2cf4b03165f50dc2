/* SPDX-License-Identifier: MIT */
/*
 * From keys to entries, for cache.c (ghosts share the hash): an open-addressing
 * table of 8-byte slots, and the entries in slabs that never move.
 *
 * A slot holds 32 bits of the key's hash and the number of the entry plus one
 * (0: free). A lookup probes the table and reads an entry only where the hash
 * bits agree, so most misses cost one probe. Deletion shifts the following
 * slots back instead of leaving tombstones; the hash bits give each slot's home
 * without reading its entry.
 *
 * A removed entry keeps its slot until INDEX_LEAVING more were removed. The
 * removal prefetches the slot, so it is in the processor's cache by then.
 * Waiting for it took a quarter of the time of an LRU that evicts.
 *
 * Tried before: uthash with a malloc per entry. It did 3.0 M requests/s with
 * LRU over random passes; this did 9 M (tests/bench/cachesim.c, 2 busy EPYC
 * cores), and 16 M with policy_list.h.
 */
#ifndef GPEMU_FS_CACHE_CACHE_INDEX_H
#define GPEMU_FS_CACHE_CACHE_INDEX_H

#include "fs/cache/policy.h"

/* arbitrary: large enough that the slabs' own list stays short */
enum { INDEX_SLAB = 4096 };
/* Source: measured, tests/bench/cachesim.c, LRU over random passes side by
 * side: 12 M requests/s with 8, 10 with 1, no more with 16 */
enum { INDEX_LEAVING = 8 };

struct cache_index {
	uint64_t *slots;
	uint32_t mask; /* number of slots - 1 */
	uint32_t n;    /* entries in the table */
	char **slabs;
	uint32_t n_slabs;
	uint32_t n_used;      /* entries ever taken from the slabs */
	uint32_t free_number; /* head of the free list, plus one */
	struct cache_entry *leaving[INDEX_LEAVING];
	uint32_t n_removed; /* in total; gives the next place in `leaving` */
	size_t stride;	    /* bytes of an entry */
};

/* `data_bytes`: the policy's bytes in each entry. -ENOMEM. */
int cache_index_init(struct cache_index *x, size_t data_bytes);
void cache_index_fini(struct cache_index *x);

/* A new entry, its data zeroed, in the table. NULL: no memory. */
struct cache_entry *cache_index_add(struct cache_index *x, uint64_t key);
void cache_index_remove(struct cache_index *x, struct cache_entry *e);
/* Any entry; NULL: the index is empty. */
struct cache_entry *cache_index_any(struct cache_index *x, uint32_t *cursor);
uint64_t cache_index_bytes(const struct cache_index *x);

static inline uint32_t cache_index_hash(uint64_t key)
{
	/* Fibonacci hashing (Knuth, TAOCP 3, section 6.4), upper half folded
	 * in: keys are file numbers << 32 | extent, or a trace's own */
	uint64_t h = (key ^ (key >> 32)) * 0x9e3779b97f4a7c15;

	return (uint32_t)(h >> 32);
}

static inline struct cache_entry *cache_index_entry(const struct cache_index *x,
						    uint32_t number)
{
	return (struct cache_entry *)(x->slabs[number / INDEX_SLAB] +
				      number % INDEX_SLAB * x->stride);
}

static inline struct cache_entry *cache_index_find(const struct cache_index *x,
						   uint64_t key)
{
	uint32_t hash = cache_index_hash(key);

	for (uint32_t i = hash & x->mask; x->slots[i]; i = (i + 1) & x->mask) {
		struct cache_entry *e;

		if ((uint32_t)(x->slots[i] >> 32) != hash)
			continue;
		e = cache_index_entry(x, (uint32_t)x->slots[i] - 1);
		if (e->key == key && e->cached)
			return e;
	}
	return NULL;
}

#endif

/* SPDX-License-Identifier: MIT */
/*
 * From keys to entries, for cache.c: an open-addressing table of 8-byte slots,
 * and the entries, which never move, one after the other in a range of
 * addresses that is reserved at once and gets memory as it fills.
 *
 * A slot holds 32 bits of the key's hash and the entry's distance from the
 * start of the range in ENTRY_UNIT, plus one (0: free). A lookup probes the
 * table and reads an entry only where the hash bits agree, so most misses cost
 * one probe. Deletion shifts the following slots back instead of leaving
 * tombstones; the hash bits give each slot's home without reading its entry.
 *
 * A removed entry keeps its slot until INDEX_LEAVING more were removed. The
 * removal prefetches the slot, so it is in the processor's cache by then.
 * Waiting for it took a quarter of the time of an LRU that evicts.
 *
 * A host that numbers its objects needs no hash table, but an array of the
 * entries' distances by number.
 *
 * Tried before: uthash with a malloc per entry (3.0 M requests/s with LRU over
 * random passes, where this did 16 M); entries of 64 bytes with pointers; a
 * place for each number instead of an entry: a queue's next victim is anywhere
 * in memory then, while reused entries mostly follow each other.
 */
#ifndef GPEMU_FS_CACHE_CACHE_INDEX_H
#define GPEMU_FS_CACHE_CACHE_INDEX_H

#include "fs/cache/policy.h"

/* Source: measured, tests/bench/cachesim.c, LRU over random passes side by
 * side: 12 M requests/s with 8, 10 with 1, no more with 16 */
enum { INDEX_LEAVING = 8 };

struct cache_index {
	uint64_t *slots;
	uint32_t mask;	    /* number of slots - 1 */
	uint32_t n;	    /* entries in the table */
	uint32_t *numbered; /* distances as in slots; NULL: use the table */
	char *entries;
	size_t reserved; /* bytes of the range */
	size_t usable;	 /* of these, have memory */
	size_t used;	 /* of these, were ever an entry */
	/* oldest first, linked by `key`: so what follows each other in a queue
	 * does so in memory, too, as long as evictions follow the queue */
	struct cache_entry *free, *last_free;
	struct cache_entry *leaving[INDEX_LEAVING];
	uint32_t n_removed; /* in total; gives the next place in `leaving` */
	size_t stride;	    /* bytes of an entry */
};

/* `data_bytes`: the policy's bytes in each entry. `n_numbers`: find them by
 * numbers below this; 0: by key. -ENOMEM. */
int cache_index_init(struct cache_index *x, size_t data_bytes,
		     uint32_t n_numbers);
void cache_index_fini(struct cache_index *x);

/* A new entry in the table: ENTRY_CACHED, the rest zeroed. Without numbers
 * `number` does not matter. NULL: no memory. */
struct cache_entry *cache_index_add(struct cache_index *x, uint64_t key,
				    uint32_t number, uint64_t bytes);
/* The same with an entry that is in the table already. */
void cache_index_renew(const struct cache_index *x, struct cache_entry *e,
		       uint64_t bytes);
void cache_index_remove(struct cache_index *x, struct cache_entry *e);
/* The next entry in that state; *cursor is 0 at first. NULL: no more. */
struct cache_entry *cache_index_next(const struct cache_index *x,
				     enum cache_entry_state state,
				     size_t *cursor);
/* With numbers: what it would take with keys. */
uint64_t cache_index_bytes(const struct cache_index *x);

static inline uint32_t cache_index_hash(uint64_t key)
{
	/* Fibonacci hashing (Knuth, TAOCP 3, section 6.4), upper half folded
	 * in: keys are file numbers << 32 | extent, or a trace's own */
	uint64_t h = (key ^ (key >> 32)) * 0x9e3779b97f4a7c15;

	return (uint32_t)(h >> 32);
}

static inline struct cache_entry *cache_index_entry(const struct cache_index *x,
						    uint64_t slot)
{
	return (struct cache_entry *)(x->entries +
				      (size_t)((uint32_t)slot - 1) *
					      ENTRY_UNIT);
}

/* Cached or a ghost; NULL: the key is not in the table. */
static inline struct cache_entry *cache_index_find(const struct cache_index *x,
						   uint64_t key)
{
	uint32_t hash = cache_index_hash(key);

	for (uint32_t i = hash & x->mask; x->slots[i]; i = (i + 1) & x->mask) {
		struct cache_entry *e;

		if ((uint32_t)(x->slots[i] >> 32) != hash)
			continue;
		e = cache_index_entry(x, x->slots[i]);
		if (e->key == key && e->state != ENTRY_FREE)
			return e;
	}
	return NULL;
}

/* The same by number. */
static inline struct cache_entry *
cache_index_numbered(const struct cache_index *x, uint32_t number)
{
	uint32_t at = x->numbered[number];

	return at ? cache_index_entry(x, at) : NULL;
}

/* Hints that the key will be looked up: first its slot, later its entry. */
static inline void cache_index_prefetch_slot(const struct cache_index *x,
					     uint64_t key)
{
	__builtin_prefetch(&x->slots[cache_index_hash(key) & x->mask]);
}

static inline void cache_index_prefetch_entry(const struct cache_index *x,
					      uint64_t key)
{
	uint32_t hash = cache_index_hash(key);
	const void *likely = x->slots;

	/* no branch depends on what is there: it could not be predicted */
	for (uint32_t i = 0; i < 4; i++) {
		uint64_t slot = x->slots[(hash + i) & x->mask];

		if ((slot >> 32) == hash)
			likely = cache_index_entry(x, slot);
	}
	__builtin_prefetch(likely, 1);
}

#endif

/* SPDX-License-Identifier: MIT */
/*
 * Plug-in kind `policy`: which objects a cache admits and which it evicts.
 *
 * A policy is pure bookkeeping: no locks (the cache's lock is held), no I/O, no
 * clock, so that gpemu-fs and gpemu-cachesim run the same code. The cache looks
 * objects up, counts, and enforces the capacity.
 *
 * object not cached: admit? -> victim, removed (until it fits) -> inserted
 * object cached:     hit
 * dropped by control: removed, without victim before it
 * cached, and a loader announces another importance of it: reweighed
 *
 * Ghosts: `removed` may make its entry a ghost (policy_ghost.h). Then the cache
 * keeps the entry, finds it at the object's next miss and passes it to `admit`,
 * until `forget` returns it. So a policy that learns from its evictions has no
 * table of its own, and an eviction moves an entry from queue to queue.
 *
 * Memory: the state, `entry_size` bytes in each entry, and what init (or admit,
 * for arrays that grow with the cache) allocates. The last, and the number of
 * ghosts, are bounded by the number of objects that the capacity holds.
 */
#ifndef GPEMU_FS_CACHE_POLICY_H
#define GPEMU_FS_CACHE_POLICY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/err.h"
#include "common/plugin.h"

/* "Never again" as next_use. */
#define POLICY_NEVER UINT64_MAX

/* The unit of a cache access: a file, or one extent of a large file. */
struct cache_object {
	uint64_t key;
	uint64_t bytes;	     /* of this object; counts against the capacity */
	uint64_t file_bytes; /* of the file it belongs to */
	/* The next access, as a number of requests since the cache was made
	 * (the first request is 0); only for offline policies. */
	uint64_t next_use;
	uint32_t number; /* for a cache that finds objects by number */
};

enum cache_entry_state {
	ENTRY_FREE,
	ENTRY_CACHED,
	ENTRY_GHOST, /* evicted; the policy remembers it */
};

/*
 * A cached object, or the ghost of one. Policies read `key` and `bytes` (its
 * share of the capacity, with metadata if that is counted), and may use `queue`
 * and `uses`, 0 in a new entry, as they like. Their `entry_size` bytes follow.
 * The rest belongs to the cache.
 *
 * The size counts: 32 bytes with the links of a queue are half a cache line.
 */
struct cache_entry {
	uint64_t key;
	uint64_t bytes : 52;
	uint64_t state : 2;
	uint64_t queue : 2;
	uint64_t uses : 8;
	union {
		void *user;
		uint32_t number; /* of the object, in a cache by number */
	};
	uint64_t data[];
};

/* Entries of one cache lie in one range of addresses, at multiples of this from
 * its start. The range is small enough that their distances in this unit fit
 * an int32_t. */
enum { ENTRY_UNIT = 16 };

/* `entry_size` bytes, zeroed in a new entry, aligned for 64-bit types. */
static inline void *cache_entry_data(struct cache_entry *entry)
{
	return entry->data;
}

struct policy_params {
	uint64_t capacity_bytes;
	uint64_t seed;
	/* sizes of all files of the dataset, ascending; borrowed for init */
	const uint64_t *file_bytes;
	size_t n_files;
	/* larger files are split into objects of this size; 0: never */
	uint64_t max_object_bytes;
	/* The host fills in next_use. If false, offline policies fail. */
	bool knows_future;
	/* Programs wait for the reads that the policy decides about. */
	bool live;
	/* Find objects by their numbers, all below this, and only in
	 * cache_replay; 0: by their keys. */
	uint32_t n_numbers;
	/* Each entry's index slot, record and policy bytes count, too. */
	bool count_metadata;
	/* The policy's own (struct plugin), for init; NULL: the defaults. */
	const void *options;
	/* Admit only the objects of which this is true; NULL: any. */
	bool (*allowed)(void *allowed_ctx, uint64_t key);
	void *allowed_ctx;
	/* The importance of an object to the training, as a loader announces
	 * it: finite, 0 or more; 0 until it does. For all hooks but init. */
	double (*importance)(const void *importance_ctx, uint64_t key);
	const void *importance_ctx; /* NULL hook: that of all is 0 */
	/* The class of an object, below n_labels, of which some may have no
	 * objects: the first folder of its file's path. For all hooks. */
	uint32_t (*label)(const void *label_ctx, uint64_t key);
	const void *label_ctx; /* NULL hook: all are of one class */
	uint32_t n_labels;
	/* With count_metadata: what an object takes in the host besides its
	 * bytes. A policy's init gets the whole overhead here. */
	uint64_t overhead_bytes;
};

struct policy_ops {
	struct plugin plugin;
	size_t entry_size;
	/* Further metadata bytes per entry, on average, besides ghosts. */
	size_t overhead_bytes;
	/* Ghosts per cached object, when all objects have the same size. */
	uint32_t n_ghosts;
	/* Caches nothing: reads reach the device as requested, not as whole
	 * objects. */
	bool bypass;
	/* Needs next_use: simulators only. */
	bool offline;
	/* NULL: the zeroed state is enough. -ENOMEM, -EINVAL. */
	int (*init)(void *state, const struct policy_params *params,
		    struct err *err);
	/* After init, even a failed one. NULL: nothing to release. */
	void (*fini)(void *state);
	/*
	 * Admit this object (making room if need be)? Called once per miss,
	 * also for an object larger than the capacity, which is never admitted.
	 * False also if the policy has no memory for it. NULL: yes.
	 *
	 * `ghost`: what the policy remembers of the object, or NULL. If the
	 * result is true, the ghost ends: admit takes it out of its queue.
	 */
	bool (*admit)(void *state, const struct cache_object *object,
		      struct cache_entry *ghost);
	/* It was admitted. NULL: the policy keeps no record. */
	void (*inserted)(void *state, struct cache_entry *entry,
			 const struct cache_object *object);
	/* It was accessed again; `next_use` as of the object. NULL: not
	 * relevant. */
	void (*hit)(void *state, struct cache_entry *entry, uint64_t next_use);
	/* Its importance has changed. NULL: the policy does not use it. */
	void (*reweighed)(void *state, struct cache_entry *entry);
	/* It was removed: as the victim, or by the host. */
	void (*removed)(void *state, struct cache_entry *entry);
	/*
	 * The victim that makes room for the object admitted last; the cache is
	 * not empty. The cache removes it at once. NULL hook: never evict.
	 */
	struct cache_entry *(*victim)(void *state);
	/* A ghost to forget, already out of its queue; NULL: no more. Called
	 * after each miss. NULL hook: there are no ghosts. */
	struct cache_entry *(*forget)(void *state);
	/* A hint: the object will be accessed soon. Prefetch what a hit or
	 * admit reads besides the entry. NULL: nothing. */
	void (*expect)(const void *state, uint64_t key);
};

extern const struct plugin *const policy_table[];

/*
 * How many objects of the dataset's mean size fit into the capacity. A policy
 * may size its own memory by it. At least 16, at most 2^26.
 */
size_t policy_expected_entries(const struct policy_params *params);

#endif

/* SPDX-License-Identifier: MIT */
/*
 * Plug-in kind `policy`: which objects a cache admits and which one leaves.
 *
 * A policy is pure bookkeeping: no lock (it is called under the cache's), no
 * I/O, no clock, so that gpemu-fs and gpemu-cachesim run the same code. The
 * cache does the rest: it looks objects up, counts, keeps the capacity.
 *
 * object not cached: admit? -> victim, removed (until it fits) -> inserted
 * object cached:     hit
 * dropped by control: removed, without victim before it
 *
 * Memory: its state, `entry_size` bytes with each entry, and what init (or
 * admit, for arrays that grow with the cache) allocates; that is bounded by
 * the number of objects that the capacity holds, and reported by `memory`.
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

/* What the cache is asked for: a file, or one extent of a large file. */
struct cache_object {
	uint64_t key;
	uint64_t bytes;	     /* of this object; counts against the capacity */
	uint64_t file_bytes; /* of the file it belongs to */
	/* When it is asked for next, as a number of requests since the cache
	 * was made (the first request is 0); only for offline policies. */
	uint64_t next_use;
};

/*
 * An object that is cached. Policies read `key` and `bytes` (what it takes of
 * the capacity, metadata included where that is counted); the rest is the
 * cache's. The policy's `entry_size` bytes are behind it.
 */
struct cache_entry {
	uint64_t key;
	uint64_t bytes;
	void *user;
	uint32_t number;
	bool cached;
	max_align_t data[];
};

/* `entry_size` zeroed bytes, aligned for any type. */
static inline void *cache_entry_data(struct cache_entry *entry)
{
	return entry->data;
}

/* Back from cache_entry_data. */
static inline struct cache_entry *cache_entry_of(void *data)
{
	return (struct cache_entry *)((char *)data -
				      offsetof(struct cache_entry, data));
}

struct policy_params {
	uint64_t capacity_bytes;
	uint64_t seed;
	/* sizes of all files of the dataset, ascending; borrowed for init */
	const uint64_t *file_bytes;
	size_t n_files;
	/* larger files come in several objects of this size; 0: in one */
	uint64_t max_object_bytes;
	/* The host fills in next_use. Without, offline policies fail. */
	bool knows_future;
	/* Each entry also takes its share of index, entry and policy. */
	bool count_metadata;
	/* The policy's own (struct plugin), for init; NULL: the defaults. */
	const void *options;
	/* With that counted, what an object takes besides its bytes: in the
	 * host; a policy's init is told of all of it. */
	uint64_t overhead_bytes;
};

struct policy_ops {
	struct plugin plugin;
	size_t entry_size;
	/* More bytes of metadata that an entry costs, on average (ghosts). */
	size_t overhead_bytes;
	/* Caches nothing, and reads reach the device as they were asked for
	 * rather than a whole object at a time. */
	bool bypass;
	/* Needs next_use: for simulators. */
	bool offline;
	/* NULL: the zeroed state will do. -ENOMEM, -EINVAL. */
	int (*init)(void *state, const struct policy_params *params,
		    struct err *err);
	/* After init, also a failed one. NULL: nothing to release. */
	void (*fini)(void *state);
	/*
	 * May this object come in (making room if need be)? Asked once for
	 * each miss, also of an object larger than the capacity, which does
	 * not come in. False also where the policy has no memory for it.
	 * NULL: yes.
	 */
	bool (*admit)(void *state, const struct cache_object *object);
	/* It came in. NULL: the policy keeps no record. */
	void (*inserted)(void *state, struct cache_entry *entry,
			 const struct cache_object *object);
	/* It was asked for again. NULL: does not matter. */
	void (*hit)(void *state, struct cache_entry *entry,
		    const struct cache_object *object);
	/* It left: as the victim, or because somebody dropped it. */
	void (*removed)(void *state, struct cache_entry *entry);
	/*
	 * Who leaves next, for the object that was admitted last; the cache is
	 * not empty. The cache removes it at once. NULL hook: nobody ever.
	 */
	struct cache_entry *(*victim)(void *state);
};

extern const struct plugin *const policy_table[];

/*
 * How many objects of the dataset's mean size the capacity holds: what a
 * policy may size its own memory by. At least 16, at most 2^26.
 */
size_t policy_expected_entries(const struct policy_params *params);

#endif

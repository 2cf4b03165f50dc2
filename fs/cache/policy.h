/* SPDX-License-Identifier: MIT */
/*
 * Plug-in kind `policy`: which objects a cache admits and which one leaves.
 *
 * A policy is pure bookkeeping: no lock (it is called under the cache's), no
 * I/O, no clock, no memory of its own beyond its state and `entry_size` bytes
 * with each entry, so that gpemu-fs and gpemu-cachesim run the same code.
 * The cache does the rest: it looks objects up, counts, keeps the capacity.
 *
 *	object not cached:  admit? -> victim, removed (until it fits) ->
 *inserted object cached:      hit dropped by control: removed
 */
#ifndef GPEMU_FS_CACHE_POLICY_H
#define GPEMU_FS_CACHE_POLICY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/err.h"
#include "common/plugin.h"

/* What the cache is asked for: a file, or one extent of a large file. */
struct cache_object {
	uint64_t key;
	uint64_t bytes;	     /* of this object; counts against the capacity */
	uint64_t file_bytes; /* of the file it belongs to */
};

/* An object that is cached. The policy's bytes are behind it. */
struct cache_entry;

/* `entry_size` zeroed bytes, aligned for any type. */
void *cache_entry_data(struct cache_entry *entry);
/* Back from cache_entry_data. */
struct cache_entry *cache_entry_of(void *data);

struct policy_params {
	uint64_t capacity_bytes;
	uint64_t seed;
	/* sizes of all files of the dataset, ascending; borrowed for init */
	const uint64_t *file_bytes;
	size_t n_files;
};

struct policy_ops {
	struct plugin plugin;
	size_t entry_size;
	/* Caches nothing, and reads reach the device as they were asked for
	 * rather than a whole object at a time. */
	bool bypass;
	/* NULL: the zeroed state will do. -ENOMEM, -EINVAL. */
	int (*init)(void *state, const struct policy_params *params,
		    struct err *err);
	/* After init, also a failed one. NULL: nothing to release. */
	void (*fini)(void *state);
	/* May this object come in (making room if need be)? NULL: yes. */
	bool (*admit)(void *state, const struct cache_object *object);
	/* It came in. NULL: the policy keeps no record. */
	void (*inserted)(void *state, struct cache_entry *entry,
			 const struct cache_object *object);
	/* It was asked for again. NULL: does not matter. */
	void (*hit)(void *state, struct cache_entry *entry);
	/* It left: as the victim, or because somebody dropped it. */
	void (*removed)(void *state, struct cache_entry *entry);
	/* Who leaves next; the cache is not empty. NULL hook: nobody ever. */
	struct cache_entry *(*victim)(void *state);
};

extern const struct plugin *const policy_table[];

#endif

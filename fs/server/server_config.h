/* SPDX-License-Identifier: MIT */
/* What a server is made of. */
#ifndef GPEMU_FS_SERVER_SERVER_CONFIG_H
#define GPEMU_FS_SERVER_SERVER_CONFIG_H

#include <stdbool.h>
#include <stdint.h>

#include "common/units.h"
#include "fs/cache/tier.h"
#include "fs/source/group.h"
#include "fs/source/source.h"

struct peer_net;
struct trace;

struct server_config {
	struct tick *tick; /* borrowed, as are all pointers below */
	const struct source_ops *source;
	void *source_state;
	const struct tree *tree;
	const char *storage; /* profile name or path */
	const char *cache_policy;
	struct units_capacity cache_size;
	/* Instead of the two above: several caches behind each other, each with
	 * one policy and one size. NULL or empty: a single cache. */
	const struct tiers *tiers;
	enum tier_admit admit;
	/* The caches hold no bytes: each reader reads the source, and the sizes
	 * may exceed the memory. */
	bool bytes_in_source;
	bool cache_metadata; /* metadata of each object counts, too */
	uint64_t seed;
	const char *layers; /* words from the top; NULL: LAYERS_DEFAULT */
	const struct group_map *groups; /* NULL: each file is read alone */
	struct trace *trace;		/* NULL: no trace */
	/* The nodes of a partitioned cache; NULL: this one is alone. */
	const struct peer_net *peers;
	/* bytes of prefetched members before their first read; 0: 64 MiB, or
	 * two of the largest groups where that is more */
	uint64_t group_buffer;
	/* Bytes of objects fetched before they are requested, and how many of
	 * them are in flight at once; 0: none are. */
	uint64_t prefetch_bytes;
	uint64_t prefetch_depth;
	/* Bytes of files outside the cache (fs/server/budget.h); 0: 256 MiB, or
	 * an eighth of the memory where that is less. */
	uint64_t memory;
	/* A byte of the writable folder stands for 1 / this many; 0: for one.
	 */
	double writable_scale;
	/* Clients speak the protocol of the device themselves: no buffer of a
	 * client is before it, and its limits of a prefix are theirs to hold,
	 * so that it has no cap of requests. */
	bool is_store;
};

#endif

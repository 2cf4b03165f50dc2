/* SPDX-License-Identifier: MIT */
/* The state of a simulation's mounts: their configuration, what each node has,
 * a read on its way. For the files that make them up: life, placement and
 * numbers (sim_mounts.h), reads and fetches ahead (sim_read.h). */
#ifndef GPEMU_LOADER_SIM_SIM_OWN_H
#define GPEMU_LOADER_SIM_SIM_OWN_H

#include <jansson.h>

#include "common/util.h"
#include "fs/cache/cache_stack.h"
#include "fs/device/device.h"
#include "fs/layer/ahead.h"
#include "fs/peer/place.h"
#include "fs/server/visit.h"
#include "fs/source/importance.h"
#include "fs/source/tree.h"
#include "fs/config/fs_config.h"
#include "net/nic.h"

/* How the caches of the nodes work together: which node serves a miss
 * (owner_of() in sim_mounts.c), and what a node may keep (allowed()). */
enum sim_caches {
	SIM_CACHES_PRIVATE,	/* each has its own */
	SIM_CACHES_PARTITIONED, /* gpemu-fs --peers */
};

struct sim_mounts_config {
	const struct fs_config *fs;
	const struct tree *tree;
	uint32_t nodes;
	uint64_t seed;
	enum sim_caches caches;
	bool shared_storage;   /* one device for all nodes */
	const uint32_t *shard; /* n_shards: nodes of the tree that stay open */
	uint32_t n_shards;
};

struct train_sim_read {
	uint32_t file;	/* its node of the tree */
	uint32_t piece; /* the next object, or read without a cache */
	uint32_t end;	/* the piece after the last */
	uint32_t owner; /* of the object on its way, if another node has it */
	uint32_t stage;
	uint32_t reader; /* its number; SIM_NOBODY: a fetch ahead */
	uint32_t tier;	 /* of a fetch: where the object was found, or none */
	uint64_t sent;	 /* when its message had left */
	uint32_t shard;	 /* of a sample that is a part of one */
	uint64_t at, to; /* its next byte, and the end of its bytes */
};

#define SIM_NOBODY UINT32_MAX
#define SIM_READ_DONE UINT64_MAX
#define SIM_READ_WAITS (UINT64_MAX - 1)

struct sim_counts {
	uint64_t hits, misses, hit_bytes, miss_bytes;
	uint64_t backend_reads, backend_bytes; /* of devices below the caches */
	uint64_t writes, bytes_written, syncs; /* of them */
	uint64_t peer_hits, peer_bytes;	       /* misses that a node served */
	uint64_t ahead[AHEAD_COUNTS];	       /* fetches ahead */
};

struct own_tier {
	struct own *own;
	struct device *device; /* NULL: a hit is free */
	/* partitioned: what it keeps; NULL: as the first tier */
	uint64_t *kept;
};

/* An object fetched ahead. Lives until it is neither staged nor in flight. */
struct own_ahead {
	struct ahead_item item;
	struct train_sim_read read; /* the fetch */
	bool hit, landed;
	uint32_t reader; /* that waits for it, or SIM_NOBODY */
};

/* Objects of shards in flight, which further reads join, by a hash of their
 * keys: one that meets another in the table is forgotten. arbitrary: some
 * hundred reads are in flight */
enum { OWN_FLIGHTS_LOG2 = 12 };
struct own_flight {
	uint64_t key, ready_ns;
};

/* One node's. */
struct own {
	struct sim_mounts *all;
	uint32_t node;
	struct cache_stack caches;
	struct own_tier tier[TIERS_MAX];
	struct device *device;
	struct nic *nic;
	struct ahead ahead;
	bool called;		   /* there may be more to fetch ahead */
	struct own_ahead **flying; /* ahead.depth: in flight, or NULL */
	struct sim_counts counts;
	struct visit *shard; /* c.n_shards, open all the time */
	uint64_t epoch;
	struct own_flight *flight; /* 1 << OWN_FLIGHTS_LOG2; with shards */
};

struct sim_mounts {
	struct sim_mounts_config c;
	struct tiers tiers;
	struct storage_profile *storage, *tier_storage[TIERS_MAX];
	uint64_t *sizes; /* of all files, for policies */
	struct place *place;
	struct importance importance;	/* of the tree's files */
	uint64_t tier_bytes[TIERS_MAX]; /* of a node */
	uint64_t capacity_bytes;	/* of all tiers of a node */
	double card_gb_per_s;
	bool bypass;	 /* files are read in no objects: nothing keeps them */
	bool foresees;	 /* a future has been announced */
	struct own *own; /* nodes */
};

static inline struct own_ahead *own_ahead(struct ahead_item *x)
{
	return container_of(x, struct own_ahead, item);
}

/*
 * sim_fs.c: the options of gpemu-fs that a simulation knows. Those that it does
 * not know are unknown keys: none that would change the times is silently left
 * out.
 */

/*
 * The defaults, then what `file` has (a configuration of gpemu-fs; NULL: none),
 * then each KEY=VALUE of `settings` (char *). `peers`: the caches are
 * partitioned. `left_out`: an array to which unknown keys of `file` are
 * appended, instead of refused; or NULL. -EINVAL with a text, -ENOMEM; as
 * open(2). Free with sim_fs_fini, failed or not.
 */
int sim_fs_read(struct fs_config *c, const char *file,
		const struct conf_list *settings, bool peers, json_t *left_out,
		struct err *err);
void sim_fs_fini(struct fs_config *c);
/* The caches; a policy and a size are one tier. tiers_fini even after an error.
 * -EINVAL with a text, -ENOMEM. */
int sim_fs_tiers(const struct fs_config *c, struct tiers *ret, struct err *err);
json_t *sim_fs_json(const struct fs_config *c);

#endif

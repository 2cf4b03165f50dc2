/* SPDX-License-Identifier: MIT */
/* The mounts of a simulation (sim_mounts.h), for the files that make them up:
 * life, placement and numbers (sim_mounts.c), a read (sim_read.c), fetches
 * ahead (sim_ahead.c). */
#ifndef GPEMU_LOADER_SIM_SIM_OWN_H
#define GPEMU_LOADER_SIM_SIM_OWN_H

#include "common/util.h"
#include "fs/cache/cache_stack.h"
#include "fs/device/device.h"
#include "fs/layer/ahead.h"
#include "fs/peer/place.h"
#include "fs/server/visit.h"
#include "loader/sim/sim_read.h"
#include "net/nic.h"

struct own_tier {
	struct own *own;
	struct device *device; /* NULL: a hit is free */
	/* partitioned: what it keeps; NULL: as the first tier */
	uint64_t *kept;
};

/* An object fetched ahead. Lives until it is neither staged nor in flight. */
struct own_ahead {
	struct ahead_item item;
	struct sim_read read; /* the fetch */
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
	uint64_t tier_bytes[TIERS_MAX]; /* of a node */
	uint64_t capacity_bytes;	/* of all tiers of a node */
	double card_gb_per_s;
	bool bypass;	 /* files are read in no objects: nothing keeps them */
	bool foresees;	 /* a future has been announced */
	struct own *own; /* nodes */
};

/* --- sim_ahead.c ---------------------------------------------------------- */

/* Of a node that is being made; fini, failed or not. -ENOMEM. */
int sim_ahead_init(struct own *o);
void sim_ahead_fini(struct own *o);

static inline struct own_ahead *own_ahead(struct ahead_item *x)
{
	return container_of(x, struct own_ahead, item);
}

#endif

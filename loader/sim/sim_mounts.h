/* SPDX-License-Identifier: MIT */
/*
 * The mounts of all nodes of a simulation: the time that a file takes from open
 * to its last byte. The parts that decide are those of gpemu-fs: caches and
 * policies (fs/cache), the device (fs/device/device.h), the placement of a
 * partitioned cache (fs/peer/place.h), the network card (net/nic.h), what is
 * fetched ahead (fs/layer/ahead.h).
 *
 *	open --> read an object: a tier has it -----------------> next object
 *		   | miss                                              ^
 *		   +--> the node's device ------------------------------+
 *		   |                                                   |
 *		   +--> card ~~> owner's card --> its caches, device   |
 *			 card <~~ owner's card <--------+              |
 *			  +--------------------------------------------+
 *
 * Each arrow is one call of sim_read_go (sim_read.h), which does what is due
 * and returns when to call again: the caller has a clock, the mounts have none.
 * Calls come in order of time.
 *
 * With a future (sim_read.h) objects are fetched ahead of their reads, by the
 * same arrows.
 *
 * Left out: the way through the kernel, lookups (the kernel keeps names after
 * the listing), and the real bytes. Two readers of one object at the same time
 * are rare, a step of all nodes visits a sample once: the second one finds it
 * in the cache.
 */
#ifndef GPEMU_LOADER_SIM_SIM_MOUNTS_H
#define GPEMU_LOADER_SIM_SIM_MOUNTS_H

#include <jansson.h>

#include "loader/sim/sim_own.h"

/* "private" or "partitioned". -EINVAL with a text. */
int sim_caches_parse(const char *word, enum sim_caches *ret, struct err *err);

/* What `c` points to stays in use. Errors of profiles and policies; -E2BIG: too
 * many nodes; each with a text. Free it, failed or not (NULL is allowed). */
int sim_mounts_new(const struct sim_mounts_config *c, struct sim_mounts **ret,
		   struct err *err);
void sim_mounts_free(struct sim_mounts *m);
/* GB/s of the network card that a node's cache uses; 0: none. */
double sim_mounts_card(const struct sim_mounts *m);
struct nic *sim_mounts_nic(const struct sim_mounts *m, uint32_t node);
/*
 * An operation that changes the storage of a node: of a file that is no part of
 * the dataset, whose number `object` no other has. `now` as for reads. Returns
 * its end.
 */
uint64_t sim_mounts_change(struct sim_mounts *m, uint32_t node,
			   enum storage_op op, uint64_t object, uint64_t offset,
			   uint64_t bytes, uint64_t now);
/* Time until each node has read a file of so many bytes back, all at once, and
 * nothing else. -ENOMEM. */
int sim_mounts_read_back(const struct sim_mounts *m, uint64_t bytes,
			 uint64_t *ret_ns);
/* The owner of each of `n` samples, whose nodes of the tree are `file`, as
 * struct order_input has it; malloc'ed. NULL: the caches are private. -ENOMEM.
 */
int sim_mounts_owners(const struct sim_mounts *m, const uint32_t *file,
		      size_t n, uint32_t **ret);

/* What policies know of `n` samples from then on, before the first read; `file`
 * as above. -ENOMEM. */
int sim_mounts_weigh(struct sim_mounts *m, const uint32_t *file,
		     const float *importance, size_t n);

/* Of a node since the last call; its next epoch begins. */
struct sim_counts sim_mounts_take_counts(struct sim_mounts *m, uint32_t node);
void sim_counts_add(struct sim_counts *sum, const struct sim_counts *n);
/* As a mount's stats (gpemu-fs(1)) have them. */
json_t *sim_counts_json(const struct sim_counts *n);
/* The configuration and the capacity: a mount's stats without the counters. */
json_t *sim_mounts_json(const struct sim_mounts *m);

#endif

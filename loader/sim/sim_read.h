/* SPDX-License-Identifier: MIT */
/* A file on its way from the mount of a node (sim_mounts.h), or an object that
 * is fetched ahead of its read. */
#ifndef GPEMU_LOADER_SIM_SIM_READ_H
#define GPEMU_LOADER_SIM_SIM_READ_H

#include "fs/source/future.h"
#include "loader/sim/sim_own.h"

/* Open `file`; `reader` is the caller's. */
void sim_read_open(struct train_sim_read *r, uint32_t file, uint32_t reader);
/* The bytes from `at` up to `to` of the container `shard`, whose node of the
 * tree is `file`, and which stays open. */
void sim_read_part(struct train_sim_read *r, uint32_t file, uint32_t shard,
		   uint64_t at, uint64_t to, uint32_t reader);
/*
 * Continue at `now`, on the mount of `node`. The time of the next call;
 * SIM_READ_DONE: the last byte is there now; SIM_READ_WAITS: the next call
 * follows when sim_ahead_fetch returns the reader.
 */
uint64_t sim_read_go(struct sim_mounts *m, uint32_t node,
		     struct train_sim_read *r, uint64_t now);

/*
 * --- fetches ahead --------------------------------------------------------
 *
 * Clairvoyant prefetching (NoPFS) on the mounts of a simulation: the order of
 * the samples to come decides which node keeps what (fs/peer/foresee.h), and
 * what is fetched next (fs/layer/ahead.h). The thread of
 * fs/layer/layer_prefetch.c is events of the caller here:
 *
 *	sim_ahead_next --> sim_ahead_fetch ... sim_ahead_fetch --> landed
 */

/* Do the mounts fetch ahead? */
bool sim_ahead_is_on(const struct sim_mounts *m);
/* The accesses of all nodes. The first future places what a partitioned cache
 * keeps. Takes references. -ENOMEM with a text. */
int sim_ahead_announce(struct sim_mounts *m, struct future *f, struct err *err);

/* Begin a fetch on the mount of `node`, if one is due: 1, *ret is its number;
 * continue it at once. 0: none is. -ENOMEM. */
int sim_ahead_next(struct sim_mounts *m, uint32_t node, uint32_t *ret);
/* Continue a fetch at `now`. The time of the next call, or SIM_READ_DONE: it
 * has landed, and *ret_reader, or SIM_NOBODY, goes on. */
uint64_t sim_ahead_fetch(struct sim_mounts *m, uint32_t node, uint32_t fetch,
			 uint64_t now, uint32_t *ret_reader);

/* Of a node that is being made; fini, failed or not. -ENOMEM. */
int sim_ahead_init(struct own *o);
void sim_ahead_fini(struct own *o);

#endif

/* SPDX-License-Identifier: MIT */
/*
 * Clairvoyant prefetching (NoPFS) on the mounts of a simulation: the order of
 * the samples to come decides which node keeps what (fs/peer/foresee.h), and
 * what is fetched next (fs/layer/ahead.h). The thread of
 * fs/layer/layer_prefetch.c is events of the caller here:
 *
 *	sim_ahead_next --> sim_ahead_fetch ... sim_ahead_fetch --> landed
 */
#ifndef GPEMU_LOADER_SIM_SIM_AHEAD_H
#define GPEMU_LOADER_SIM_SIM_AHEAD_H

#include "fs/source/future.h"
#include "loader/sim/sim_read.h"

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

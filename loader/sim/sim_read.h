/* SPDX-License-Identifier: MIT */
/* A file on its way from the mount of a node (sim_mounts.h), or an object that
 * is fetched ahead of its read (sim_ahead.h). */
#ifndef GPEMU_LOADER_SIM_SIM_READ_H
#define GPEMU_LOADER_SIM_SIM_READ_H

#include "loader/sim/sim_own.h"

/* Open `file`; `reader` is the caller's. */
void sim_read_open(struct sim_read *r, uint32_t file, uint32_t reader);
/* The bytes from `at` up to `to` of the container `shard`, whose node of the
 * tree is `file`, and which stays open. */
void sim_read_part(struct sim_read *r, uint32_t file, uint32_t shard,
		   uint64_t at, uint64_t to, uint32_t reader);
/* Ask the caches of `node` for an object, to fetch it. true: they had it. */
bool sim_read_object(struct sim_mounts *m, uint32_t node, struct sim_read *r,
		     uint64_t key);
/*
 * Continue at `now`, on the mount of `node`. The time of the next call;
 * SIM_READ_DONE: the last byte is there now; SIM_READ_WAITS: the next call
 * follows when sim_ahead_fetch returns the reader.
 */
uint64_t sim_read_go(struct sim_mounts *m, uint32_t node, struct sim_read *r,
		     uint64_t now);

#endif

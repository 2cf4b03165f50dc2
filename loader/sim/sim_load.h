/* SPDX-License-Identifier: MIT */
/*
 * The loader of a node: the windows and batches of loader/core, and slots as in
 * loader/pipeline/worker.h, without bytes. A worker of an engine that owns
 * batches has one slot, and reads one sample after the other; of any other
 * engine as many as reads are in flight.
 */
#ifndef GPEMU_LOADER_SIM_SIM_LOAD_H
#define GPEMU_LOADER_SIM_SIM_LOAD_H

#include "loader/sim/sim_node.h"

/* -ENOMEM. sim_load_fini, failed or not. */
int sim_load_init(struct sim_node *n);
void sim_load_fini(struct sim_node *n);
/* Begin the fetches ahead that are due. */
void sim_load_ahead(struct sim_node *n, uint64_t now);
/* An epoch of `samples` begins. */
void sim_load_begin(struct sim_node *n, uint64_t samples, uint64_t now);
/* An event of a slot, of a fetch, of a batch. */
void sim_load_read(struct sim_node *n, uint32_t slot, uint64_t now);
void sim_load_fetch(struct sim_node *n, uint32_t fetch, uint64_t now);
void sim_load_batch(struct sim_node *n, uint32_t batch, uint64_t now);
/* The number of a batch, for its release. */
uint32_t sim_load_index(const struct sim_node *n, const struct batch *b);
/* It is in nobody's hands: the loader may go on. */
void sim_load_release(struct sim_node *n, uint32_t index, uint64_t now);

#endif

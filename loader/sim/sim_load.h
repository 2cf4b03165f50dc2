/* SPDX-License-Identifier: MIT */
/*
 * The loader of a node: windows, leases, slots and batches as in
 * loader/pipeline/flow.h and worker.h, without bytes. A worker of an engine
 * that owns batches has one slot, and reads one sample after the other; of any
 * other engine as many as reads are in flight.
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
/* The next batch, complete; NULL: there is none now. */
struct sim_batch *sim_load_next(struct sim_node *n);
/* It is in nobody's hands: the loader may go on. */
void sim_load_release(struct sim_node *n, uint32_t window, uint64_t now);
uint32_t sim_load_window(const struct sim_node *n, const struct sim_batch *b);

#endif

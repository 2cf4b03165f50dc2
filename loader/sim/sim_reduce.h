/* SPDX-License-Identifier: MIT */
/*
 * The all-reduce of a step of all nodes (loader/nodes/sync.h). Where the
 * gradients share the network cards of the caches, each node books them on its
 * card once it has its next batch, as loader/nodes/card.h does on a mount's;
 * the step ends as late as on the node whose card delays it most.
 *
 *	sim_reduce_begin	all nodes have computed their part
 *	sim_reduce_look		a node may have its next batch: it books
 *	sim_reduce_wait		SIM_REDUCED: its gradients are reduced, or later
 *	sim_reduce_end		all nodes' are
 */
#ifndef GPEMU_LOADER_SIM_SIM_REDUCE_H
#define GPEMU_LOADER_SIM_SIM_REDUCE_H

#include "loader/sim/sim_node.h"

void sim_reduce_begin(struct sim *s, uint64_t now);
/* After every event of the node. */
void sim_reduce_look(struct sim_node *n, uint64_t now);
void sim_reduce_wait(struct sim_node *n, uint64_t now);
/* false: it goes on. Else what sim_step_settle needs. */
bool sim_reduce_end(struct sim *s, struct gpus_reach *ret_all,
		    uint64_t *ret_reduced);

#endif

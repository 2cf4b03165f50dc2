/* SPDX-License-Identifier: MIT */
/*
 * The pin stage, the training loop and the GPUs of a node, as in
 * loader/pipeline/pin.c, loader/train/train.c and emu/gpu/device_local.c. The
 * training loop is free from `free_ns` on; it takes the next batch when there
 * is one. A step that other nodes take part in stays open until all have
 * computed theirs; the batch that comes next is held as long.
 */
#ifndef GPEMU_LOADER_SIM_SIM_STEP_H
#define GPEMU_LOADER_SIM_SIM_STEP_H

#include "loader/sim/sim_node.h"

int sim_step_init(struct sim_node *n);
void sim_step_fini(struct sim_node *n);
void sim_step_begin(struct sim_node *n, uint64_t samples, uint64_t now);
/* Take what there is; call after every event of the node. */
void sim_step_look(struct sim_node *n, uint64_t now);
void sim_step_release(struct sim_node *n, uint32_t what, uint64_t now);
/* The checkpoint lets the training loop go on. */
void sim_step_go_on(struct sim_node *n, uint64_t now);
/* The step of all nodes is over at `reduced`, or will be. */
void sim_step_settle(struct sim *s, const struct gpus_reach *all,
		     uint64_t reduced, uint64_t now);

#endif

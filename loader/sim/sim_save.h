/* SPDX-License-Identifier: MIT */
/* Checkpoints of a node: their events. */
#ifndef GPEMU_LOADER_SIM_SIM_SAVE_H
#define GPEMU_LOADER_SIM_SIM_SAVE_H

#include "loader/sim/sim_node.h"

/* An event of SIM_SAVE. */
void sim_save_happen(struct sim_node *n, uint32_t which, uint64_t now);

#endif

/* SPDX-License-Identifier: MIT */
/*
 * A training run on an event clock: many nodes, no threads, no bytes, no sleep.
 * What decides is the code of a real run: the order, the caches and devices of
 * the mounts (sim_mounts.h), costs and timing of the GPUs (emu/gpu/gpus.h), the
 * step of several nodes (loader/nodes/sync.h), the accounts
 * (loader/account/account.h). docs/simulation.md says what is left out.
 *
 * The same configuration gives the same times, to the ns.
 */
#ifndef GPEMU_LOADER_SIM_SIM_H
#define GPEMU_LOADER_SIM_SIM_H

#include "loader/sim/sim_node.h"

/* -ENOMEM, and errors of the transforms; with a text. */
int sim_new(const struct sim_config *c, struct train_sim **ret,
	    struct err *err);
/* NULL is allowed. */
void sim_free(struct train_sim *s);

/*
 * One epoch of `samples` on each node, in the order that the schedule has, from
 * `now` on: the nodes begin together. *ret_end: the last one has ended.
 * accounts[nodes] are filled in. -ENOMEM.
 */
int sim_epoch(struct train_sim *s, uint64_t epoch, uint64_t samples,
	      uint64_t now, struct train_account *accounts, uint64_t *ret_end,
	      struct err *err);

/* No epoch follows: wait until all checkpoints are written. Returns when. */
uint64_t sim_drain(struct train_sim *s, uint64_t now);

/* As sim_fail_json. */
json_t *sim_failures(const struct train_sim *s);

/* How much the traffic of the caches has delayed the gradients of a node. */
uint64_t sim_card_ns(const struct train_sim *s, uint32_t node);

#endif

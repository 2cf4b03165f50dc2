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

#include "emu/gpu/device.h"
#include "loader/account/account.h"
#include "loader/nodes/sync.h"
#include "loader/order/schedule.h"
#include "loader/pipeline/pipeline.h"
#include "loader/sim/sim_mounts.h"

/* What it points to stays in use. */
struct sim_config {
	const struct pipeline_config *pipeline; /* of each node */
	const struct device_job *job;		/* of each node */
	const struct schedule *schedule;	/* `whole`, of all nodes */
	uint32_t nodes;
	/* the nodes reduce gradients: their steps end together; its comm has
	 * their number. NULL: they do not */
	struct sync *sync;
	bool on_cards; /* their gradients share the network cards of the mounts
			*/
	struct sim_mounts *mounts;
	const uint32_t *file; /* of each sample: its node of the tree; with
			       * containers: of each of these */
};

struct sim;

/* -ENOMEM, and errors of the transforms; with a text. */
int sim_new(const struct sim_config *c, struct sim **ret, struct err *err);
/* NULL is allowed. */
void sim_free(struct sim *s);

/*
 * One epoch of `samples` on each node, in the order that the schedule has, from
 * `now` on: the nodes begin together. *ret_end: the last one has ended.
 * accounts[nodes] are filled in. -ENOMEM.
 */
int sim_epoch(struct sim *s, uint64_t epoch, uint64_t samples, uint64_t now,
	      struct account *accounts, uint64_t *ret_end, struct err *err);

/* How much the traffic of the caches has delayed the gradients of a node. */
uint64_t sim_card_ns(const struct sim *s, uint32_t node);

#endif

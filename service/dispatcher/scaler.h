/* SPDX-License-Identifier: MIT */
/*
 * Private to the dispatcher: how many workers its jobs need, by the formula of
 * service/decide/scale.h, from what trainers and workers report.
 */
#ifndef GPEMU_SERVICE_DISPATCHER_SCALER_H
#define GPEMU_SERVICE_DISPATCHER_SCALER_H

#include "service/dispatcher/state.h"

/* A worker takes `ns` for a batch of the job, a trainer `ns` to use one; of
 * several the fastest counts. */
void scaler_cost(struct dispatcher *d, uint64_t job, uint64_t worker,
		 uint64_t ns);
void scaler_target(struct guest *trainer, uint64_t ns);
/* Before each round: tell the fleet. */
void scaler_round(struct dispatcher *d);

#endif

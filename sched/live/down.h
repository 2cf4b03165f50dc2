/* SPDX-License-Identifier: MIT */
/*
 * Nodes whose server grants no GPUs, as it does not answer or refuses. Policies
 * start nothing on their GPUs (struct node, down) for a pause, which doubles
 * with each failure in a row.
 */
#ifndef GPEMU_SCHED_LIVE_DOWN_H
#define GPEMU_SCHED_LIVE_DOWN_H

#include "sched/live/run.h"

struct live_down {
	uint32_t n_failed; /* in a row */
	uint64_t until_ns; /* wall; 0: it is up */
};

/* The server of the node's GPUs failed, or granted some. */
void down_begin(struct live *l, uint32_t node);
void down_never(struct live *l, uint32_t node);
/* Nodes whose pause is over are up: the policy decides again. */
void down_end(struct live *l);
/* Wall ns until the next pause is over; TICK_NEVER: all nodes are up, or
 * the run ends. */
uint64_t down_left(const struct live *l);

#endif

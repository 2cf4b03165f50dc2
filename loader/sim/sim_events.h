/* SPDX-License-Identifier: MIT */
/*
 * The event clock: what happens next, in order of time; events of the same time
 * in the order in which they were added. Nobody waits.
 */
#ifndef GPEMU_LOADER_SIM_SIM_EVENTS_H
#define GPEMU_LOADER_SIM_SIM_EVENTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct train_sim_event {
	uint64_t at; /* ns */
	uint64_t number;
	uint32_t node, what; /* the user's */
};

/* All zeros is empty. */
struct sim_events {
	struct train_sim_event *heap;
	size_t n, allocated;
	uint64_t added; /* so far */
	bool failed;	/* out of memory: events are missing */
};

void sim_events_fini(struct sim_events *e);
void sim_events_add(struct sim_events *e, uint64_t at, uint32_t node,
		    uint32_t what);
/* Take the next one; false: there is none. */
bool sim_events_next(struct sim_events *e, struct train_sim_event *ret);

#endif

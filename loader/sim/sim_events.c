/* SPDX-License-Identifier: MIT */
#include "loader/sim/sim_events.h"

#include <stdlib.h>

#include "common/heap.h"
#include "common/util.h"

static inline bool before(const struct train_sim_event *a,
			  const struct train_sim_event *b)
{
	return a->at != b->at ? a->at < b->at : a->number < b->number;
}

DEFINE_HEAP(event, struct train_sim_event, before, heap_unplaced)

void sim_events_fini(struct sim_events *e)
{
	free(e->heap);
	*e = (struct sim_events){ 0 };
}

void sim_events_add(struct sim_events *e, uint64_t at, uint32_t node,
		    uint32_t what)
{
	if (util_reserve(&e->heap, &e->allocated, e->n + 1, sizeof(*e->heap)) <
	    0) {
		e->failed = true;
		return;
	}
	e->heap[e->n++] =
		(struct train_sim_event){ at, e->added++, node, what };
	event_up(e->heap, e->n - 1);
}

bool sim_events_next(struct sim_events *e, struct train_sim_event *ret)
{
	if (e->n == 0)
		return false;
	*ret = e->heap[0];
	e->heap[0] = e->heap[--e->n];
	event_fix(e->heap, e->n, 0);
	return true;
}

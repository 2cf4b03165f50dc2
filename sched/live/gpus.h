/* SPDX-License-Identifier: MIT */
/*
 * The GPUs of live jobs on servers (--gpu-server): each job has a grant of
 * gpemu-gpud (gpud_proto.h), for the GPUs that the placement has chosen, and on
 * each of them
 *
 *	a share of a GPU	that part of its time and of its memory
 *	gpu_busy is known	the memory that the job needs; it shares the
 *				time with those beside it, as the server says
 *	else			all
 *
 * The server numbers the GPUs of a node like the node or, where one server is
 * for all nodes, those of all nodes in their order.
 */
#ifndef GPEMU_SCHED_LIVE_GPUS_H
#define GPEMU_SCHED_LIVE_GPUS_H

#include "sched/live/run.h"

/*
 * A node whose server grants no GPUs, as it does not answer or refuses.
 * Policies start nothing on its GPUs (struct sched_node, down) for a pause,
 * which doubles with each failure in a row.
 */
struct live_down {
	uint32_t n_failed; /* in a row */
	uint64_t until_ns; /* wall; 0: it is up */
};

/* Nodes whose pause is over are up: the policy decides again. */
void down_end(struct live *l);
/* Wall ns until the next pause is over; TICK_NEVER: all nodes are up, or
 * the run ends. */
uint64_t down_left(const struct live *l);

/* Are the servers there, with as many GPUs as the nodes, and at our time scale?
 * -EINVAL, or errors of gpud_query; with a text. */
int gpus_check(const struct live *l, struct err *err);
/* Grant the job what the policy gives it. *ret: the socket, malloc'ed; NULL: it
 * needs none. 1, with a text: the server does not answer, or refuses; policies
 * start nothing on its GPUs for a while. -EINVAL: its GPUs are those of several
 * servers; -ENOMEM; with a text. */
int gpus_give(struct live *l, uint32_t job, char **ret, struct err *err);
/* Its process has ended: end the grant, or warn. */
void gpus_take_back(struct live *l, uint32_t job);
/* A run goes on: end the grants of jobs of which no process runs, on all
 * servers. Those of a run that was killed before it wrote what it had granted.
 */
void gpus_clean(struct live *l);

#endif

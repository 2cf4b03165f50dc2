/* SPDX-License-Identifier: MIT */
/*
 * Where the time of a worker goes. Its own thread turns the clock, any thread
 * reads it.
 */
#ifndef GPEMU_LOADER_PIPELINE_WORKER_CLOCK_H
#define GPEMU_LOADER_PIPELINE_WORKER_CLOCK_H

#include <pthread.h>
#include <stdint.h>

#include "common/tick.h"
#include "loader/core/batch.h"

enum doing { IDLE, READING, PREPARING, N_DOING };

struct worker_clock {
	const struct tick *tick;
	pthread_mutex_t lock;
	/* lock to write, and for other threads to read */
	enum doing doing;
	uint64_t since;
	/* lock */
	uint64_t spent[N_DOING];
	/* lock: virtual cores; and their time while the worker was reading, for
	 * the first `counted_ns` of that */
	uint32_t cores;
	uint64_t core_ns, counted_ns;
};

/* Idle, from now on. */
void worker_clock_init(struct worker_clock *c, const struct tick *tick,
		       uint32_t cores);
void worker_clock_fini(struct worker_clock *c);
/* The worker turns to another activity, or goes on with the same. Returns the
 * current time. */
uint64_t worker_clock_turn(struct worker_clock *c, enum doing doing);
/* As worker_clock_turn, of a worker that has been PREPARING since `from`, and
 * did before what it was said to do. */
uint64_t worker_clock_prepared(struct worker_clock *c, uint64_t from,
			       enum doing doing);
/* From now on there are `n` virtual cores. */
void worker_clock_set_cores(struct worker_clock *c, uint32_t n);
/* What was spent until now; *ret_core_ns: the time of all virtual cores while
 * the worker was reading. */
struct activity worker_clock_read(struct worker_clock *c,
				  uint64_t *ret_core_ns);

#endif

/* SPDX-License-Identifier: MIT */
/*
 * Timers on a tick: one thread fires any number of pending deadlines, in order
 * of deadline, then of insertion. No thread sleeps for a single timer.
 *
 *	add:  timerq_add(q, &request->timer, done_ns)	any thread
 *	fire: fire(timer, false, ctx)			the queue's thread
 *	stop: fire(timer, true, ctx), all pending	the caller's thread
 *
 * The struct timer lives in its owner (container_of); from add to fire it
 * belongs to the queue. `fire` may add timers and must not block for long:
 * everything due waits behind it. It is never called before the deadline.
 */
#ifndef GPEMU_COMMON_TIMERQ_H
#define GPEMU_COMMON_TIMERQ_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/tick.h"

struct timer {
	uint64_t deadline; /* emulated ns */
	uint64_t seq;
};

typedef void (*timerq_fire_fn)(struct timer *timer, bool stopping, void *ctx);

struct timerq;

/* 0 or -ENOMEM, -EAGAIN (no thread). `tick` must be real or scaled. */
int timerq_new(struct tick *tick, timerq_fire_fn fire, void *ctx,
	       struct timerq **ret);
/* Stop the thread, then fire what is pending with `stopping`. */
void timerq_stop(struct timerq *q);
/* Stops first. No timers may be added any more. NULL is allowed. */
void timerq_free(struct timerq *q);
/* 0; -ENOMEM, -ECANCELED (stopped): not added, the timer is the caller's
 * again. */
int timerq_add(struct timerq *q, struct timer *timer, uint64_t deadline);
/* Another deadline for a pending timer. False: it fires now, has fired, or was
 * not added. Looks at all pending ones. */
bool timerq_move(struct timerq *q, struct timer *timer, uint64_t deadline);

#endif

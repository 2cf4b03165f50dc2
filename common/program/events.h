/* SPDX-License-Identifier: MIT */
/*
 * An event loop for one thread: descriptors and timers with callbacks, which
 * may remove any of them.
 */
#ifndef GPEMU_COMMON_PROGRAM_EVENTS_H
#define GPEMU_COMMON_PROGRAM_EVENTS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/epoll.h>

#include "common/tick.h"

/* Part of what it serves, which the callback finds by container_of. */
struct event {
	int fd; /* the owner's; -1: not watched */
	void (*fn)(struct event *e, uint32_t ready); /* EPOLLIN ... */
	uint32_t wanted;
};

struct event_timer {
	uint64_t at; /* wall ns, tick_wall(); TICK_NEVER: not set */
	void (*fn)(struct event_timer *t);
	struct event_timer *next;
};

enum {
	EVENTS_AT_ONCE = 64
}; /* arbitrary: a system call is small beside them */

struct events {
	int epoll_fd, n_ready;
	struct epoll_event ready[EVENTS_AT_ONCE];
	struct event_timer *timers;
};

/* 0 or -errno. */
int events_init(struct events *l);
void events_fini(struct events *l);

/* Watch e->fd. -errno. */
int events_add(struct events *l, struct event *e, uint32_t wanted);
/* Change what is waited for; one that is ready already is still called. */
void events_want(struct events *l, struct event *e, uint32_t wanted);
/* Stop watching: it is called no more, and may be freed. The descriptor stays
 * open. */
void events_remove(struct events *l, struct event *e);
/* The same, and close it. */
void events_close(struct events *l, struct event *e);

/* The timer is called once when `at` has passed, which its owner may set at any
 * time. */
void events_add_timer(struct events *l, struct event_timer *t);
void events_remove_timer(struct events *l, struct event_timer *t);

/*
 * Serve descriptors that are ready, and all timers that are due; wait for them
 * if `wait` is set. Returns whether there was a descriptor to serve, or -errno.
 */
int events_turn(struct events *l, bool wait);
/* For a program with a clock of its own, its two halves without the timers:
 * wait for descriptors, at most `ms` (-1: no limit); -errno. Serve them. */
int events_wait(struct events *l, int ms);
void events_call(struct events *l); /* not from a callback, as events_turn */

/* The timer is to be called in `ns` at the latest. */
static inline void event_timer_in(struct event_timer *t, uint64_t ns)
{
	uint64_t at = tick_wall() + ns;

	t->at = at < t->at ? at : t->at;
}

#endif

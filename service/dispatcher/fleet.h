/* SPDX-License-Identifier: MIT */
/*
 * Private to the dispatcher: the worker processes that it starts itself, as
 * many as it is told. One that is too many gets SIGTERM, and drains; one that
 * ends by itself is started again. On one thread, but fleet_wake.
 */
#ifndef GPEMU_SERVICE_DISPATCHER_FLEET_H
#define GPEMU_SERVICE_DISPATCHER_FLEET_H

#include "common/program/child.h"

/* arbitrary: processes on one machine */
enum { FLEET_MOST = 64 };

struct fleet {
	const char *command; /* of sh(1); NULL: it never starts any */
	int wake;	     /* eventfd */
	struct fleet_slot {
		struct child child;
		bool leaving, ended;
		uint64_t not_before; /* tick_wall: of the next start */
	} slot[FLEET_MOST];
	uint64_t n_started;
};

/* -errno. End with fleet_fini, failed or not. */
int fleet_init(struct fleet *f, const char *command);
/* No process may be left. */
void fleet_fini(struct fleet *f);
/* Start or drain processes, so that `n` run, then wait for fleet_wake or until
 * there is more to do. */
void fleet_step(struct fleet *f, uint32_t n);
/* Drain all, and wait for them. */
void fleet_end(struct fleet *f);
/* Any thread: fleet_step returns soon. */
void fleet_wake(struct fleet *f);

#endif

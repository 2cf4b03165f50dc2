/* SPDX-License-Identifier: MIT */
/*
 * The workers of a dispatcher. A worker is one process: it chooses a random
 * number, and a process that is started anew at the same address is another
 * worker. One that is silent for the time-out is gone.
 *
 * Pure: times are arguments, of any clock.
 */
#ifndef GPEMU_SERVICE_CORE_REGISTRY_H
#define GPEMU_SERVICE_CORE_REGISTRY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* arbitrary: what a loop has connections for, some of them trainers */
enum { REGISTRY_MOST = 384 };

struct registered {
	uint64_t id;
	char *address; /* owned; NULL: expected after a restart, not seen yet */
	uint64_t until;
	uint64_t n_batches; /* as it reports them */
	bool leaving;	    /* it gets no more splits */
};

struct registry {
	uint64_t timeout_ns;
	struct registered worker[REGISTRY_MOST];
	uint32_t n;
};

void registry_fini(struct registry *r);
struct registered *registry_find(struct registry *r, uint64_t id);
/* One that an earlier run of the dispatcher knew: it may come back within the
 * time-out. -ENOSPC. */
int registry_expect(struct registry *r, uint64_t id, uint64_t now);
/*
 * A worker is there, known or not. In *ret_old the one that was at this address
 * before, which is gone now: pass it to registry_remove; 0: none. -ENOSPC,
 * -ENOMEM.
 */
int registry_add(struct registry *r, uint64_t id, const char *address,
		 uint64_t now, uint64_t *ret_old);
/* It is alive. */
void registry_beat(struct registry *r, uint64_t id, uint64_t now);
/* One that is silent for too long; 0: none. Pass it to registry_remove. */
uint64_t registry_expired(const struct registry *r, uint64_t now);
/* When the next will be; UINT64_MAX: never. */
uint64_t registry_due(const struct registry *r);
void registry_remove(struct registry *r, uint64_t id);

#endif

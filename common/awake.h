/* SPDX-License-Identifier: MIT */
/*
 * Keeps idle processors awake, so that threads on them wake up quickly.
 *
 * A sleeping processor takes 30 to 100 us to run a woken thread: a virtual
 * machine halts with an exit to the host, bare metal leaves a deep idle state.
 * Linux lets a program bound this latency for the whole machine (PM QoS,
 * Documentation/power/pm_qos_interface.rst): while a program holds
 * /dev/cpu_dma_latency open with a value of 0, idle processors poll. Writing
 * the value wakes sleeping processors.
 *
 * This costs the power of polling processors, but no CPU time: runnable threads
 * take precedence.
 */
#ifndef GPEMU_COMMON_AWAKE_H
#define GPEMU_COMMON_AWAKE_H

#include <stdbool.h>

struct awake {
	int fd; /* < 0: unavailable, all functions are no-ops */
	bool held;
};

/* The no-op state. */
#define AWAKE_NONE ((struct awake){ .fd = -1 })

/* -EACCES, -ENOENT and others of open(2): not permitted. */
int awake_init(struct awake *a);
void awake_fini(struct awake *a);
/* One thread at a time; takes one or two microseconds if the state changes. */
void awake_hold(struct awake *a);
void awake_release(struct awake *a);

#endif

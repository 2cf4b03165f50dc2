/* SPDX-License-Identifier: MIT */
/*
 * Keep idle processors from falling asleep, for as long as it takes to wake a
 * thread on one of them quickly.
 *
 * A processor that sleeps takes 30 to 100 us to run the thread that is woken
 * on it: in a virtual machine a halt ends with an exit to the host, bare metal
 * leaves a deep idle state. Linux lets a program bound that time for the whole
 * machine (PM QoS, Documentation/power/pm_qos_interface.rst): while a 0 stands
 * in its open /dev/cpu_dma_latency idle processors poll. The one that sleeps
 * when it is written is woken by the kernel.
 *
 * It costs the power of the processors that poll; not the time of any thread,
 * as one that can run does.
 */
#ifndef GPEMU_COMMON_AWAKE_H
#define GPEMU_COMMON_AWAKE_H

#include <stdbool.h>

struct awake {
	int fd; /* < 0: cannot, and nothing below does anything */
	bool held;
};

/* What does nothing. */
#define AWAKE_NONE ((struct awake){ .fd = -1 })

/* -EACCES, -ENOENT and others of open(2): the system does not grant it. */
int awake_init(struct awake *a);
void awake_fini(struct awake *a);
/* From one thread at a time; a microsecond or two when it changes anything,
 * else nothing. */
void awake_hold(struct awake *a);
void awake_release(struct awake *a);

#endif

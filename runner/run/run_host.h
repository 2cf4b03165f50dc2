/* SPDX-License-Identifier: MIT */
/* The machine of a cell, and its state before and after. */
#ifndef GPEMU_RUNNER_RUN_RUN_HOST_H
#define GPEMU_RUNNER_RUN_RUN_HOST_H

#include <jansson.h>
#include <stdint.h>

struct host_load {
	uint64_t wall_ns;
	double load1; /* load average of the last minute */
	uint64_t
		oom_kills; /* processes killed for want of memory, since boot */
};

/* A sample of now; values missing in /proc are 0. */
void host_sample(struct host_load *ret);
/* A counter of /proc/vmstat; 0: the kernel does not report it. */
uint64_t host_vmstat(const char *name);
/* {name, kernel, machine, cpu, cpus, memory_bytes} of this machine. */
json_t *host_about(void);

#endif

/* SPDX-License-Identifier: MIT */
/* The load of the machine by other programs while a cell ran. */
#ifndef GPEMU_RUNNER_RUN_RUN_HOST_H
#define GPEMU_RUNNER_RUN_RUN_HOST_H

#include <jansson.h>
#include <stdint.h>

struct host_load {
	uint64_t wall_ns;
	double busy_s; /* busy CPU seconds of the whole machine */
	double own_s;  /* of this process and its reaped children */
	double load1;  /* load average of the last minute */
	uint64_t
		oom_kills; /* processes killed for want of memory, since boot */
};

/* A sample of now; values missing in /proc are 0. */
void host_sample(struct host_load *ret);
/*
 * {cpus, load_before, load_after, own_cpu_s, other_cpu_s, other_cpu_share}: CPU
 * time of other programs is counted in ticks of 10 ms, so unreliable below
 * 0.1 s.
 */
json_t *host_json(const struct host_load *from, const struct host_load *to);
/* {name, kernel, machine, cpu, cpus, memory_bytes} of this machine. */
json_t *host_about(void);

#endif

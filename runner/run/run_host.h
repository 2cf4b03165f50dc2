/* SPDX-License-Identifier: MIT */
/* How busy the machine was with other things while a cell ran. */
#ifndef GPEMU_RUNNER_RUN_RUN_HOST_H
#define GPEMU_RUNNER_RUN_RUN_HOST_H

#include <jansson.h>
#include <stdint.h>

struct host_load {
	uint64_t wall_ns;
	double busy_s; /* CPU seconds that all of the machine spent working */
	double own_s;  /* of this process and the children it waited for */
	double load1;  /* load average of the last minute */
};

/* Now. What /proc does not tell is 0. */
void host_sample(struct host_load *ret);
/*
 * CPU time that others took between two samples, as a share of what all CPUs
 * have to give; counted in ticks of 10 ms, so noise itself below 0.1 s.
 */
double host_other(const struct host_load *from, const struct host_load *to);
/* {cpus, load_before, load_after, own_cpu_s, other_cpu_s, other_cpu_share} */
json_t *host_json(const struct host_load *from, const struct host_load *to);
/* {name, kernel, machine, cpu, cpus, memory_bytes} of this machine. */
json_t *host_about(void);

#endif

/* SPDX-License-Identifier: MIT */
/*
 * A link shared by several devices, such as the PCIe root of the GPUs behind a
 * switch. Pure: times are arguments.
 *
 * First come, first served, and work conserving: transfers use the link one at
 * a time, in the order of the calls, which must be the order of time. Compared
 * with processor sharing, where k transfers each get 1/k of the rate, the last
 * of the overlapping transfers ends at the same time, the others earlier.
 */
#ifndef GPEMU_EMU_GPU_LINK_H
#define GPEMU_EMU_GPU_LINK_H

#include <stdint.h>

struct link {
	double bytes_per_s; /* 0: no limit */
	uint64_t busy_ns;   /* until then */
};

/* `bytes` from `at` (ns) on: when the last of them is over. */
uint64_t link_send(struct link *l, uint64_t at, uint64_t bytes);

/* The time of `bytes` without contention; 0 without a limit. */
uint64_t link_ns(double bytes_per_s, uint64_t bytes);

#endif

/* SPDX-License-Identifier: MIT */
/*
 * A link that several devices share, such as the PCIe root that the copies to
 * the GPUs of a switch go through. Pure: times are arguments.
 *
 * First come, first served, and work conserving: transfers have the link for
 * themselves one after the other, in the order of the calls, which callers
 * make in the order of time. Against a fluid share, in which k transfers each
 * get 1/k of the rate, the last of those that overlap ends at the same moment,
 * the others earlier.
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

/* What `bytes` take alone; 0 without a limit. */
uint64_t link_ns(double bytes_per_s, uint64_t bytes);

#endif

/* SPDX-License-Identifier: MIT */
/*
 * The network card in the control files, for the rank that trains on this node:
 * its gradients pass the same card as the traffic of the caches.
 *
 *	control	reduce ID WALL_NS BYTES BYTES_PER_S LATENCY_NS
 *		A bucket of gradients (net/gradients.h). ID: of the rank, any
 *		number; WALL_NS: CLOCK_MONOTONIC, when it can pass.
 *	nic	{"gb_per_s", "latency_us", "time_scale", "sent_bytes",
 *		"received_bytes", "delay_ns": {ID: how much later its buckets
 *		are reduced than alone on the card}}; {} without a card
 */
#ifndef GPEMU_FS_CONTROL_CTL_NIC_H
#define GPEMU_FS_CONTROL_CTL_NIC_H

#include "fs/control/ctl.h"

/* The command `reduce` with its arguments. -EINVAL, and as nic_reduce; with a
 * text. */
int ctl_reduce(struct ctl *ctl, char *args, struct err *err);
/* NULL: no memory. */
json_t *ctl_nic_json(struct ctl *ctl);

#endif

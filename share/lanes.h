/* SPDX-License-Identifier: MIT */
/*
 * The memory of one shared GPU, by lanes. Pure bookkeeping.
 *
 * A job holds its persistent memory as long as it is there, and needs its
 * ephemeral memory, up to a peak, while an iteration of it runs. Jobs in one
 * lane never run at the same time, so a lane is as large as the largest of
 * their peaks. Safe is
 *
 *	sum over jobs of persistent + sum over lanes of the largest ephemeral
 *		<= capacity
 *
 * since then every lane can run at once, whatever jobs run there. The rule is
 * Salus' (Yu and Chowdhury, "Fine-Grained GPU Sharing Primitives for Deep
 * Learning Applications", MLSys 2020, section 3.3): a lane of its own for a
 * job where there is room for one, else the lane that has to grow least.
 */
#ifndef GPEMU_SHARE_LANES_H
#define GPEMU_SHARE_LANES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum lanes_kind {
	LANES_SALUS,
	LANES_ONE,    /* one lane: time slicing */
	LANES_OF_OWN, /* never two jobs in a lane: separate processes */
};

struct lanes_job {
	bool there;
	uint32_t lane;
	uint64_t persistent, ephemeral; /* bytes */
};

struct lanes {
	enum lanes_kind kind;
	uint64_t capacity; /* bytes */
	uint64_t used;	   /* the left side of the rule */
	uint32_t n_max;
	uint32_t n_jobs, n_lanes; /* lanes that hold a job */
	uint64_t *size;		  /* of lane 0..n_max; 0: it is empty */
	uint32_t *members;	  /* of lane 0..n_max */
	struct lanes_job *jobs;	  /* of slot 0..n_max */
};

/* Room for `n_max` jobs. 0 or -ENOMEM; lanes_fini in either case. */
int lanes_init(struct lanes *l, enum lanes_kind kind, uint64_t capacity,
	       uint32_t n_max);
void lanes_fini(struct lanes *l);

/* The lane that such a job would get, or -ENOSPC: there is no room now. */
int lanes_place(const struct lanes *l, uint64_t persistent, uint64_t ephemeral);
/* Put it there; the slot, to be given back with lanes_remove, or -ENOSPC. */
int lanes_add(struct lanes *l, uint64_t persistent, uint64_t ephemeral);
void lanes_remove(struct lanes *l, uint32_t slot);

#endif

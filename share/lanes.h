/* SPDX-License-Identifier: MIT */
/*
 * The memory of one shared GPU, by lanes. Pure bookkeeping.
 *
 * A job holds its persistent memory until it leaves, and needs its ephemeral
 * memory, up to a peak, while one of its iterations runs. Jobs in one lane
 * never run concurrently, so a lane is as large as the largest of their peaks.
 * The invariant is
 *
 *	sum over jobs of persistent + sum over lanes of the largest ephemeral
 *		<= capacity
 *
 * so that all lanes can run concurrently with any of their jobs. The rule is
 * that of Salus (Yu and Chowdhury, "Fine-Grained GPU Sharing Primitives for
 * Deep Learning Applications", MLSys 2020, section 3.3): a job gets its own
 * lane if there is room, else the lane that has to grow least.
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

/* The lane for such a job, or -ENOSPC: no room now. */
int lanes_place(const struct lanes *l, uint64_t persistent, uint64_t ephemeral);
/* Add it to that lane; returns its slot for lanes_remove, or -ENOSPC. */
int lanes_add(struct lanes *l, uint64_t persistent, uint64_t ephemeral);
void lanes_remove(struct lanes *l, uint32_t slot);

#endif

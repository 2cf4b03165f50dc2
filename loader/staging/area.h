/* SPDX-License-Identifier: MIT */
/*
 * The file of a staging area in memory: its head with the plan, and the ring of
 * batches behind it, which is allocated when all jobs have joined. The last one
 * to join then removes the name, so that the kernel frees the memory when the
 * last one has ended, however.
 *
 * A job that joins finds the head of jobs that were killed before that: it then
 * starts anew.
 */
#ifndef GPEMU_LOADER_STAGING_AREA_H
#define GPEMU_LOADER_STAGING_AREA_H

#include <jansson.h>
#include <stddef.h>
#include <stdint.h>

#include "common/err.h"
#include "common/tick.h"
#include "loader/staging/area_file.h"
#include "loader/staging/plan.h"

struct staging_config {
	const char *name;
	uint32_t jobs;	  /* that take part, 1..PLAN_MEMBERS */
	uint64_t bytes;	  /* of the memory for batches */
	uint64_t largest; /* bytes of a batch, at most */
	uint64_t wait_ns; /* wall time for all jobs to join; 0: no limit */
	/* what all jobs must have in common, by name; of texts and numbers */
	const json_t *same;
	struct tick *tick;
};

struct area_head;

struct staging_area {
	struct area_file file;
	struct area_head *head;	   /* mapped */
	struct staging_plan *plan; /* in it */
	char *ring;		   /* mapped; NULL: not yet */
	uint64_t ring_bytes;
	uint32_t me; /* this process's member */
};

/* Errors as staging_join. Close with area_close, failed or not. */
int area_join(const struct staging_config *c, struct staging_area *ret,
	      struct err *err);
void area_close(struct staging_area *a);

/* Release the lock of the file, and wake who waits for it. */
void area_unlock(const struct staging_area *a);

/* The functions below want the lock of the file held. */

/* Members whose process is there. */
uint32_t area_n_living(const struct staging_area *a);
/* This member has left. */
void area_leave(const struct staging_area *a);

/* The text for `r`, the error with which the ring could not be allocated;
 * returns it. */
int area_no_memory(const struct staging_area *a, int r, struct err *err);
/* Map the ring, once the plan runs. */
int area_map(struct staging_area *a, struct err *err);
/* Bytes of the ring; NULL: they are not all within it. */
void *area_at(const struct staging_area *a, uint64_t offset, uint64_t bytes);

#endif

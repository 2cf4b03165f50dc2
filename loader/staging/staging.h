/* SPDX-License-Identifier: MIT */
/*
 * A staging area: memory that several jobs of a node share, so that each batch
 * of an epoch is fetched and prepared once, by one of them, and used by all.
 * Source: Mohan et al., "Analyzing and Mitigating Data Stalls in DNN Training",
 * VLDB 2021: the coordinated prep of CoorDL.
 *
 *	staging_join(&c, &s); staging_begin(s)	all jobs have joined
 *	per epoch:	staging_enter
 *	one thread:	while (staging_claim() == 0) make the batch
 *	one thread:	staging_memory, staging_publish
 *	one thread:	staging_take, staging_use
 *	staging_leave
 *
 * The memory is bounded. A batch stays until each living member has used it, so
 * that a member that makes batches waits for the slowest one that uses them.
 * When a member leaves or dies, at any time and in any way, the others take its
 * batches over and no longer wait for it.
 *
 * The name in the file system exists only until all jobs have joined. From then
 * on the kernel frees the memory when the last of them has ended, also if all
 * are killed.
 *
 * Nothing that another process writes to the area makes this one read or write
 * outside of it, or wait with a lock held. It is reported as -EPROTO. But there
 * is no guard against a process of the same user that shortens the file: that
 * ends its jobs by SIGBUS, as that process could by a signal of its own.
 */
#ifndef GPEMU_LOADER_STAGING_STAGING_H
#define GPEMU_LOADER_STAGING_STAGING_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "common/err.h"
#include "common/tick.h"
#include "loader/staging/area.h"

struct staging;

/*
 * Join the area, or create it. -EINVAL: the other jobs have another value of
 * `same`, or `bytes` are too few, or a bad name; -EACCES as area_file_open;
 * -EXDEV: they are in another PID namespace; -EPROTO: of another version.
 */
int staging_join(const struct staging_config *c, struct staging **ret,
		 struct err *err);
/*
 * Wait until all have joined. -EAGAIN: they have not in time; -ENOSPC, -ENOMEM:
 * no memory for the area; -ECANCELED: staging_stop; each with a text.
 */
int staging_begin(struct staging *s, struct err *err);
/* The others take over. Everything else then returns -ECANCELED. NULL is
 * allowed. */
void staging_leave(struct staging *s);
/* Leaves. NULL is allowed. */
void staging_free(struct staging *s);

/* From any thread: all waits return -ECANCELED, now and until staging_resume;
 * also those for a lock that a stopped job holds, after 200 ms. */
void staging_stop(struct staging *s);
void staging_resume(struct staging *s);

/*
 * An epoch: use the batches from `from` to limit - 1, and make some of them.
 * All before have been used, or are left out. `size` knows the bytes of these;
 * it is called under a lock until the next staging_enter or staging_give_back.
 * 0, -EPROTO, -ECANCELED.
 */
int staging_enter(struct staging *s, uint64_t from, uint64_t limit,
		  plan_size_fn size, void *ctx);

/* Wait for a batch to make. `most`: that this job makes at once. -ECANCELED,
 * -EPROTO. */
int staging_claim(struct staging *s, uint32_t most, uint64_t *ret);
/* The memory of a claimed batch. NULL: the area is damaged. */
void *staging_memory(struct staging *s, uint64_t index, uint64_t bytes);
/* The batch of `n` samples is there. read_share as struct delivery. -EPROTO. */
int staging_publish(struct staging *s, uint64_t index, uint32_t n,
		    double read_share);
/* Make and use no more batches of the epoch; what was claimed and not published
 * is for others. */
void staging_give_back(struct staging *s);

struct staged_batch {
	uint64_t index;
	const void *data; /* within the area; may change at any time */
	uint64_t bytes;
	uint32_t n;
	uint64_t made_ns; /* tick_wall() */
	double read_share;
};
/* The next batch of the epoch, once it is made. Waits until `deadline`
 * (emulated), then -ETIMEDOUT. -ECANCELED, -EPROTO. */
int staging_take(struct staging *s, uint64_t deadline,
		 struct staged_batch *ret);
/* One more batch, in order, is used; its memory may be gone. */
void staging_use(struct staging *s);
/* Batches that staging_take returns at once. */
uint32_t staging_n_ready(struct staging *s);

struct staging_stats {
	uint32_t jobs, died; /* until this one left */
	uint64_t bytes, most_bytes;
	uint64_t made, used, taken_over; /* batches, by this job */
	uint64_t join_ns; /* wall: waited for other jobs to join */
};
struct staging_stats staging_stats(struct staging *s);

#endif

/* SPDX-License-Identifier: MIT */
/*
 * Training on a GPU of gpemu-gpud's, which others may share. The order of
 * things is that of an own GPU (emu/gpu/gpu.h): overlapped, the device holds
 * two batches; blocking, one. Only their times come from the server: a step is
 * accounted for when the server says that it is done.
 *
 * Between the copy of a batch and its computation the GPU may be others':
 * that is neither a data wait nor a transfer stall, and is told apart as the
 * share wait.
 */
#ifndef GPEMU_LOADER_TRAIN_TRAIN_REMOTE_H
#define GPEMU_LOADER_TRAIN_TRAIN_REMOTE_H

#include <jansson.h>
#include <stdint.h>
#include <stdio.h>

#include "common/err.h"
#include "loader/train/train.h"

struct train_remote;

struct train_remote_job {
	const char *model;
	uint32_t batch;
	uint64_t iterations;
	uint64_t waiting_bytes; /* on the GPU, of the batch after this one */
	bool pinned, extrapolate;
	bool load; /* the model's way to the GPU takes time too */
	/* NULL: nobody wants to know that there is no room now, and how many
	 * others wait. On the same thread. */
	void (*queued)(void *ctx, uint64_t ahead);
	void *ctx;
};

/*
 * Connect; `user`: see gpud_open. -EINVAL: its time scale is another one, else
 * as gpud_open; each with a text. Close with train_remote_close, which accepts
 * NULL.
 */
int train_remote_open(const char *path, const char *user, double time_scale,
		      struct train_remote **ret, struct err *err);
void train_remote_close(struct train_remote *r);
/* Path of the profile of its GPU. */
const char *train_remote_profile(const struct train_remote *r);

/*
 * Ask for the GPU, on a fresh connection, and wait until there is room on it.
 * `tick` is the clock of all times from now on. -EINVAL: by now the server is
 * another one; -ECANCELED: interrupted; other errors are the
 * server's, with its text.
 */
int train_remote_join(struct train_remote *r, const struct train_remote_job *j,
		      const struct tick *tick, struct err *err);
/* From any thread: what waits for the server fails with -ECANCELED from now
 * on. A step that is on its way is lost. */
void train_remote_interrupt(struct train_remote *r);

/*
 * A batch: its copy, which is waited for, and what is to be accounted for by
 * now, the step before it or, blocking, itself: that is *ret. The delivery is
 * given back to the pipeline, failed or not. 0 or -errno with a text,
 * -ECONNRESET when the server went away.
 */
int train_remote_step(struct train_remote *r, struct train *t,
		      struct delivery *d, struct gpu_step *ret,
		      struct err *err);
/* What is on its way is done, and accounted for; it then is *ret. */
int train_remote_drain(struct train_remote *r, struct train *t,
		       struct gpu_step *ret, struct err *err);

/* For the record; NULL is "none": JSON's null. */
json_t *train_remote_json(const struct train_remote *r);
/* A line on what sharing cost, of `elapsed_ns`. */
void train_remote_summary(const struct train_remote *r, uint64_t elapsed_ns,
			  FILE *f);

#endif

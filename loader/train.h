/* SPDX-License-Identifier: MIT */
/*
 * The training loop: takes batches from the pipeline, lets the emulated GPU
 * copy and compute them, and accounts for the time. The calling thread waits
 * for absolute deadlines: the start of each step follows from the end of the
 * one before and from when its batch was ready, not from when this thread
 * woke up.
 */
#ifndef GPEMU_LOADER_TRAIN_H
#define GPEMU_LOADER_TRAIN_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "emu/gpu.h"
#include "loader/account.h"
#include "loader/pipeline.h"

struct train {
	struct tick *tick;
	struct pipeline *pipeline;
	const struct gpu_profile *gpu;
	const struct gpu_model *model;
	enum gpu_transfer transfer;
	bool pinned;	     /* batches come from page-locked memory */
	struct trace *trace; /* NULL: no timeline is wanted */
	FILE *step_log;	     /* NULL: no line for each step */
	/* NULL: nobody wants to know. What a step trains on, before the batch
	 * is given back; after each step, true to save the model's state then;
	 * to save it, during which the GPU stands still (0 or -errno). */
	void (*taken)(void *ctx, const struct delivery *d);
	bool (*stepped)(void *ctx);
	int (*save)(void *ctx, struct err *err);
	void *ctx;
};

/*
 * One epoch over order[0..n). -ECANCELED: interrupted; *ret holds what was
 * done. Other errors come from the pipeline or from `save`. The caller fills in
 * the CPU and mount figures and those of checkpoints written.
 */
int train_epoch(struct train *t, uint64_t epoch, const uint32_t *order,
		uint64_t n, struct account *ret, struct err *err);

struct ceiling {
	double samples_per_s, au;
	uint64_t steps;
	double time_scale;
};

/*
 * The rig's ceiling: the same model, GPU and batch size with the engine
 * `null`, for a few steps, at a time scale that makes them last about half a
 * wall second, but never slower than `time_scale`.
 */
int train_ceiling(const struct train *like, uint32_t batch, double time_scale,
		  struct ceiling *ret, struct err *err);

#endif

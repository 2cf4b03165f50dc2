/* SPDX-License-Identifier: MIT */
/*
 * The account of a step that is done (t->now.account); also to the timeline
 * and the log of steps, where there are any.
 */
#ifndef GPEMU_LOADER_TRAIN_TRAIN_ACCOUNT_H
#define GPEMU_LOADER_TRAIN_TRAIN_ACCOUNT_H

#include "loader/train/train.h"

/* Of one GPU, which fell idle at `idle`. */
void train_account_one(struct train *t, uint64_t idle, const struct delivery *d,
		       const struct gpu_step *s);
/* Of all GPUs, out of t->now; `even`: they share the last batch. */
void train_account_all(struct train *t, uint64_t idle, bool even);
/* A stall of the GPU, on the timeline only; returns where the next one
 * begins. */
uint64_t train_account_stall(struct train *t, uint32_t gpu, const char *name,
			     uint64_t from, uint64_t ns, uint64_t step);

#endif

/* SPDX-License-Identifier: MIT */
/*
 * Observers of a training loop: the account, the timeline, the log of steps,
 * checkpoints. The loop (loader/train/train.h) calls each hook of all
 * observers, in their order, on its own thread. Times are emulated ns. A NULL
 * hook is skipped.
 */
#ifndef GPEMU_LOADER_ACCOUNT_OBSERVER_H
#define GPEMU_LOADER_ACCOUNT_OBSERVER_H

#include <stdbool.h>
#include <stdint.h>

#include "common/err.h"
#include "emu/gpu/device.h"
#include "loader/account/account.h"
#include "loader/pipeline/delivery.h"

/* A step whose times are known. Valid during the call. */
struct step_done {
	uint64_t epoch, step; /* number in the epoch, from 0 */
	uint64_t idle_ns;     /* the GPUs had no work since then */
	uint32_t n_gpus, n_batches;
	bool even;		      /* all GPUs share the last batch */
	const struct delivery *batch; /* n_batches; their memory may be gone */
	const struct gpu_step *gpu;   /* n_gpus */
	/* the slowest GPU is of another node: what it waited for; or NULL */
	const struct stalls *other;
	const struct stalls
		*late; /* n_gpus: the part of its barrier wait for a batch */
};

/* The batch, or the part of one, that GPU i computed. */
static inline const struct delivery *step_batch(const struct step_done *s,
						uint32_t i)
{
	uint32_t last = s->n_batches - 1;

	return &s->batch[s->even || i > last ? last : i];
}

/* The GPU that the others of the node wait for. */
uint32_t observers_slowest(const struct step_done *s);

struct observer {
	void (*begin)(void *ctx, uint64_t epoch, uint64_t now_ns);
	/* A batch of the step that was submitted. Its memory is valid; of
	 * batches released early, only the slots are. */
	void (*taken)(void *ctx, const struct delivery *d);
	void (*done)(void *ctx, const struct step_done *s);
	/* That step has begun; `at` is when this was seen. */
	void (*begun)(void *ctx, uint64_t at);
	/* A step was submitted and the device has room for the next. The hook
	 * may drain and hold the device; it reports that with observers_held.
	 * -errno with a text ends the epoch. */
	int (*after)(void *ctx, struct device *d, struct err *err);
	/* The GPUs were held for `why`. */
	void (*held)(void *ctx, const char *why, uint64_t from, uint64_t ns);
	/* All steps of the epoch are complete. */
	void (*end)(void *ctx, uint64_t now_ns);
};

enum { OBSERVERS_MAX = 4 };

struct observers {
	struct {
		const struct observer *ops;
		void *ctx;
	} item[OBSERVERS_MAX];
	unsigned n;
};

/* Append; at most OBSERVERS_MAX. */
void observers_add(struct observers *o, const struct observer *ops, void *ctx);

void observers_begin(const struct observers *o, uint64_t epoch,
		     uint64_t now_ns);
void observers_taken(const struct observers *o, const struct delivery *d);
/* Fills in `late`. */
void observers_done(const struct observers *o, const struct step_done *s);
void observers_begun(const struct observers *o, uint64_t at);
/* Stops at the first failure. */
int observers_after(const struct observers *o, struct device *d,
		    struct err *err);
void observers_held(const struct observers *o, const char *why, uint64_t from,
		    uint64_t ns);
void observers_end(const struct observers *o, uint64_t now_ns);

#endif

/* SPDX-License-Identifier: MIT */
/*
 * The pin stage: one thread, as PyTorch's, that takes complete batches in
 * order and copies them into page-locked memory. The copy is real; what the
 * profile says so many bytes take beyond that is waited for.
 *
 * GPUs under DistributedDataParallel have a process each, and a pin stage:
 * with `lanes` > 1 batches take turns on that many, whose profiled times
 * overlap. The real copies remain one thread's.
 *
 * Inlined, there is no such thread: whoever asks for a batch pins it first, as
 * a training loop that calls pin_memory() itself.
 */
#ifndef GPEMU_LOADER_PIPELINE_PIN_H
#define GPEMU_LOADER_PIPELINE_PIN_H

#include "common/tick.h"
#include "emu/profile/profile_gpu.h"
#include "loader/pipeline/delivery.h"

struct pin;

/*
 * Three buffers a lane of `bytes` each are locked now; larger batches lock more
 * later. `gpu` is used until pin_free. -E2BIG, -EPERM, -ENOMEM as pinned_new,
 * of `budget` bytes. `inlined`: one lane, and every batch is released before
 * the next is asked for.
 */
int pin_new(struct flow *flow, struct tick *tick, const struct gpu_profile *gpu,
	    uint32_t batch, size_t bytes, uint64_t budget, uint32_t lanes,
	    bool inlined, struct pin **ret, struct err *err);
/* The flow must have been stopped; joins the thread. */
void pin_join(struct pin *p);
void pin_free(struct pin *p);

/* As flow_next: -ETIMEDOUT, -ECANCELED. Inlined: others as pinned_get. */
int pin_next(struct pin *p, uint64_t deadline, struct delivery *ret);
/* Batches that pin_next would give at once; inlined 0. */
uint32_t pin_n_ready(struct pin *p);
/* The device has the batch. In the order of pin_next. */
void pin_release(struct pin *p, struct delivery *d);
/* Bytes of pinned memory, at most at a time. */
uint64_t pin_most_bytes(struct pin *p);
/* Whoever waits gets -ECANCELED. */
void pin_stop(struct pin *p);

#endif

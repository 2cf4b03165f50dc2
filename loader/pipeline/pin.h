/* SPDX-License-Identifier: MIT */
/*
 * The pin stage: one thread, as in PyTorch. It takes completed batches in order
 * and copies them into page-locked memory. The copy is real; if the profile's
 * time for so many bytes is longer, the thread waits for the rest.
 *
 * Under DistributedDataParallel each GPU has a process, and so a pin stage, a
 * lane of loader/core/pins.h. The real copies remain on one thread.
 *
 * Inlined, there is no such thread: the consumer pins each batch when it
 * requests it, like a training loop that calls pin_memory() itself.
 */
#ifndef GPEMU_LOADER_PIPELINE_PIN_H
#define GPEMU_LOADER_PIPELINE_PIN_H

#include "common/tick.h"
#include "emu/profile/profile_gpu.h"
#include "loader/core/pins.h"
#include "loader/pipeline/delivery.h"
#include "loader/pipeline/flow.h"

struct pin;

/*
 * Locks PINS_LANE_BUFFERS buffers of `bytes` per lane now; larger batches lock
 * more later. `gpu` is used until pin_free. -E2BIG, -EPERM, -ENOMEM as
 * pinned_new, with `budget` bytes. A failure stops `flow`. `inlined`: one lane,
 * and every batch is released before the next is requested.
 */
int pin_new(struct supply from, struct flow *flow, struct tick *tick,
	    const struct gpu_profile *gpu, uint32_t batch, size_t bytes,
	    uint64_t budget, uint32_t lanes, bool inlined, struct pin **ret,
	    struct err *err);
/* The flow must have been stopped; joins the thread. */
void pin_join(struct pin *p);
void pin_free(struct pin *p);

/* As flow_next: -ETIMEDOUT, -ECANCELED. Inlined: also errors of pinned_get. */
int pin_next(struct pin *p, uint64_t deadline, struct delivery *ret);
/* Batches that pin_next returns at once; inlined 0. */
uint32_t pin_n_ready(struct pin *p);
/* The device has copied the batch. In any order. */
void pin_release(struct pin *p, struct delivery *d);
/* Peak bytes of pinned memory. */
uint64_t pin_most_bytes(struct pin *p);
/* Waiting threads get -ECANCELED. */
void pin_stop(struct pin *p);

#endif

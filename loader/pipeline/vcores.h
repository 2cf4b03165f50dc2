/* SPDX-License-Identifier: MIT */
/*
 * Emulated transforms where workers share the samples of a batch. A worker
 * passes each sample that it has read to a virtual core (emu/node/cores.h) and
 * reads on. A sample keeps its slot until its core completes it, so the number
 * in flight stays bounded by the windows. A batch is complete at the latest
 * deadline of its samples, never before.
 *
 * Real: the reads, and the order in which samples reach the cores. Emulated:
 * the completion times. No value of a sample is computed.
 */
#ifndef GPEMU_LOADER_PIPELINE_VCORES_H
#define GPEMU_LOADER_PIPELINE_VCORES_H

#include <stdint.h>

#include "common/err.h"
#include "common/tick.h"
#include "loader/pipeline/flow.h"

struct vcores;

/* Called once for each batch, on any thread, before flow_complete; `due` is the
 * completion time of the batch. */
typedef void (*vcores_stamp_fn)(struct batch *b, uint64_t due, void *ctx);

/* -ENOMEM, -EAGAIN (no thread). The flow must outlive it. */
int vcores_new(struct flow *flow, struct tick *tick, uint32_t n,
	       vcores_stamp_fn stamp, void *ctx, struct vcores **ret,
	       struct err *err);
/* No thread may still add samples; batches that are not due yet never complete.
 * NULL is allowed. */
void vcores_free(struct vcores *v);

/* A sample of the batch was read and takes cost_ns of a core. */
void vcores_add(struct vcores *v, struct batch *b, uint64_t cost_ns);
/* The batch's last sample was read (windows_fill): complete the batch when it
 * is due. */
void vcores_complete(struct vcores *v, struct batch *b);

/* From now on there are `n` cores, by cores_resize: samples that wait for one
 * begin, and their batches are complete, sooner or later than they would have.
 * -ENOMEM: nothing has changed. */
int vcores_resize(struct vcores *v, uint32_t n);

/* Core-ns of work done so far. */
uint64_t vcores_busy_ns(struct vcores *v);

#endif

/* SPDX-License-Identifier: MIT */
/*
 * Preprocessing that is emulated, where workers share the samples of a batch:
 * what a worker has read goes to a virtual core (emu/node/cores.h) and the
 * worker reads on. A sample keeps its place in its batch until its core is done
 * with it, so what is on its way stays bounded by the windows. A batch is
 * complete at the latest of its samples' deadlines, never before.
 *
 * What is real: the reads, and the order in which samples reach the cores.
 * What is emulated: when they are done. No value of a sample is computed.
 */
#ifndef GPEMU_LOADER_PIPELINE_VCORES_H
#define GPEMU_LOADER_PIPELINE_VCORES_H

#include <stdint.h>

#include "common/err.h"
#include "common/tick.h"
#include "loader/pipeline/flow.h"

struct vcores;

/* Called once for each batch, on any thread, before the batch is let go;
 * `due` is when it was complete. */
typedef void (*vcores_stamp_fn)(struct batch *b, uint64_t due, void *ctx);

/* -ENOMEM, -EAGAIN (no thread). The flow must outlive it. */
int vcores_new(struct flow *flow, struct tick *tick, uint32_t n,
	       vcores_stamp_fn stamp, void *ctx, struct vcores **ret,
	       struct err *err);
/* Nobody may add any more; batches that are not due yet are never let go.
 * NULL is allowed. */
void vcores_free(struct vcores *v);

/* A sample of the batch has been read and takes cost_ns of a core. */
void vcores_add(struct vcores *v, struct batch *b, uint64_t cost_ns);
/* flow_finish said that it was the batch's last: let it go when it is due. */
void vcores_complete(struct vcores *v, struct batch *b);

/* Core-ns of work done until now. */
uint64_t vcores_busy_ns(struct vcores *v);

#endif

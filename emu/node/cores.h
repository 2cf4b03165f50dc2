/* SPDX-License-Identifier: MIT */
/*
 * Virtual CPU cores: when will a sample that is there now have been prepared?
 *
 * Two cores of a laptop stand for the 24 of a training node. Nothing burns
 * CPU and nobody is blocked while a virtual core works: it is the time until
 * which it is busy. A sample goes to the earliest free core, first come,
 * first served:
 *
 *	start = max(arrival, the earliest free of the n cores)
 *	done  = start + cost
 *
 * Pure: no lock (the caller's), no clock (`now` is an argument), no waiting.
 *
 * This is the shape of loaders whose workers share the samples out. Where a
 * worker owns a batch and prepares its samples one after the other, as in
 * PyTorch, each core is a worker with reads of its own, so the loader has a
 * thread for each and that thread sleeps (loader/pipeline/worker.c): a core's
 *next read must not begin before its last sample is done.
 */
#ifndef GPEMU_EMU_NODE_CORES_H
#define GPEMU_EMU_NODE_CORES_H

#include <stdint.h>

enum { CORES_MAX = 1024 };

struct cores;

/* `n` idle cores, 1..CORES_MAX. -ENOMEM. */
int cores_new(uint32_t n, struct cores **ret);
void cores_free(struct cores *c);

/* A sample arrives at `now` (ns) and takes `cost_ns` of a core: when is it
 * done? An arrival before that of an earlier call is served after it. */
uint64_t cores_schedule(struct cores *c, uint64_t now, uint64_t cost_ns);

/* Core-ns of work done until `now`, by all of them; `now` not before the last
 * arrival. */
uint64_t cores_busy_ns(const struct cores *c, uint64_t now);

#endif

/* SPDX-License-Identifier: MIT */
/*
 * Virtual CPU cores: compute when the transforms of a sample end.
 *
 * Two cores of a laptop emulate the 24 of a training node. A virtual core is
 * only the time until which it is busy: it burns no CPU and blocks no thread. A
 * sample goes to the earliest free core, first come, first served:
 *
 *	start = max(arrival, the earliest free of the n cores)
 *	done  = start + cost
 *
 * Pure: no lock (the caller's), no clock (`now` is an argument), no waiting.
 *
 * This models loaders whose workers share samples. Where a worker owns a batch
 * and transforms its samples one after the other, as in PyTorch, each core is a
 * worker with its own reads; the loader then has a thread per core, which
 * sleeps (loader/pipeline/worker.c), because the next read of a core must not
 * begin before its last sample is done.
 */
#ifndef GPEMU_EMU_NODE_CORES_H
#define GPEMU_EMU_NODE_CORES_H

#include <stddef.h>
#include <stdint.h>

enum { CORES_MAX = 1024 };

struct cores;

/* `n` idle cores, 1..CORES_MAX. -ENOMEM. */
int cores_new(uint32_t n, struct cores **ret);
void cores_free(struct cores *c);

/* A sample arrives at `now` (ns) and occupies a core for `cost_ns`; returns
 * when it is done. Samples are served in the order of the calls, even if `now`
 * decreases. */
uint64_t cores_schedule(struct cores *c, uint64_t now, uint64_t cost_ns);

/*
 * From `now` on there are `n` cores. `running`: when the samples will be done
 * that have begun by then; they keep their cores, and those that are too many
 * leave with their samples. Samples that have not begun lose their cores; their
 * costs are `waiting_ns` in all: schedule them again, in order. -ENOMEM:
 * nothing has changed.
 */
int cores_resize(struct cores **c, uint32_t n, const uint64_t *running,
		 size_t n_running, uint64_t waiting_ns);

/* Core-ns of work done by all cores until `now`, which must not precede the
 * last arrival. The rest of a core that leaves counts as done. */
uint64_t cores_busy_ns(const struct cores *c, uint64_t now);

#endif

/* SPDX-License-Identifier: MIT */
/*
 * A pool of page-locked, page-aligned buffers, as cudaHostAlloc returns them.
 * The memory is really locked: it counts against RLIMIT_MEMLOCK and cannot be
 * swapped or evicted. Buffers grow on demand. From 2 MiB on they use huge
 * pages, if available. A thread gets a buffer that was filled on its processor,
 * if there is one.
 *
 * Any thread may get and put.
 */
#ifndef GPEMU_EMU_GPU_PINNED_H
#define GPEMU_EMU_GPU_PINNED_H

#include <stddef.h>
#include <stdint.h>

#include "common/err.h"

struct pinned_buffer {
	void *data; /* 4096-aligned, locked, `size` bytes */
	size_t size;
	int cpu; /* the pool's: who had it last; -1: nobody yet */
};

struct pinned_pool;

/* The number of bytes that may be locked now: `most`, or fewer whole pages.
 * Takes into account memory locked already and the privilege to ignore the
 * limit. */
uint64_t pinned_room(uint64_t most);

/*
 * Up to `n` buffers of `bytes` each (may be 0), locked and touched now, as many
 * as fit into `budget` bytes, which are never exceeded. -E2BIG: not even one
 * fits; -EPERM, -ENOMEM: the limit is too low, with a text that gives the
 * required one; -ENOMEM also without memory.
 */
int pinned_new(size_t n, size_t bytes, uint64_t budget,
	       struct pinned_pool **ret, struct err *err);
/* Every buffer must have been put back. NULL is allowed. */
void pinned_free(struct pinned_pool *p);

/*
 * A buffer of at least `bytes`. Waits until one is put back and, to grow it,
 * until the budget has room. -E2BIG: it never will; -EPERM, -ENOMEM: it could
 * not grow. -ECANCELED after pinned_cancel.
 */
int pinned_get(struct pinned_pool *p, size_t bytes, struct pinned_buffer **ret,
	       struct err *err);
/* The same without waiting: -EAGAIN if a buffer must be put back first. */
int pinned_try_get(struct pinned_pool *p, size_t bytes,
		   struct pinned_buffer **ret, struct err *err);
void pinned_put(struct pinned_pool *p, struct pinned_buffer *b);
/* The maximum of locked bytes so far. */
uint64_t pinned_most_bytes(struct pinned_pool *p);
/* Current and later waits in pinned_get return -ECANCELED. */
void pinned_cancel(struct pinned_pool *p);

#endif

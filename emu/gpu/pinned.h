/* SPDX-License-Identifier: MIT */
/*
 * A pool of page-locked, page-aligned buffers, as cudaHostAlloc gives them.
 * The memory is really locked: it counts against RLIMIT_MEMLOCK and cannot be
 * swapped or evicted. Buffers grow when a larger one is asked for. From 2 MiB
 * on they are of huge pages, where the system has them.
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
};

struct pinned_pool;

/* How many bytes may be locked now: `most`, or fewer whole pages. What the
 * process has locked already counts, and the privilege to ignore the limit. */
uint64_t pinned_room(uint64_t most);

/*
 * Up to `n` buffers of `bytes` each (may be 0), locked and touched now, as
 * many of them as `budget` bytes hold; never more than that are locked.
 * -E2BIG: not even one; -EPERM, -ENOMEM: the limit is too low, with a text that
 * says what it would have to be; -ENOMEM also when there is no memory.
 */
int pinned_new(size_t n, size_t bytes, uint64_t budget,
	       struct pinned_pool **ret, struct err *err);
/* Every buffer must have been put back. NULL is allowed. */
void pinned_free(struct pinned_pool *p);

/*
 * A buffer of at least `bytes`; waits until one is put back, and, when it must
 * grow, until the budget has room. -E2BIG: it never will; -EPERM, -ENOMEM: it
 * could not grow. -ECANCELED after pinned_cancel.
 */
int pinned_get(struct pinned_pool *p, size_t bytes, struct pinned_buffer **ret,
	       struct err *err);
/* The same without waiting: -EAGAIN when a buffer must be put back first. */
int pinned_try_get(struct pinned_pool *p, size_t bytes,
		   struct pinned_buffer **ret, struct err *err);
void pinned_put(struct pinned_pool *p, struct pinned_buffer *b);
/* The most that was locked at a time. */
uint64_t pinned_most_bytes(struct pinned_pool *p);
/* Whoever waits in pinned_get, now or later, gets -ECANCELED. */
void pinned_cancel(struct pinned_pool *p);

#endif

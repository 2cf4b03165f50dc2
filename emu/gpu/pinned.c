/* SPDX-License-Identifier: MIT */
#include "emu/gpu/pinned.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdbool.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "common/thread.h"
#include "common/util.h"

/* Buffers of at least this size are aligned to huge pages and request them, so
 * that direct I/O needs one memory segment instead of many. Source: the huge
 * pages of x86-64, and of arm64 with pages of 4 KiB */
enum { HUGE = 2 << 20 };

struct pinned_pool {
	pthread_mutex_t lock;
	pthread_cond_t put;
	size_t n;
	uint64_t budget;
	uint64_t locked, most;	     /* lock: bytes, including reservations */
	size_t n_free;		     /* lock */
	bool canceled;		     /* lock */
	struct pinned_buffer **free; /* lock; a stack, the warmest on top */
	struct pinned_buffer *all;
};

static size_t page(void)
{
	return (size_t)getpagesize();
}

static uint64_t whole_pages(uint64_t bytes)
{
	return (bytes + page() - 1) / page() * page();
}

static int too_large(const struct pinned_pool *p, uint64_t bytes,
		     struct err *err)
{
	return err_set(err, -E2BIG,
		       "batches take %llu KiB of pinned memory at once and "
		       "--pin-budget allows %llu: raise it, or use a smaller "
		       "--batch or --superbatch, or --pin off",
		       (unsigned long long)bytes / 1024,
		       (unsigned long long)p->budget / 1024);
}

static void unmap(struct pinned_buffer *b)
{
	if (b->data)
		munmap(b->data, b->size);
	b->data = NULL;
	b->size = 0;
}

/* MAP_FAILED as mmap. */
static void *map(size_t size)
{
	size_t slack = size >= HUGE ? HUGE - page() : 0, head;
	char *p = mmap(NULL, size + slack, PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (p == MAP_FAILED || slack == 0)
		return p;
	head = -(uintptr_t)p % HUGE;
	if (head)
		munmap(p, head);
	if (head < slack)
		munmap(p + head + size, slack - head);
	madvise(p + head, size, MADV_HUGEPAGE); /* a hint; may be refused */
	return p + head;
}

static int map_locked(struct pinned_pool *p, struct pinned_buffer *b,
		      size_t bytes, struct err *err)
{
	size_t size = whole_pages(bytes);
	int r;

	b->data = map(size);
	if (b->data == MAP_FAILED) {
		b->data = NULL;
		return err_set(err, -ENOMEM, "no memory for a pinned buffer");
	}
	b->size = size;
	if (mlock(b->data, size) == 0)
		return 0;
	r = errno == EPERM ? -EPERM : -ENOMEM;
	unmap(b);
	return err_set(err, r,
		       "cannot lock %zu KiB of memory for pinned buffers: "
		       "raise `ulimit -l` to at least %zu KiB or run with "
		       "--pin off",
		       size / 1024, p->n * size / 1024);
}

/* Probes mlock without touching a page: only the kernel knows the limit, the
 * memory locked already, and the privilege to ignore both. */
static bool may_lock(uint64_t bytes)
{
	void *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	bool may = p != MAP_FAILED && mlock2(p, bytes, MLOCK_ONFAULT) == 0;

	if (p != MAP_FAILED)
		munmap(p, bytes);
	return may;
}

uint64_t pinned_room(uint64_t most)
{
	uint64_t may = 0, not = most / page(); /* pages */

	if (may_lock(most / page() * page()))
		return most;
	while (not -may > 1) {
		uint64_t half = may + (not -may) / 2;

		if (may_lock(half * page()))
			may = half;
		else
			not = half;
	}
	return may * page();
}

int pinned_new(size_t n, size_t bytes, uint64_t budget,
	       struct pinned_pool **ret, struct err *err)
{
	struct pinned_pool *p = calloc(1, sizeof(*p));
	int r = 0;

	if (!p)
		return err_set(err, -ENOMEM, "out of memory");
	pthread_mutex_init(&p->lock, NULL);
	pthread_cond_init(&p->put, NULL);
	p->budget = budget;
	if (bytes)
		n = MIN(n, budget / whole_pages(bytes));
	if (n == 0)
		r = too_large(p, whole_pages(bytes), err);
	n = MAX(n, 1);
	p->n = n;
	p->locked = p->most = n * whole_pages(bytes);
	p->all = calloc(n, sizeof(*p->all));
	p->free = calloc(n, sizeof(struct pinned_buffer *));
	if (r == 0 && (!p->all || !p->free))
		r = err_set(err, -ENOMEM, "out of memory");
	for (size_t i = 0; r == 0 && i < n; i++) {
		if (bytes)
			r = map_locked(p, &p->all[i], bytes, err);
		p->all[i].cpu = -1;
		p->free[p->n_free++] = &p->all[i];
	}
	if (r < 0) {
		pinned_free(p);
		return r;
	}
	*ret = p;
	return 0;
}

void pinned_free(struct pinned_pool *p)
{
	if (!p)
		return;
	for (size_t i = 0; p->all && i < p->n; i++)
		unmap(&p->all[i]);
	pthread_cond_destroy(&p->put);
	pthread_mutex_destroy(&p->lock);
	free(p->all);
	free(p->free);
	free(p);
}

/* Under the lock: wait until a buffer is put back. -EAGAIN, -ECANCELED. */
static int await_put(struct pinned_pool *p, bool wait)
{
	if (!wait && !p->canceled)
		return -EAGAIN;
	if (!p->canceled)
		pthread_cond_wait(&p->put, &p->lock);
	return p->canceled ? -ECANCELED : 0;
}

/*
 * Under the lock: take `size` bytes of the budget, if needed by freeing unused
 * buffers.
 */
static int take_budget(struct pinned_pool *p, uint64_t size, bool wait)
{
	while (p->locked + size > p->budget) {
		size_t i = 0;
		int r;

		while (i < p->n_free && p->free[i]->size == 0)
			i++;
		if (i == p->n_free) {
			r = await_put(p, wait);
			if (r < 0)
				return r;
			continue;
		}
		p->locked -= p->free[i]->size;
		unmap(p->free[i]);
	}
	p->locked += size;
	p->most = MAX(p->most, p->locked);
	return 0;
}

/* The lock is held. Adds an eighth if the budget allows, so that slightly
 * larger batches do not remap each time. */
static int grow(struct pinned_pool *p, struct pinned_buffer *b, size_t bytes,
		bool wait, struct err *err)
{
	uint64_t size = whole_pages(bytes + bytes / 8);
	int r;

	if (whole_pages(bytes) > p->budget)
		return too_large(p, whole_pages(bytes), err);
	p->locked -= b->size;
	unmap(b);
	if (p->locked + size > p->budget)
		size = whole_pages(bytes);
	r = take_budget(p, size, wait);
	if (r < 0)
		return r;
	r = map_locked(p, b, size, err);
	if (r < 0)
		p->locked -= size;
	return r;
}

/* Under the lock: take the last one that this processor had, whose cache may
 * still have it; else the last one. */
static struct pinned_buffer *take_warmest(struct pinned_pool *p)
{
	struct pinned_buffer *b;
	int cpu = sched_getcpu();
	size_t i = p->n_free--;

	while (i && p->free[i - 1]->cpu != cpu)
		i--;
	i = i ? i - 1 : p->n_free;
	b = p->free[i];
	memmove(&p->free[i], &p->free[i + 1],
		(p->n_free - i) * sizeof(*p->free));
	b->cpu = cpu;
	return b;
}

static int get(struct pinned_pool *p, size_t bytes, bool wait,
	       struct pinned_buffer **ret, struct err *err)
{
	struct pinned_buffer *b;
	int r;

	pthread_mutex_lock(&p->lock);
	r = p->canceled ? -ECANCELED : 0;
	while (r == 0 && p->n_free == 0)
		r = await_put(p, wait);
	if (r == 0) {
		b = take_warmest(p);
		if (b->size < bytes)
			r = grow(p, b, bytes, wait, err);
		if (r == 0) {
			*ret = b;
		} else {
			p->free[p->n_free++] = b;
			pthread_cond_broadcast(&p->put);
		}
	}
	pthread_mutex_unlock(&p->lock);
	return r;
}

int pinned_get(struct pinned_pool *p, size_t bytes, struct pinned_buffer **ret,
	       struct err *err)
{
	return get(p, bytes, true, ret, err);
}

int pinned_try_get(struct pinned_pool *p, size_t bytes,
		   struct pinned_buffer **ret, struct err *err)
{
	return get(p, bytes, false, ret, err);
}

uint64_t pinned_most_bytes(struct pinned_pool *p)
{
	LOCK_SCOPE(&p->lock);

	return p->most;
}

void pinned_put(struct pinned_pool *p, struct pinned_buffer *b)
{
	pthread_mutex_lock(&p->lock);
	p->free[p->n_free++] = b;
	/* waiters want either a buffer or its memory */
	pthread_cond_broadcast(&p->put);
	pthread_mutex_unlock(&p->lock);
}

void pinned_cancel(struct pinned_pool *p)
{
	pthread_mutex_lock(&p->lock);
	p->canceled = true;
	pthread_cond_broadcast(&p->put);
	pthread_mutex_unlock(&p->lock);
}

/* SPDX-License-Identifier: MIT */
#include "emu/pinned.h"

#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <string.h>
#include <sys/mman.h>

#include "common/units.h"
#include "common/util.h"

enum { PAGE = 4096 };

struct pinned_pool {
	pthread_mutex_t lock;
	pthread_cond_t put;
	size_t n;
	uint64_t budget;
	uint64_t locked, most;	     /* lock: bytes, with those about to be */
	size_t n_free;		     /* lock */
	bool canceled;		     /* lock */
	struct pinned_buffer **free; /* lock; a stack, the warmest on top */
	struct pinned_buffer *all;
};

static uint64_t whole_pages(uint64_t bytes)
{
	return (bytes + PAGE - 1) / PAGE * PAGE;
}

static int too_large(const struct pinned_pool *p, uint64_t bytes,
		     struct err *err)
{
	return err_set(err, -E2BIG,
		       "a batch takes %llu KiB of pinned memory and "
		       "--pin-budget allows %llu: raise it, or use a smaller "
		       "batch or --pin off",
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

static int map_locked(struct pinned_pool *p, struct pinned_buffer *b,
		      size_t bytes, struct err *err)
{
	size_t size = whole_pages(bytes);
	int r;

	b->data = mmap(NULL, size, PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
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

/*
 * Under the lock: take `size` bytes of the budget, first from buffers that
 * nobody uses. False: canceled.
 */
static bool take_budget(struct pinned_pool *p, uint64_t size)
{
	while (p->locked + size > p->budget && !p->canceled) {
		size_t i = 0;

		while (i < p->n_free && p->free[i]->size == 0)
			i++;
		if (i == p->n_free) {
			pthread_cond_wait(&p->put, &p->lock);
			continue;
		}
		p->locked -= p->free[i]->size;
		unmap(p->free[i]);
	}
	p->locked += p->canceled ? 0 : size;
	p->most = MAX(p->most, p->locked);
	return !p->canceled;
}

/* The lock is held. An eighth more where there is room, so that a slightly
 * larger batch does not map anew each time. */
static int grow(struct pinned_pool *p, struct pinned_buffer *b, size_t bytes,
		struct err *err)
{
	uint64_t size =
		MIN(whole_pages(bytes + bytes / 8), p->budget / PAGE * PAGE);
	int r;

	if (whole_pages(bytes) > p->budget)
		return too_large(p, whole_pages(bytes), err);
	p->locked -= b->size;
	unmap(b);
	if (!take_budget(p, size))
		return -ECANCELED;
	r = map_locked(p, b, size, err);
	if (r < 0)
		p->locked -= size;
	return r;
}

int pinned_get(struct pinned_pool *p, size_t bytes, struct pinned_buffer **ret,
	       struct err *err)
{
	struct pinned_buffer *b = NULL;
	int r = -ECANCELED;

	pthread_mutex_lock(&p->lock);
	while (p->n_free == 0 && !p->canceled)
		pthread_cond_wait(&p->put, &p->lock);
	if (!p->canceled) {
		b = p->free[--p->n_free];
		r = b->size < bytes ? grow(p, b, bytes, err) : 0;
		if (r < 0)
			p->free[p->n_free++] = b;
		else
			*ret = b;
	}
	pthread_mutex_unlock(&p->lock);
	return r;
}

uint64_t pinned_most_bytes(struct pinned_pool *p)
{
	uint64_t most;

	pthread_mutex_lock(&p->lock);
	most = p->most;
	pthread_mutex_unlock(&p->lock);
	return most;
}

void pinned_put(struct pinned_pool *p, struct pinned_buffer *b)
{
	pthread_mutex_lock(&p->lock);
	p->free[p->n_free++] = b;
	pthread_cond_signal(&p->put);
	pthread_mutex_unlock(&p->lock);
}

void pinned_cancel(struct pinned_pool *p)
{
	pthread_mutex_lock(&p->lock);
	p->canceled = true;
	pthread_cond_broadcast(&p->put);
	pthread_mutex_unlock(&p->lock);
}

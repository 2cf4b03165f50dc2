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
	size_t n_free;		     /* lock */
	bool canceled;		     /* lock */
	struct pinned_buffer **free; /* lock; a stack, the warmest on top */
	struct pinned_buffer *all;
};

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
	size_t size = (bytes + PAGE - 1) / PAGE * PAGE;
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

int pinned_new(size_t n, size_t bytes, struct pinned_pool **ret,
	       struct err *err)
{
	struct pinned_pool *p = calloc(1, sizeof(*p));
	int r = 0;

	if (!p)
		return err_set(err, -ENOMEM, "out of memory");
	pthread_mutex_init(&p->lock, NULL);
	pthread_cond_init(&p->put, NULL);
	p->n = n;
	p->all = calloc(n, sizeof(*p->all));
	p->free = calloc(n, sizeof(struct pinned_buffer *));
	if (!p->all || !p->free)
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

int pinned_get(struct pinned_pool *p, size_t bytes, struct pinned_buffer **ret,
	       struct err *err)
{
	struct pinned_buffer *b = NULL;
	int r = 0;

	pthread_mutex_lock(&p->lock);
	while (p->n_free == 0 && !p->canceled)
		pthread_cond_wait(&p->put, &p->lock);
	if (!p->canceled)
		b = p->free[--p->n_free];
	pthread_mutex_unlock(&p->lock);
	if (!b)
		return -ECANCELED;
	if (b->size < bytes) {
		unmap(b);
		/* an eighth more, so that a slightly larger batch does not
		 * map anew each time */
		r = map_locked(p, b, bytes + bytes / 8, err);
	}
	if (r < 0)
		pinned_put(p, b);
	else
		*ret = b;
	return r;
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

/* SPDX-License-Identifier: MIT */
#include "loader/dataset/pool.h"

#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>

#include "common/thread.h"
#include "common/util.h"

struct run {
	const struct pool *p;
	pthread_mutex_t lock;
	size_t next;  /* lock: to be begun */
	size_t taken; /* lock: items before it are */
	size_t end;   /* lock: the first that failed; else p->n */
	bool *done;   /* lock: by item */
	int error;    /* lock: of `end` */
	struct err err;
};

/* With the lock held. */
static void fail(struct run *r, size_t i, int error, const struct err *err)
{
	if (i >= r->end)
		return;
	r->end = i;
	r->error = error;
	r->err = *err;
}

/* With the lock held: take what is next in order and done. */
static void take(struct run *r)
{
	while (r->taken < r->end && r->done[r->taken]) {
		struct err err = { 0 };
		int e = r->p->take ? r->p->take(r->p->ctx, r->taken, &err) : 0;

		if (e < 0)
			fail(r, r->taken, e, &err);
		else
			r->taken++;
	}
}

static void *work(void *arg)
{
	struct run *r = arg;

	pthread_mutex_lock(&r->lock);
	while (r->next < r->end) {
		struct err err = { 0 };
		size_t i = r->next++;
		int e;

		pthread_mutex_unlock(&r->lock);
		e = r->p->work(r->p->ctx, i, &err);
		pthread_mutex_lock(&r->lock);
		r->done[i] = e >= 0;
		if (e < 0)
			fail(r, i, e, &err);
		take(r);
	}
	pthread_mutex_unlock(&r->lock);
	return NULL;
}

int pool_run(const struct pool *p, struct err *err)
{
	size_t n = MIN(p->n, p->threads), started = 0;
	_cleanup_free_ pthread_t *thread = calloc(n + 1, sizeof(*thread));
	_cleanup_free_ bool *done = calloc(p->n + 1, sizeof(*done));
	struct run r = { .p = p, .end = p->n, .done = done };

	if (!thread || !done)
		return err_set(err, -ENOMEM, "out of memory");
	pthread_mutex_init(&r.lock, NULL);
	/* this thread works too, and alone where no other can be started */
	while (started + 1 < n &&
	       thread_start(&thread[started], NULL, work, &r) == 0)
		started++;
	work(&r);
	while (started)
		pthread_join(thread[--started], NULL);
	pthread_mutex_destroy(&r.lock);
	return r.error < 0 ? err_set(err, r.error, "%s", r.err.text) : 0;
}

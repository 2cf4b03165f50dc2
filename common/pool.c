/* SPDX-License-Identifier: MIT */
#include "common/pool.h"

#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>

#include "common/thread.h"
#include "common/util.h"

struct run {
	const struct pool *p;
	pthread_mutex_t lock;
	size_t next;   /* lock: to be begun */
	size_t n_done; /* lock */
	size_t taken;  /* lock: items before it are */
	size_t end;    /* lock: the first that failed; else p->n */
	bool *done;    /* lock: by item; NULL: none is taken */
	int error;     /* lock: of `end` */
	struct err err;
};

/* With the lock held. */
static void fail_item(struct run *r, size_t i, int error, const struct err *err)
{
	if (i >= r->end)
		return;
	r->end = i;
	r->error = error;
	r->err = *err;
}

/* With the lock held: take what is next in order and done. */
static void take_done(struct run *r)
{
	while (r->taken < r->end && r->done[r->taken]) {
		struct err err = { 0 };
		int e = r->p->take(r->p->ctx, r->taken, &err);

		if (e < 0)
			fail_item(r, r->taken, e, &err);
		else
			r->taken++;
	}
}

/* With the lock held: item `i` was worked on. */
static void end_item(struct run *r, size_t i, int e, const struct err *err)
{
	if (e < 0) {
		fail_item(r, i, e, err);
	} else {
		r->n_done++;
		if (r->p->progress)
			r->p->progress(r->p->ctx, r->n_done);
	}
	if (r->done) {
		r->done[i] = e >= 0;
		take_done(r);
	}
}

static int cancelled(const struct pool *p)
{
	return p->cancel ? __atomic_load_n(p->cancel, __ATOMIC_RELAXED) : 0;
}

/* With the lock held, which is given back during the work. */
static void work_on_items(struct run *r, void *state)
{
	const struct pool *p = r->p;

	while (r->next < r->end && !cancelled(p)) {
		struct err err = { 0 };
		size_t i = r->next++;
		int e;

		pthread_mutex_unlock(&r->lock);
		e = p->work(p->ctx, state, i, &err);
		pthread_mutex_lock(&r->lock);
		end_item(r, i, e, &err);
	}
}

static void *work(void *arg)
{
	struct run *r = arg;
	const struct pool *p = r->p;
	_cleanup_free_ void *state = calloc(1, MAX(p->state_bytes, 1));
	struct err err = { 0 };
	int e = state ? 0 : -ENOMEM;

	if (e == 0 && p->init)
		e = p->init(p->ctx, p->state_bytes ? state : NULL, &err);
	pthread_mutex_lock(&r->lock);
	if (e < 0)
		fail_item(r, r->next, e, &err);
	else
		work_on_items(r, p->state_bytes ? state : NULL);
	pthread_mutex_unlock(&r->lock);
	if (state && p->fini)
		p->fini(p->ctx, p->state_bytes ? state : NULL);
	return NULL;
}

int pool_run(const struct pool *p, struct err *err)
{
	size_t n = MIN(p->n, p->threads), started = 0;
	_cleanup_free_ pthread_t *thread = calloc(n + 1, sizeof(*thread));
	_cleanup_free_ bool *done = p->take ? calloc(p->n + 1, sizeof(*done))
					    : NULL;
	struct run r = { .p = p, .end = p->n, .done = done };

	if (!thread || (p->take && !done))
		return err_set(err, -ENOMEM, "out of memory");
	pthread_mutex_init(&r.lock, NULL);
	while (started + 1 < n &&
	       thread_start(&thread[started], NULL, work, &r) == 0)
		started++;
	work(&r);
	while (started)
		pthread_join(thread[--started], NULL);
	pthread_mutex_destroy(&r.lock);
	if (r.error < 0)
		return err_set(err, r.error, "%s", r.err.text);
	if (r.n_done < p->n)
		return err_set(err, cancelled(p), "interrupted");
	return 0;
}

/* SPDX-License-Identifier: MIT */
#include "s3/wait.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "common/thread.h"
#include "common/util.h"

struct wait {
	struct fetch fetch;
	struct write_job job;
	struct wait_for what;
	char *path;
	int (*work)(void *ctx);
	void *ctx;
	pthread_mutex_t lock; /* guards all below */
	unsigned refs;	      /* of the device, the request, the work */
	bool accepted;	      /* by the device: there is no fault */
	bool served;	      /* the device, or a fault, has ended it */
	bool ready;	      /* there is `work` */
	bool working, worked;
	bool left; /* the request has: nobody waits */
	bool over, waits;
	int error;
};

static void put_wait(struct wait *w)
{
	bool last;

	pthread_mutex_lock(&w->lock);
	last = !--w->refs;
	pthread_mutex_unlock(&w->lock);
	if (!last)
		return;
	pthread_mutex_destroy(&w->lock);
	free(w->path);
	free(w);
}

/* Under the lock, by each who ends a part of it: is that the last? */
static bool ends(struct wait *w)
{
	bool works = w->what.writers && !w->error && !w->left;

	if (w->over || !w->served || w->working || (works && !w->worked))
		return false;
	w->over = true;
	return true;
}

/* Without the lock. */
static void end(struct wait *w)
{
	server_metadata_answered(w->what.server, &w->fetch, w->error);
	LOCK_SCOPE(&w->lock);
	if (w->waits) {
		w->waits = false;
		MHD_resume_connection(w->what.connection);
	}
}

/* --- the real operation ------------------------------------------------- */

static void run_work(struct write_job *j, bool stopping)
{
	struct wait *w = container_of(j, struct wait, job);
	int r = stopping ? -ECONNABORTED : w->work(w->ctx);
	bool ended;

	pthread_mutex_lock(&w->lock);
	w->working = false;
	w->worked = true;
	w->error = w->error ? w->error : r;
	ended = ends(w);
	pthread_mutex_unlock(&w->lock);
	if (ended)
		end(w);
	put_wait(w);
}

/* Begin it, if all is there that it needs. */
static void begin_work(struct wait *w)
{
	bool begins;

	pthread_mutex_lock(&w->lock);
	begins = w->ready && w->accepted && !w->error && !w->working &&
		 !w->worked;
	w->working |= begins;
	w->refs += begins;
	pthread_mutex_unlock(&w->lock);
	if (begins)
		writers_add(w->what.writers, &w->job);
}

void wait_work(struct wait *w, int (*work)(void *ctx), void *ctx, bool is_long)
{
	pthread_mutex_lock(&w->lock);
	w->job.is_long = is_long;
	w->work = work;
	w->ctx = ctx;
	w->ready = true;
	pthread_mutex_unlock(&w->lock);
	begin_work(w);
}

/* --- the device --------------------------------------------------------- */

static void done(struct fetch *f, bool stopping)
{
	struct wait *w = container_of(f, struct wait, fetch);
	int error = stopping ? -ECONNABORTED : f->error;
	bool ended;

	pthread_mutex_lock(&w->lock);
	w->served = true;
	w->error = w->error ? w->error : error;
	ended = ends(w);
	pthread_mutex_unlock(&w->lock);
	if (ended)
		end(w);
	put_wait(w);
}

static int accept_it(struct fetch *f)
{
	struct wait *w = container_of(f, struct wait, fetch);

	pthread_mutex_lock(&w->lock);
	w->accepted = true;
	pthread_mutex_unlock(&w->lock);
	begin_work(w);
	return 0;
}

/* --- its life ----------------------------------------------------------- */

struct wait *wait_new(const struct wait_for *f)
{
	struct wait *w = calloc(1, sizeof(*w));

	if (w && f->path)
		w->path = strdup(f->path);
	if (!w || (f->path && !w->path)) {
		free(w);
		return NULL;
	}
	w->what = *f;
	w->job.run = run_work;
	w->refs = 2;
	pthread_mutex_init(&w->lock, NULL);
	w->fetch = (struct fetch){ .op = f->op,
				   .node = f->node,
				   .path = w->path,
				   .bytes = f->bytes,
				   .arrival = f->arrival,
				   .client = w,
				   .work = f->writers ? accept_it : NULL,
				   .here = true,
				   .done = done };
	server_operate(f->server, &w->fetch);
	return w;
}

bool wait_over(struct wait *w, int *ret_error)
{
	bool over;

	LOCK_SCOPE(&w->lock);
	over = w->over;
	*ret_error = w->error;
	if (!over) {
		w->waits = true;
		MHD_suspend_connection(w->what.connection);
	}
	return over;
}

void wait_free(struct wait *w)
{
	bool ended;

	if (!w)
		return;
	pthread_mutex_lock(&w->lock);
	w->left = true;
	ended = ends(w);
	pthread_mutex_unlock(&w->lock);
	if (ended)
		end(w);
	put_wait(w);
}

/* SPDX-License-Identifier: MIT */
#include "s3/wait.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "common/util.h"

struct wait {
	struct fetch fetch;
	struct wait_for what;
	char *path;
	pthread_mutex_t lock; /* guards all below */
	unsigned refs;	      /* of the device, of the request */
	bool done, waits;
	int error;
};

static void put(struct wait *w)
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

static void done(struct fetch *f, bool stopping)
{
	struct wait *w = container_of(f, struct wait, fetch);
	int error = stopping ? -ECONNABORTED : f->error;

	server_metadata_answered(w->what.server, f, error);
	pthread_mutex_lock(&w->lock);
	w->error = error;
	w->done = true;
	if (w->waits) {
		w->waits = false;
		MHD_resume_connection(w->what.connection);
	}
	pthread_mutex_unlock(&w->lock);
	put(w);
}

static int work(struct fetch *f)
{
	struct wait *w = container_of(f, struct wait, fetch);

	return w->what.work(w->what.ctx);
}

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
	w->refs = 2;
	pthread_mutex_init(&w->lock, NULL);
	w->fetch = (struct fetch){ .op = f->op,
				   .node = f->node,
				   .path = w->path,
				   .bytes = f->bytes,
				   .arrival = f->arrival,
				   .client = w,
				   .work = f->work ? work : NULL,
				   .done = done };
	server_operate(f->server, &w->fetch);
	return w;
}

bool wait_over(struct wait *w, int *ret_error)
{
	bool over;

	pthread_mutex_lock(&w->lock);
	over = w->done;
	*ret_error = w->error;
	if (!over) {
		w->waits = true;
		MHD_suspend_connection(w->what.connection);
	}
	pthread_mutex_unlock(&w->lock);
	return over;
}

void wait_free(struct wait *w)
{
	if (w)
		put(w);
}

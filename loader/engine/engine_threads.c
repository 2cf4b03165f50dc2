/* SPDX-License-Identifier: MIT */
/*
 * A thread pool: --queue-depth blocking reads in parallel. Each worker has its
 * share of the threads. They read; the worker transforms the samples in the
 * order of completion. Loaders in the literature hide the latency of remote
 * storage this way, with read(2) only: a pool of fetchers beneath each worker,
 * over as many batches as --superbatch gives. Batches leave on completion, so
 * one slow sample delays its own batch only.
 *
 *	worker: feed_take --todo--> threads: open, read, close --done--> worker
 */
#include "loader/engine/engine.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "common/conf/conf.h"
#include "common/thread.h"
#include "common/units.h"
#include "loader/engine/readfile.h"

struct options {
	uint64_t stack_bytes;
};

static const struct conf_field fields[] = {
	{ "stack", CONF_SIZE, offsetof(struct options, stack_bytes),
	  .min = 65536, .max = 1073741824., .arg = "SIZE",
	  .help = "stack of each thread" },
	{ 0 },
};

/* A read needs little stack, and there may be thousands of threads. arbitrary:
 * some 50 times what readfile takes, also under the sanitizers */
static const struct options defaults = { .stack_bytes = 256 * KIB };

/* At most `depth` are in flight, so it is never full. */
struct ring {
	struct engine_fetch **item;
	unsigned first, n, size;
};

struct threads {
	unsigned depth;
	uint32_t direct;
	struct feed *feed;
	unsigned n_out; /* worker's: taken, not returned */
	pthread_t *thread;
	unsigned n_threads;
	pthread_mutex_t lock;
	pthread_cond_t work; /* `todo` is not empty, stopping */
	pthread_cond_t read; /* `done` is not empty */
	bool locks;
	struct ring todo, done; /* lock */
	bool stopping;		/* lock */
};

static void push(struct ring *r, struct engine_fetch *f)
{
	r->item[(r->first + r->n++) % r->size] = f;
}

static struct engine_fetch *pop(struct ring *r)
{
	struct engine_fetch *f = r->item[r->first];

	r->first = (r->first + 1) % r->size;
	r->n--;
	return f;
}

static void *reader(void *arg)
{
	struct threads *t = arg;

	pthread_mutex_lock(&t->lock);
	while (!t->stopping) {
		struct engine_fetch *f;
		struct feed *feed = t->feed;

		if (t->todo.n == 0) {
			pthread_cond_wait(&t->work, &t->lock);
			continue;
		}
		f = pop(&t->todo);
		pthread_mutex_unlock(&t->lock);
		feed_done(feed, f, readfile(f, t->direct));
		pthread_mutex_lock(&t->lock);
		push(&t->done, f);
		if (t->done.n == 1)
			pthread_cond_signal(&t->read);
	}
	pthread_mutex_unlock(&t->lock);
	return NULL;
}

static int start_all(struct threads *t, uint64_t stack_bytes, struct err *err)
{
	pthread_attr_t attr;
	int r = 0;

	pthread_attr_init(&attr);
	pthread_attr_setstacksize(&attr, stack_bytes);
	while (r == 0 && t->n_threads < t->depth) {
		r = thread_start(&t->thread[t->n_threads], &attr, reader, t);
		t->n_threads += r == 0;
	}
	pthread_attr_destroy(&attr);
	/* EAGAIN: a limit on threads or memory */
	if (r < 0)
		err_set(err, -ENOMEM,
			"cannot start thread %u of %u: %s; use a smaller "
			"--queue-depth",
			t->n_threads + 1, t->depth, strerror(-r));
	return r < 0 ? -ENOMEM : 0;
}

static int init_threads(void *state, const struct engine_config *c,
			struct err *err)
{
	const struct options *o = c->options ? c->options : &defaults;
	struct threads *t = state;

	t->depth = c->depth;
	t->direct = c->direct;
	t->todo.size = t->done.size = c->depth;
	t->todo.item = calloc(c->depth, sizeof(struct engine_fetch *));
	t->done.item = calloc(c->depth, sizeof(struct engine_fetch *));
	t->thread = calloc(c->depth, sizeof(*t->thread));
	if (!t->todo.item || !t->done.item || !t->thread)
		return err_set(err, -ENOMEM, "out of memory");
	pthread_mutex_init(&t->lock, NULL);
	pthread_cond_init(&t->work, NULL);
	pthread_cond_init(&t->read, NULL);
	t->locks = true;
	return start_all(t, o->stack_bytes, err);
}

static int next_threads(void *state, struct feed *feed,
			struct engine_fetch **ret, struct err *err)
{
	struct threads *t = state;
	struct engine_fetch *f;
	int r;

	(void)err;
	while ((r = feed_take(feed, t->n_out == 0, &f)) == 0) {
		t->n_out++;
		pthread_mutex_lock(&t->lock);
		t->feed = feed;
		push(&t->todo, f);
		pthread_cond_signal(&t->work);
		pthread_mutex_unlock(&t->lock);
	}
	if (r != -EAGAIN)
		return r;
	pthread_mutex_lock(&t->lock);
	while (t->done.n == 0)
		pthread_cond_wait(&t->read, &t->lock);
	*ret = pop(&t->done);
	pthread_mutex_unlock(&t->lock);
	t->n_out--;
	return 0;
}

static void fini(void *state)
{
	struct threads *t = state;

	if (t->locks) {
		pthread_mutex_lock(&t->lock);
		t->stopping = true;
		pthread_cond_broadcast(&t->work);
		pthread_mutex_unlock(&t->lock);
	}
	for (unsigned i = 0; i < t->n_threads; i++)
		pthread_join(t->thread[i], NULL);
	if (t->locks) {
		pthread_mutex_destroy(&t->lock);
		pthread_cond_destroy(&t->work);
		pthread_cond_destroy(&t->read);
	}
	free(t->todo.item);
	free(t->done.item);
	free(t->thread);
}

const struct engine_ops engine_threads = {
	.plugin = { .name = "threads",
		    .summary = "blocking reads by a pool of threads, batches "
			       "leave as they complete",
		    .state_size = sizeof(struct threads),
		    PLUGIN_OPTIONS(fields, defaults) },
	.any_order = true,
	.can_direct = true,
	.init = init_threads,
	.fini = fini,
	.next = next_threads,
};

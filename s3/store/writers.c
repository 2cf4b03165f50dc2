/* SPDX-License-Identifier: MIT */
#include "s3/store/writers.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>

#include "common/thread.h"

struct queue {
	struct write_job *first, *last;
};

struct writers {
	pthread_mutex_t lock; /* guards all below */
	pthread_cond_t wake;
	struct queue queues[2]; /* of short and of long jobs */
	unsigned n_long;	/* that run */
	pthread_t threads[WRITERS_MOST];
	unsigned n_jobs; /* that wait */
	unsigned n_threads, n_idle;
	bool stopping;
};

static void append(struct queue *q, struct write_job *j)
{
	j->next = NULL;
	if (q->first)
		q->last->next = j;
	else
		q->first = j;
	q->last = j;
}

/* The next job, which runs; NULL: there is none that may. Under the lock. */
static struct write_job *take_job(struct writers *w)
{
	bool may_long = w->stopping || w->n_long < WRITERS_LONG;
	struct queue *q = &w->queues[!w->queues[0].first && may_long];
	struct write_job *j = q->first;

	if (!j)
		return NULL;
	q->first = j->next;
	w->n_jobs--;
	w->n_long += j->is_long;
	return j;
}

static void *writer(void *arg)
{
	struct writers *w = arg;
	struct write_job *j;
	bool stopping, is_long;

	pthread_mutex_lock(&w->lock);
	for (;;) {
		w->n_idle++;
		while (!(j = take_job(w)) && !w->stopping)
			pthread_cond_wait(&w->wake, &w->lock);
		w->n_idle--;
		if (!j)
			break;
		stopping = w->stopping;
		is_long = j->is_long; /* the job may be freed */
		pthread_mutex_unlock(&w->lock);
		j->run(j, stopping);
		pthread_mutex_lock(&w->lock);
		w->n_long -= is_long;
	}
	pthread_mutex_unlock(&w->lock);
	return NULL;
}

/* Under the lock, or before there is another thread. */
static int start_thread(struct writers *w)
{
	int r = thread_start(&w->threads[w->n_threads], NULL, writer, w);

	if (r == 0)
		w->n_threads++;
	return r;
}

int writers_new(struct writers **ret)
{
	struct writers *w = calloc(1, sizeof(*w));
	int r;

	if (!w)
		return -ENOMEM;
	pthread_mutex_init(&w->lock, NULL);
	pthread_cond_init(&w->wake, NULL);
	r = start_thread(w);
	if (r < 0) {
		writers_free(w);
		return r;
	}
	*ret = w;
	return 0;
}

void writers_add(struct writers *w, struct write_job *j)
{
	pthread_mutex_lock(&w->lock);
	if (w->stopping) {
		pthread_mutex_unlock(&w->lock);
		j->run(j, true);
		return;
	}
	append(&w->queues[j->is_long], j);
	w->n_jobs++;
	/* if no further thread can be had, those that there are do it */
	if (w->n_jobs > w->n_idle && w->n_threads < WRITERS_MOST)
		start_thread(w);
	pthread_mutex_unlock(&w->lock);
	pthread_cond_signal(&w->wake);
}

void writers_stop(struct writers *w)
{
	unsigned n;

	if (!w)
		return;
	pthread_mutex_lock(&w->lock);
	w->stopping = true;
	n = w->n_threads; /* no further one is started */
	w->n_threads = 0;
	pthread_mutex_unlock(&w->lock);
	pthread_cond_broadcast(&w->wake);
	for (unsigned i = 0; i < n; i++)
		pthread_join(w->threads[i], NULL);
}

void writers_free(struct writers *w)
{
	if (!w)
		return;
	writers_stop(w);
	pthread_cond_destroy(&w->wake);
	pthread_mutex_destroy(&w->lock);
	free(w);
}

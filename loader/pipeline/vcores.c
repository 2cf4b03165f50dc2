/* SPDX-License-Identifier: MIT */
#include "loader/pipeline/vcores.h"

#include <errno.h>
#include <pthread.h>
#include <string.h>

#include "common/thread.h"
#include "common/timerq.h"
#include "common/util.h"
#include "emu/node/cores.h"

/* On a core, or waiting for one. */
struct sample {
	struct batch *batch;
	uint64_t start_ns, done_ns;
};

struct vcores {
	struct flow *flow;
	struct tick *tick;
	vcores_stamp_fn stamp;
	void *ctx;
	struct timerq *due; /* batches, by due_ns */
	pthread_mutex_t lock;
	struct cores *cores; /* lock */
	/* lock: all that are not done, and some that are, by start_ns, from
	 * `first` to `end` */
	struct sample *samples;
	size_t first, end, allocated;
};

static void let_go(struct vcores *v, struct batch *b, uint64_t due)
{
	v->stamp(b, due, v->ctx);
	flow_complete(v->flow, b);
}

/* The batch will be let go when it is due. */
static void wait_due(struct vcores *v, struct batch *b, uint64_t due)
{
	int r = timerq_add(v->due, &b->timer, due);

	if (r == -ENOMEM)
		flow_stop(v->flow, r, &(struct err){ "out of memory" });
}

static void fire(struct timer *timer, bool stopping, void *ctx)
{
	struct batch *b = container_of(timer, struct batch, timer);
	struct vcores *v = ctx;
	uint64_t due;
	bool now;

	if (stopping)
		return;
	pthread_mutex_lock(&v->lock);
	due = b->due_ns;
	now = due <= tick_now(v->tick);
	if (!now) /* cores were taken away as it fired */
		wait_due(v, b, due);
	pthread_mutex_unlock(&v->lock);
	if (now)
		let_go(v, b, due);
}

int vcores_new(struct flow *flow, struct tick *tick, uint32_t n,
	       vcores_stamp_fn stamp, void *ctx, struct vcores **ret,
	       struct err *err)
{
	struct vcores *v = calloc(1, sizeof(*v));
	int r;

	if (!v)
		return err_set(err, -ENOMEM, "out of memory");
	v->flow = flow;
	v->tick = tick;
	v->stamp = stamp;
	v->ctx = ctx;
	pthread_mutex_init(&v->lock, NULL);
	r = cores_new(n, &v->cores);
	if (r == 0)
		r = timerq_new(tick, fire, v, &v->due);
	if (r < 0) {
		vcores_free(v);
		return err_set(err, r, "cannot set up %u virtual cores: %s", n,
			       strerror(-r));
	}
	*ret = v;
	return 0;
}

void vcores_free(struct vcores *v)
{
	if (!v)
		return;
	timerq_free(v->due);
	cores_free(v->cores);
	pthread_mutex_destroy(&v->lock);
	free(v->samples);
	free(v);
}

/* --- samples -------------------------------------------------------------- */

/* Remember a sample, and forget those that are done. */
static int keep_sample(struct vcores *v, uint64_t now, const struct sample *s)
{
	int r;

	while (v->first < v->end && v->samples[v->first].done_ns <= now)
		v->first++;
	/* at most as many are moved as were forgotten */
	if (v->first && v->first >= v->end - v->first) {
		memmove(v->samples, v->samples + v->first,
			(v->end - v->first) * sizeof(*v->samples));
		v->end -= v->first;
		v->first = 0;
	}
	r = util_reserve(&v->samples, &v->allocated, v->end + 1,
			 sizeof(*v->samples));
	if (r == 0)
		v->samples[v->end++] = *s;
	return r;
}

void vcores_add(struct vcores *v, struct batch *b, uint64_t cost_ns)
{
	struct sample s = { .batch = b };
	uint64_t now;
	int r;

	pthread_mutex_lock(&v->lock);
	/* under the lock, so that samples reach the cores in the order of
	 * time */
	now = tick_now(v->tick);
	s.done_ns = cores_schedule(v->cores, now, cost_ns);
	s.start_ns = s.done_ns - cost_ns;
	b->due_ns = MAX(b->due_ns, s.done_ns);
	r = keep_sample(v, now, &s);
	pthread_mutex_unlock(&v->lock);
	if (r < 0)
		flow_stop(v->flow, r, &(struct err){ "out of memory" });
}

void vcores_complete(struct vcores *v, struct batch *b)
{
	uint64_t now, due;

	pthread_mutex_lock(&v->lock);
	now = tick_now(v->tick);
	/* before now: the cores had no work for it, as all its samples are
	 * unusable or cost nothing */
	due = MAX(b->due_ns, now);
	if (due > now) /* under the lock: vcores_resize moves the timer */
		wait_due(v, b, due);
	pthread_mutex_unlock(&v->lock);
	if (due == now)
		let_go(v, b, due);
}

/* --- another number of cores ---------------------------------------------- */

/* When a batch is due follows from its samples that are not done. */
static void reschedule(struct vcores *v, uint64_t now, size_t first_waiting)
{
	struct sample *s = v->samples;

	for (size_t i = first_waiting; i < v->end; i++)
		s[i].batch->due_ns = 0;
	for (size_t i = v->first; i < first_waiting; i++)
		if (s[i].done_ns > now)
			s[i].batch->due_ns =
				MAX(s[i].batch->due_ns, s[i].done_ns);
	for (size_t i = first_waiting; i < v->end; i++) {
		uint64_t cost = s[i].done_ns - s[i].start_ns;

		s[i].done_ns = cores_schedule(v->cores, now, cost);
		s[i].start_ns = s[i].done_ns - cost;
		s[i].batch->due_ns = MAX(s[i].batch->due_ns, s[i].done_ns);
	}
	for (size_t i = first_waiting; i < v->end; i++)
		if (i == first_waiting || s[i].batch != s[i - 1].batch)
			timerq_move(v->due, &s[i].batch->timer,
				    s[i].batch->due_ns);
}

int vcores_resize(struct vcores *v, uint32_t n)
{
	_cleanup_free_ uint64_t *running = NULL;
	uint64_t waiting_ns = 0, now;
	size_t n_running = 0, i;
	int r = -ENOMEM;

	pthread_mutex_lock(&v->lock);
	now = tick_now(v->tick);
	running = malloc((v->end - v->first + 1) * sizeof(*running));
	for (i = v->first; running && i < v->end; i++) {
		if (v->samples[i].start_ns > now)
			break;
		if (v->samples[i].done_ns > now)
			running[n_running++] = v->samples[i].done_ns;
	}
	for (size_t k = i; k < v->end; k++)
		waiting_ns += v->samples[k].done_ns - v->samples[k].start_ns;
	if (running)
		r = cores_resize(&v->cores, n, running, n_running, waiting_ns);
	if (r == 0)
		reschedule(v, now, i);
	pthread_mutex_unlock(&v->lock);
	return r;
}

uint64_t vcores_busy_ns(struct vcores *v)
{
	LOCK_SCOPE(&v->lock);

	return cores_busy_ns(v->cores, tick_now(v->tick));
}

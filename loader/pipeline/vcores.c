/* SPDX-License-Identifier: MIT */
#include "loader/pipeline/vcores.h"

#include <errno.h>
#include <pthread.h>
#include <string.h>

#include "common/timerq.h"
#include "common/util.h"
#include "emu/node/cores.h"

struct vcores {
	struct flow *flow;
	struct tick *tick;
	vcores_stamp_fn stamp;
	void *ctx;
	struct timerq *due; /* batches, by due_ns */
	pthread_mutex_t lock;
	struct cores *cores; /* lock */
};

static void let_go(struct vcores *v, struct batch *b)
{
	v->stamp(b, b->due_ns, v->ctx);
	flow_complete(v->flow, b);
}

static void fire(struct timer *timer, bool stopping, void *ctx)
{
	struct batch *b = container_of(timer, struct batch, timer);

	if (!stopping)
		let_go(ctx, b);
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
	free(v);
}

void vcores_add(struct vcores *v, struct batch *b, uint64_t cost_ns)
{
	uint64_t done;

	pthread_mutex_lock(&v->lock);
	/* under the lock, so that samples reach the cores in the order of
	 * time */
	done = cores_schedule(v->cores, tick_now(v->tick), cost_ns);
	b->due_ns = MAX(b->due_ns, done);
	pthread_mutex_unlock(&v->lock);
}

void vcores_complete(struct vcores *v, struct batch *b)
{
	int r;

	if (b->due_ns <= tick_now(v->tick)) {
		/* the cores had no work for it: all its samples are unusable or
		 * cost nothing */
		b->due_ns = tick_now(v->tick);
		let_go(v, b);
		return;
	}
	r = timerq_add(v->due, &b->timer, b->due_ns);
	if (r < 0)
		flow_stop(v->flow, r, &(struct err){ "out of memory" });
}

uint64_t vcores_busy_ns(struct vcores *v)
{
	uint64_t ns;

	pthread_mutex_lock(&v->lock);
	ns = cores_busy_ns(v->cores, tick_now(v->tick));
	pthread_mutex_unlock(&v->lock);
	return ns;
}

/* SPDX-License-Identifier: MIT */
#include "loader/pipeline/pin.h"

#include <errno.h>
#include <pthread.h>
#include <string.h>

#include "common/thread.h"
#include "common/util.h"

struct pin {
	struct supply from;
	struct flow *flow; /* that a failure stops */
	struct tick *tick;
	const struct gpu_profile *gpu;
	struct pinned_pool *pool;
	/* the thread's; lock: n_in and n_out, deliveries filled and taken */
	struct pins pins;
	struct place *places; /* for each buffer `batch`, in turn */
	bool inlined;	      /* no thread, pin_next pins */
	pthread_t thread;
	bool started;
	pthread_mutex_t lock;
	pthread_cond_t filled; /* n_in > n_out, stopping */
	bool stopping;	       /* lock */
	struct delivery *ring; /* lock; by count modulo buffers */
	uint32_t batch;
};

/* Copy into the pinned buffer; the slots then point there. */
static void copy(const struct batch *b, struct pinned_buffer *to,
		 struct place *place)
{
	char *at = to->data;

	for (uint32_t i = 0; i < b->n; i++) {
		place[i] = b->place[i];
		place[i].data = at;
		if (place[i].n == 0) /* the buffer may be NULL */
			continue;
		memcpy(at, b->place[i].data, place[i].n);
		at += place[i].n;
	}
}

static void hand_on(struct pin *p, const struct delivery *d)
{
	pthread_mutex_lock(&p->lock);
	p->ring[p->pins.n_in++ % pins_buffers(&p->pins)] = *d;
	pthread_cond_signal(&p->filled);
	pthread_mutex_unlock(&p->lock);
}

/* As flow_next. */
static int pin_one(struct pin *p, uint64_t until, struct err *err)
{
	struct pins *all = &p->pins;
	struct place *place =
		p->places + all->n_in % pins_buffers(all) * p->batch;
	struct pinned_buffer *buffer;
	struct delivery d;
	struct batch *b;
	uint64_t start, cost, seen;
	size_t bytes = 0;
	int r = p->from.ops->next(p->from.state, until, &b);

	if (r < 0)
		return r;
	for (uint32_t i = 0; i < b->n; i++)
		bytes += b->place[i].n;
	r = pinned_get(p->pool, bytes, &buffer, err);
	if (r < 0)
		return r;
	tick_wait(p->tick, *pins_lane(all));
	start = tick_now(p->tick);
	cost = gpu_copy_ns(p->gpu, NULL, GPU_COPY_TO_PINNED, bytes);
	copy(b, buffer, place);
	d = delivery_of(b);
	d.place = place;
	d.pinned = buffer;
	p->from.ops->release(p->from.state, b);
	d.ready_ns = pins_copy(all, start, cost, tick_now(p->tick), &seen);
	d.pin_ns = d.ready_ns - start;
	tick_wait(p->tick, seen);
	hand_on(p, &d);
	return 0;
}

static void *pin_thread(void *arg)
{
	struct pin *p = arg;
	struct err err = { 0 };
	int r = 0;

	while (r == 0)
		r = pin_one(p, TICK_NEVER, &err);
	if (r != -ECANCELED)
		flow_stop(p->flow, r, &err);
	pin_stop(p);
	return NULL;
}

int pin_new(struct supply from, struct flow *flow, struct tick *tick,
	    const struct gpu_profile *gpu, uint32_t batch, size_t bytes,
	    uint64_t budget, uint32_t lanes, bool inlined, struct pin **ret,
	    struct err *err)
{
	struct pin *p = calloc(1, sizeof(*p));
	uint32_t n;
	int r;

	if (!p)
		return err_set(err, -ENOMEM, "out of memory");
	p->from = from;
	p->flow = flow;
	p->tick = tick;
	p->gpu = gpu;
	p->batch = batch;
	p->pins.lanes = lanes;
	p->inlined = inlined;
	n = pins_buffers(&p->pins);
	pthread_mutex_init(&p->lock, NULL);
	tick_cond_init(&p->filled);
	p->places = calloc((size_t)n * batch, sizeof(*p->places));
	p->ring = calloc(n, sizeof(*p->ring));
	r = p->places && p->ring ? pinned_new(n, bytes, budget, &p->pool, err)
				 : err_set(err, -ENOMEM, "out of memory");
	if (r == 0 && !inlined)
		r = thread_start(&p->thread, NULL, pin_thread, p);
	if (r < 0) {
		pin_free(p);
		return err_set(err, r, "cannot start the pin thread: %s",
			       strerror(-r));
	}
	p->started = !inlined;
	*ret = p;
	return 0;
}

void pin_stop(struct pin *p)
{
	pthread_mutex_lock(&p->lock);
	p->stopping = true;
	pthread_cond_broadcast(&p->filled);
	pthread_mutex_unlock(&p->lock);
	pinned_cancel(p->pool);
}

void pin_join(struct pin *p)
{
	if (p->started)
		pthread_join(p->thread, NULL);
	p->started = false;
}

void pin_free(struct pin *p)
{
	if (!p)
		return;
	pin_join(p);
	pinned_free(p->pool);
	pthread_cond_destroy(&p->filled);
	pthread_mutex_destroy(&p->lock);
	free(p->places);
	free(p->ring);
	free(p);
}

static int pin_inline(struct pin *p, uint64_t until)
{
	struct err err = { 0 };
	int r = pin_one(p, until, &err);

	if (r < 0 && r != -ECANCELED && r != -ETIMEDOUT)
		flow_stop(p->flow, r, &err);
	return r;
}

int pin_next(struct pin *p, uint64_t deadline, struct delivery *ret)
{
	bool late = false;
	int r = p->inlined ? pin_inline(p, deadline) : 0;

	if (r < 0)
		return r;
	pthread_mutex_lock(&p->lock);
	while (p->pins.n_in == p->pins.n_out && !p->stopping && !late)
		late = tick_cond_wait(p->tick, &p->filled, &p->lock, deadline);
	if (p->stopping)
		r = -ECANCELED;
	else if (p->pins.n_in == p->pins.n_out)
		r = -ETIMEDOUT;
	else
		*ret = p->ring[p->pins.n_out++ % pins_buffers(&p->pins)];
	pthread_mutex_unlock(&p->lock);
	return r;
}

uint32_t pin_n_ready(struct pin *p)
{
	LOCK_SCOPE(&p->lock);

	return (uint32_t)(p->pins.n_in - p->pins.n_out);
}

uint64_t pin_most_bytes(struct pin *p)
{
	return pinned_most_bytes(p->pool);
}

void pin_release(struct pin *p, struct delivery *d)
{
	pinned_put(p->pool, d->pinned);
}

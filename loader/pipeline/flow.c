/* SPDX-License-Identifier: MIT */
#include "loader/pipeline/flow.h"

#include <assert.h>
#include <errno.h>
#include <pthread.h>
#include <sched.h>

#include "common/thread.h"
#include "common/units.h"
#include "common/util.h"

/* Of a window of one sample, of which there are many: beyond this it keeps no
 * more than twice what it needs. arbitrary: as loader/pipeline/worker.c */
#define KEEP_BYTES MIB

/* The memory of a window: one of these. */
struct memory {
	struct buffer plain;
	struct pinned_buffer *pinned;
};

struct flow {
	struct flow_config c;
	pthread_mutex_t lock;
	pthread_cond_t work;   /* a window is free, an epoch began, stopping */
	pthread_cond_t done;   /* a batch is complete, stopping */
	pthread_cond_t stop;   /* stopping */
	struct memory *memory; /* of each window */
	struct place *places;  /* of all gathered batches */
	/* lock guards all fields below */
	struct windows w;
	bool stopping;
	int error;
	struct err err;
};

static int window_init(struct window *w, const struct windows_config *c)
{
	size_t n = (size_t)c->batch * c->superbatch;

	w->cpu = -1;
	w->place = calloc(n, sizeof(*w->place));
	w->turn = calloc(n, sizeof(*w->turn));
	w->raw_at = calloc(n, sizeof(*w->raw_at));
	for (uint32_t i = 0; w->place && i < c->superbatch; i++)
		w->batch[i].place = w->place + (size_t)i * c->batch;
	return w->place && w->turn && w->raw_at ? 0 : -ENOMEM;
}

/* What was gathered (singles.h) has slots of its own. */
static int singles_places(struct flow *f)
{
	struct singles *s = &f->w.singles;

	f->places = calloc((size_t)s->n_made * s->c.batch, sizeof(*f->places));
	for (uint32_t i = 0; f->places && i < s->n_made; i++)
		s->made[i].place = f->places + (size_t)i * s->c.batch;
	return f->places ? 0 : -ENOMEM;
}

int flow_new(const struct flow_config *c, struct flow **ret, struct err *err)
{
	struct flow *f = calloc(1, sizeof(*f));
	uint32_t n = c->windows.n;
	int r = f ? 0 : -ENOMEM;

	assert(!c->pinned || !c->windows.singles.batching);
	if (r == 0) {
		f->c = *c;
		pthread_mutex_init(&f->lock, NULL);
		pthread_cond_init(&f->work, NULL);
		tick_cond_init(&f->done);
		tick_cond_init(&f->stop);
		f->memory = calloc(n, sizeof(*f->memory));
		r = f->memory ? windows_init(&f->w, &c->windows) : -ENOMEM;
	}
	if (r == 0 && c->windows.singles.batching)
		r = singles_places(f);
	for (uint32_t i = 0; r == 0 && i < n; i++)
		r = window_init(&f->w.all[i], &c->windows);
	if (r < 0) {
		flow_free(f);
		return err_set(err, r, "out of memory for %u windows", n);
	}
	*ret = f;
	return 0;
}

void flow_free(struct flow *f)
{
	if (!f)
		return;
	for (uint32_t i = 0; f->w.all && i < f->c.windows.n; i++) {
		struct window *w = &f->w.all[i];

		if (f->memory[i].pinned)
			pinned_put(f->c.pinned, f->memory[i].pinned);
		buffer_free(&f->memory[i].plain);
		free(w->place);
		free(w->turn);
		free(w->raw_at);
	}
	windows_fini(&f->w);
	pthread_cond_destroy(&f->work);
	pthread_cond_destroy(&f->done);
	pthread_cond_destroy(&f->stop);
	pthread_mutex_destroy(&f->lock);
	free(f->memory);
	free(f->places);
	free(f);
}

void flow_begin(struct flow *f, uint64_t epoch, const uint32_t *order,
		uint64_t n)
{
	pthread_mutex_lock(&f->lock);
	windows_begin(&f->w, epoch, order, n);
	pthread_cond_broadcast(&f->work);
	pthread_mutex_unlock(&f->lock);
}

struct sort {
	const struct window *w;
	const uint64_t *address;
};

static int by_address(const void *a, const void *b, void *ctx)
{
	const struct sort *s = ctx;
	uint32_t i = *(const uint32_t *)a, j = *(const uint32_t *)b;
	uint64_t x = s->address[s->w->order[i]], y = s->address[s->w->order[j]];

	if (x != y)
		return x < y ? -1 : 1;
	return i < j ? -1 : i > j;
}

/* Set the order in which the window's samples are read. */
static void take_turns(const struct flow_config *c, struct window *w)
{
	uint32_t step = c->whole_batches ? c->windows.batch : w->n;
	struct sort s = { .w = w, .address = c->address };

	for (uint32_t i = 0; i < w->n; i++)
		w->turn[i] = i;
	for (uint32_t i = 0; c->address && i < w->n; i += step)
		qsort_r(w->turn + i, MIN(step, w->n - i), sizeof(*w->turn),
			by_address, &s);
}

static int no_memory(struct err *err)
{
	return err_set(err, -ENOMEM,
		       "out of memory for the batches in flight: use a smaller "
		       "--batch, --prefetch or --superbatch");
}

/* Allocate memory for the window's batches. -EAGAIN: not now; -E2BIG, -EPERM,
 * -ENOMEM with a text. */
static int reserve(const struct flow_config *c, struct window *w, uint32_t n,
		   struct memory *m, struct err *err)
{
	size_t bytes = c->stride * n;
	char *data;
	int r;

	for (uint32_t i = 0; c->raw && i < n; i++) {
		w->raw_at[i] = bytes;
		/* an order may draw a sample more than once */
		if (__builtin_add_overflow(
			    bytes,
			    buffer_room(dataset_size(c->data, w->order[i]),
					c->direct),
			    &bytes))
			return no_memory(err);
	}
	if (c->pinned) {
		r = pinned_try_get(c->pinned, bytes, &m->pinned, err);
		if (r < 0)
			return r;
		data = m->pinned->data;
	} else {
		if (c->windows.singles.batching && m->plain.size > KEEP_BYTES &&
		    m->plain.size / 2 > bytes)
			buffer_free(&m->plain);
		if (buffer_reserve(&m->plain, bytes) < 0)
			return no_memory(err);
		data = m->plain.data;
	}
	w->raw = c->raw ? data : NULL;
	w->out = c->raw ? NULL : data;
	return 0;
}

/* Under the lock: record a failure and stop. */
static void fail_flow(struct flow *f, int r, const struct err *err)
{
	f->stopping = true;
	if (r < 0 && f->error == 0) {
		f->error = r;
		f->err = *err;
	}
	pthread_cond_broadcast(&f->work);
	pthread_cond_broadcast(&f->done);
	pthread_cond_broadcast(&f->stop);
}

/* Under the lock, of the free windows: the last one that was filled on this
 * processor, whose cache may still have it; else the last one. */
static uint32_t warmest(const struct flow *f)
{
	uint32_t i = f->w.n_free;
	int cpu = sched_getcpu();

	while (i && f->w.free[i - 1]->cpu != cpu)
		i--;
	return i ? i - 1 : f->w.n_free - 1;
}

/* Under the lock. False: no window is free, or no memory for one, or there are
 * no more samples, or the flow has failed. */
static bool open_window(struct flow *f)
{
	uint32_t n = windows_room(&f->w), i;
	struct err err = { 0 };
	struct window *w;
	int r;

	if (n == 0)
		return false;
	i = warmest(f);
	w = f->w.free[i];
	w->order = windows_order(&f->w);
	r = reserve(&f->c, w, n, &f->memory[w - f->w.all], &err);
	if (r < 0) {
		if (r != -EAGAIN)
			fail_flow(f, r, &err);
		return false;
	}
	w->cpu = sched_getcpu();
	windows_open(&f->w, i);
	take_turns(&f->c, w);
	return true;
}

int flow_lease(struct flow *f, uint32_t want, bool wait, struct window **ret,
	       uint32_t *ret_pos, uint32_t *ret_end)
{
	bool leased = false;
	int r;

	pthread_mutex_lock(&f->lock);
	while (!f->stopping && !leased) {
		leased = windows_lease(&f->w, want, ret, ret_pos, ret_end);
		if (leased || open_window(f) || f->stopping)
			continue;
		if (!wait)
			break;
		pthread_cond_wait(&f->work, &f->lock);
	}
	r = leased ? 0 : f->stopping ? -ECANCELED : -EAGAIN;
	pthread_mutex_unlock(&f->lock);
	return r;
}

struct batch *flow_batch(const struct flow *f, struct window *w, uint32_t slot)
{
	return &w->batch[slot / f->c.windows.batch];
}

void flow_complete(struct flow *f, struct batch *b)
{
	bool next;

	pthread_mutex_lock(&f->lock);
	next = windows_complete(&f->w, b);
	pthread_mutex_unlock(&f->lock);
	/* who wakes up needs the lock */
	if (next)
		pthread_cond_signal(&f->done);
}

int flow_next(struct flow *f, uint64_t deadline, struct batch **ret)
{
	struct batch *b = NULL;
	bool late = false;
	int r;

	pthread_mutex_lock(&f->lock);
	while (!f->stopping && !(b = windows_next(&f->w)) && !late)
		late = tick_cond_wait(f->c.tick, &f->done, &f->lock, deadline);
	for (uint32_t i = 0; b && b->single && i < b->n; i++)
		b->place[i] = ((struct batch *)b->single[i])->place[0];
	if (b)
		*ret = b;
	r = b ? 0 : f->stopping ? -ECANCELED : -ETIMEDOUT;
	pthread_mutex_unlock(&f->lock);
	return r;
}

uint32_t flow_n_complete(struct flow *f)
{
	LOCK_SCOPE(&f->lock);

	return windows_n_complete(&f->w);
}

void flow_release(struct flow *f, struct batch *b)
{
	bool unused;

	pthread_mutex_lock(&f->lock);
	unused = windows_release(&f->w, b);
	if (unused && f->c.pinned) {
		struct memory *m = &f->memory[b->window - f->w.all];

		assert(!b->single);
		pinned_put(f->c.pinned, m->pinned);
		m->pinned = NULL;
	}
	pthread_mutex_unlock(&f->lock);
	if (unused)
		pthread_cond_broadcast(&f->work);
}

int flow_pause(struct flow *f, uint64_t deadline)
{
	bool late = false;
	int r;

	pthread_mutex_lock(&f->lock);
	while (!f->stopping && !late)
		late = tick_cond_wait_coarse(f->c.tick, &f->stop, &f->lock,
					     deadline);
	r = f->stopping ? -ECANCELED : 0;
	pthread_mutex_unlock(&f->lock);
	return r;
}

void flow_stop(struct flow *f, int r, const struct err *err)
{
	pthread_mutex_lock(&f->lock);
	fail_flow(f, r, err);
	pthread_mutex_unlock(&f->lock);
}

int flow_error(struct flow *f, struct err *err)
{
	int r;

	pthread_mutex_lock(&f->lock);
	r = f->error;
	if (r < 0)
		err_set(err, r, "%s", f->err.text);
	pthread_mutex_unlock(&f->lock);
	return r;
}

/* --- as a supply ---------------------------------------------------------- */

static void begin_supply(void *state, uint64_t epoch, const uint32_t *order,
			 uint64_t n)
{
	flow_begin(state, epoch, order, n);
}

static int next_supply(void *state, uint64_t deadline, struct batch **ret)
{
	return flow_next(state, deadline, ret);
}

static void release(void *state, struct batch *b)
{
	flow_release(state, b);
}

static uint32_t n_complete(void *state)
{
	return flow_n_complete(state);
}

const struct supply_ops supply_flow = {
	.begin = begin_supply,
	.next = next_supply,
	.release = release,
	.n_complete = n_complete,
};

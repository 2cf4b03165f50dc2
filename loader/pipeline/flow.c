/* SPDX-License-Identifier: MIT */
#include "loader/pipeline/flow.h"

#include <assert.h>
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <string.h>

#include "common/thread.h"
#include "common/units.h"
#include "common/util.h"

/* Of a lean window; beyond this it keeps no more than twice what it needs.
 * arbitrary: as loader/pipeline/worker.c */
#define KEEP_BYTES MIB

/* Samples to lease: what is left of one flow_begin. */
struct piece {
	uint64_t epoch;
	const uint32_t *order;
	uint64_t n;
};

struct flow {
	struct flow_config c;
	pthread_mutex_t lock;
	pthread_cond_t work; /* a window is free, an epoch began, stopping */
	pthread_cond_t done; /* a batch is complete, stopping */
	pthread_cond_t stop; /* stopping */
	struct window *windows;
	/* lock guards all fields below */
	struct window **free; /* a stack, most recently used on top */
	uint32_t n_free;
	struct window **open;	/* n_windows, by index modulo n_windows */
	uint64_t n_opened;	/* the next window's index */
	struct window *current; /* samples are leased from it */
	uint64_t out_window;	/* index of the oldest window not delivered */
	uint32_t out_batch;
	struct batch *first, *last; /* completed batches, with any_order */
	uint32_t n_complete;	    /* completed batches not delivered yet */
	struct piece *piece;	    /* n_windows, a ring */
	uint32_t first_piece, n_pieces;
	bool stopping;
	int error;
	struct err err;
};

static int window_init(struct window *w, const struct flow_config *c)
{
	size_t n = (size_t)c->batch * c->superbatch;

	w->cpu = -1;
	w->batch = calloc(c->superbatch, sizeof(*w->batch));
	w->place = calloc(n, sizeof(*w->place));
	w->turn = calloc(n, sizeof(*w->turn));
	w->raw_at = calloc(n, sizeof(*w->raw_at));
	return w->batch && w->place && w->turn && w->raw_at ? 0 : -ENOMEM;
}

static void window_fini(struct window *w, struct pinned_pool *pinned)
{
	if (w->pinned)
		pinned_put(pinned, w->pinned);
	buffer_free(&w->memory);
	free(w->batch);
	free(w->place);
	free(w->turn);
	free(w->raw_at);
}

int flow_new(const struct flow_config *c, struct flow **ret, struct err *err)
{
	struct flow *f = calloc(1, sizeof(*f));
	int r = f ? 0 : -ENOMEM;

	if (r == 0) {
		f->c = *c;
		pthread_mutex_init(&f->lock, NULL);
		pthread_cond_init(&f->work, NULL);
		tick_cond_init(&f->done);
		tick_cond_init(&f->stop);
		f->windows = calloc(c->n_windows, sizeof(*f->windows));
		f->free = calloc(c->n_windows, sizeof(struct window *));
		f->open = calloc(c->n_windows, sizeof(struct window *));
		f->piece = calloc(c->n_windows, sizeof(*f->piece));
		r = f->windows && f->free && f->open && f->piece ? 0 : -ENOMEM;
	}
	for (uint32_t i = 0; r == 0 && i < c->n_windows; i++) {
		r = window_init(&f->windows[i], c);
		f->free[f->n_free++] = &f->windows[i];
	}
	if (r < 0) {
		flow_free(f);
		return err_set(err, r, "out of memory for %u windows",
			       c->n_windows);
	}
	*ret = f;
	return 0;
}

void flow_free(struct flow *f)
{
	if (!f)
		return;
	for (uint32_t i = 0; f->windows && i < f->c.n_windows; i++)
		window_fini(&f->windows[i], f->c.pinned);
	pthread_cond_destroy(&f->work);
	pthread_cond_destroy(&f->done);
	pthread_cond_destroy(&f->stop);
	pthread_mutex_destroy(&f->lock);
	free(f->windows);
	free(f->free);
	free(f->open);
	free(f->piece);
	free(f);
}

/* Under the lock: the piece from which the next window is; NULL: none. */
static struct piece *current_piece(struct flow *f)
{
	while (f->n_pieces && f->piece[f->first_piece].n == 0) {
		f->first_piece = (f->first_piece + 1) % f->c.n_windows;
		f->n_pieces--;
	}
	return f->n_pieces ? &f->piece[f->first_piece] : NULL;
}

void flow_begin(struct flow *f, uint64_t epoch, const uint32_t *order,
		uint64_t n)
{
	uint32_t last;

	pthread_mutex_lock(&f->lock);
	current_piece(f); /* drops those that are leased */
	assert(f->n_pieces < f->c.n_windows);
	last = (f->first_piece + f->n_pieces++) % f->c.n_windows;
	f->piece[last] = (struct piece){ epoch, order, n };
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
	uint32_t step = c->whole_batches ? c->batch : w->n;
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
static int reserve(const struct flow_config *c, struct window *w,
		   struct err *err)
{
	size_t bytes = c->stride * w->n;
	char *data;
	int r;

	for (uint32_t i = 0; c->raw && i < w->n; i++) {
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
		r = pinned_try_get(c->pinned, bytes, &w->pinned, err);
		if (r < 0)
			return r;
		data = w->pinned->data;
	} else {
		if (c->lean && w->memory.size > KEEP_BYTES &&
		    w->memory.size / 2 > bytes)
			buffer_free(&w->memory);
		if (buffer_reserve(&w->memory, bytes) < 0)
			return no_memory(err);
		data = w->memory.data;
	}
	w->raw = c->raw ? data : NULL;
	w->out = c->raw ? NULL : data;
	return 0;
}

/* Lay out the window's batches. */
static void lay_out(const struct flow_config *c, struct window *w)
{
	take_turns(c, w);
	w->n_batches = (w->n + c->batch - 1) / c->batch;
	for (uint32_t i = 0; i < w->n_batches; i++) {
		struct batch *b = &w->batch[i];

		b->window = w;
		b->place = w->place + (size_t)i * c->batch;
		b->n = MIN(c->batch, w->n - i * c->batch);
		atomic_store_explicit(&b->pending, b->n, memory_order_relaxed);
		b->due_ns = 0;
		b->complete = false;
	}
}

/* Under the lock: record a failure and stop. */
static void fail(struct flow *f, int r, const struct err *err)
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
	uint32_t i = f->n_free;
	int cpu = sched_getcpu();

	while (i && f->free[i - 1]->cpu != cpu)
		i--;
	return i ? i - 1 : f->n_free - 1;
}

/* Under the lock. NULL: no window is free, or no memory for one, or there are
 * no more samples, or the flow has failed. */
static struct window *open_window(struct flow *f)
{
	uint64_t whole = (uint64_t)f->c.batch * f->c.superbatch;
	struct piece *p = current_piece(f);
	struct err err = { 0 };
	struct window *w;
	uint32_t i;
	int r;

	if (!p || f->n_free == 0)
		return NULL;
	i = warmest(f);
	w = f->free[i];
	w->order = p->order;
	w->n = (uint32_t)MIN(whole, p->n);
	r = reserve(&f->c, w, &err);
	if (r < 0) {
		if (r != -EAGAIN)
			fail(f, r, &err);
		return NULL;
	}
	f->n_free--;
	memmove(&f->free[i], &f->free[i + 1],
		(f->n_free - i) * sizeof(*f->free));
	w->cpu = sched_getcpu();
	w->index = f->n_opened++;
	w->epoch = p->epoch;
	w->taken = 0;
	w->released = 0;
	atomic_store_explicit(&w->arrived, 0, memory_order_relaxed);
	p->order += w->n;
	p->n -= w->n;
	f->open[w->index % f->c.n_windows] = w;
	lay_out(&f->c, w);
	return w;
}

int flow_lease(struct flow *f, uint32_t want, bool wait, struct window **ret,
	       uint32_t *ret_pos, uint32_t *ret_end)
{
	struct window *w;
	int r = -EAGAIN;

	pthread_mutex_lock(&f->lock);
	while (!f->stopping) {
		w = f->current;
		if (!w || w->taken == w->n)
			w = f->current = open_window(f);
		if (w || (!wait && !f->stopping))
			break;
		if (!f->stopping)
			pthread_cond_wait(&f->work, &f->lock);
	}
	if (f->stopping) {
		r = -ECANCELED;
	} else if (w) {
		uint32_t in_batch = f->c.batch - w->taken % f->c.batch;

		*ret = w;
		*ret_pos = w->taken;
		w->taken += MIN(want, MIN(in_batch, w->n - w->taken));
		*ret_end = w->taken;
		r = 0;
	}
	pthread_mutex_unlock(&f->lock);
	return r;
}

struct batch *flow_batch(const struct flow *f, struct window *w, uint32_t slot)
{
	return &w->batch[slot / f->c.batch];
}

bool flow_finish_some(struct batch *b, uint32_t n)
{
	/* release: publishes this thread's writes to the batch; acquire: the
	 * last thread sees the writes of all others */
	return atomic_fetch_sub_explicit(&b->pending, n,
					 memory_order_acq_rel) == n;
}

/* Under the lock: the next batch to deliver; NULL: none. */
static struct batch *out_batch(struct flow *f)
{
	struct window *w;

	if (f->c.any_order)
		return f->first;
	if (f->out_window == f->n_opened)
		return NULL;
	w = f->open[f->out_window % f->c.n_windows];
	return &w->batch[f->out_batch];
}

/* Under the lock: advance past out_batch, which is complete. */
static void move_on(struct flow *f, const struct batch *b)
{
	if (f->c.any_order) {
		f->first = b->next;
	} else if (++f->out_batch == b->window->n_batches) {
		f->out_window++;
		f->out_batch = 0;
	}
}

/* Under the lock: append to the completed batches. */
static void queue(struct flow *f, struct batch *b)
{
	b->next = NULL;
	if (f->first)
		f->last->next = b;
	else
		f->first = b;
	f->last = b;
}

void flow_complete(struct flow *f, struct batch *b)
{
	bool next;

	pthread_mutex_lock(&f->lock);
	b->complete = true;
	f->n_complete++;
	if (f->c.any_order)
		queue(f, b);
	next = b == out_batch(f);
	pthread_mutex_unlock(&f->lock);
	/* who wakes up needs the lock */
	if (next)
		pthread_cond_signal(&f->done);
}

int flow_next(struct flow *f, uint64_t deadline, struct batch **ret)
{
	struct batch *b = NULL;
	bool late = false;
	int r = 0;

	pthread_mutex_lock(&f->lock);
	while (!f->stopping && !late) {
		b = out_batch(f);
		if (b && b->complete)
			break;
		late = tick_cond_wait(f->c.tick, &f->done, &f->lock, deadline);
	}
	if (f->stopping) {
		r = -ECANCELED;
	} else if (!b || !b->complete) {
		r = -ETIMEDOUT;
	} else {
		*ret = b;
		f->n_complete--;
		move_on(f, b);
	}
	pthread_mutex_unlock(&f->lock);
	return r;
}

uint32_t flow_n_complete(struct flow *f)
{
	LOCK_SCOPE(&f->lock);

	return f->n_complete;
}

void flow_release(struct flow *f, struct batch *b)
{
	struct window *w = b->window;
	bool unused;

	pthread_mutex_lock(&f->lock);
	unused = ++w->released == w->n_batches;
	if (unused) {
		f->free[f->n_free++] = w;
		if (w->pinned)
			pinned_put(f->c.pinned, w->pinned);
		w->pinned = NULL;
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
	fail(f, r, err);
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

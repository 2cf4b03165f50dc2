/* SPDX-License-Identifier: MIT */
#include "loader/core/windows.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/util.h"

int windows_init(struct windows *ws, const struct windows_config *c)
{
	*ws = (struct windows){ .c = *c };
	ws->all = calloc(c->n, sizeof(*ws->all));
	ws->free = calloc(c->n, sizeof(struct window *));
	ws->open = calloc(c->n, sizeof(struct window *));
	ws->piece = calloc(c->n, sizeof(*ws->piece));
	if (!ws->all || !ws->free || !ws->open || !ws->piece)
		return -ENOMEM;
	for (uint32_t i = 0; i < c->n; i++) {
		struct window *w = &ws->all[i];

		w->batch = calloc(c->superbatch, sizeof(*w->batch));
		if (!w->batch)
			return -ENOMEM;
		for (uint32_t k = 0; k < c->superbatch; k++)
			w->batch[k].window = w;
		ws->free[ws->n_free++] = w;
	}
	return c->singles.batching
		       ? singles_init(&ws->singles, &c->singles, c->n)
		       : 0;
}

void windows_fini(struct windows *ws)
{
	singles_fini(&ws->singles);
	for (uint32_t i = 0; ws->all && i < ws->c.n; i++)
		free(ws->all[i].batch);
	free(ws->all);
	free(ws->free);
	free(ws->open);
	free(ws->piece);
}

/* The piece from which the next window is; NULL: none. */
static struct windows_piece *current_piece(struct windows *ws)
{
	while (ws->n_pieces && ws->piece[ws->first_piece].n == 0) {
		ws->first_piece = (ws->first_piece + 1) % ws->c.n;
		ws->n_pieces--;
	}
	return ws->n_pieces ? &ws->piece[ws->first_piece] : NULL;
}

void windows_begin(struct windows *ws, uint64_t epoch, const uint32_t *order,
		   uint64_t n)
{
	uint32_t last;

	if (ws->c.singles.batching)
		singles_begin(&ws->singles, n);
	current_piece(ws); /* drops those that are leased */
	assert(ws->n_pieces < ws->c.n);
	last = (ws->first_piece + ws->n_pieces++) % ws->c.n;
	ws->piece[last] = (struct windows_piece){ epoch, order, 0, n };
}

uint32_t windows_room(struct windows *ws)
{
	const struct windows_piece *p = current_piece(ws);
	uint64_t most = (uint64_t)ws->c.batch * ws->c.superbatch;

	return p && ws->n_free ? (uint32_t)MIN(most, p->n) : 0;
}

const uint32_t *windows_order(const struct windows *ws)
{
	return ws->piece[ws->first_piece].order;
}

void windows_open(struct windows *ws, uint32_t at)
{
	struct windows_piece *p = &ws->piece[ws->first_piece];
	struct window *w = ws->free[at];
	uint32_t batch = ws->c.batch;

	w->n = windows_room(ws);
	w->epoch = p->epoch;
	w->order = p->order;
	w->first = p->first;
	p->order += w->n;
	p->first += w->n;
	p->n -= w->n;
	ws->n_free--;
	memmove(&ws->free[at], &ws->free[at + 1],
		(ws->n_free - at) * sizeof(*ws->free));
	w->index = ws->n_opened++;
	w->n_batches = (w->n + batch - 1) / batch;
	w->taken = w->released = 0;
	atomic_store_explicit(&w->arrived, 0, memory_order_relaxed);
	for (uint32_t i = 0; i < w->n_batches; i++) {
		struct batch *b = &w->batch[i];

		b->n = MIN(batch, w->n - i * batch);
		atomic_store_explicit(&b->pending, b->n, memory_order_relaxed);
		b->due_ns = b->bytes = 0;
		b->complete = false;
	}
	ws->open[w->index % ws->c.n] = ws->current = w;
}

bool windows_lease(struct windows *ws, uint32_t want, struct window **ret,
		   uint32_t *ret_at, uint32_t *ret_end)
{
	struct window *w = ws->current;
	uint32_t in_batch;

	if (!w || w->taken == w->n)
		return false;
	in_batch = ws->c.batch - w->taken % ws->c.batch;
	*ret = w;
	*ret_at = w->taken;
	w->taken += MIN(want, MIN(in_batch, w->n - w->taken));
	*ret_end = w->taken;
	return true;
}

bool windows_fill(struct batch *b, uint32_t n)
{
	/* release: publishes this thread's writes to the batch; acquire: the
	 * last thread sees the writes of all others */
	return atomic_fetch_sub_explicit(&b->pending, n,
					 memory_order_acq_rel) == n;
}

/* The next batch to leave, complete or not; NULL: none is open. */
static struct batch *out_batch(const struct windows *ws)
{
	if (ws->c.any_order)
		return ws->first;
	if (ws->out_window == ws->n_opened)
		return NULL;
	return &ws->open[ws->out_window % ws->c.n]->batch[ws->out_batch];
}

bool windows_complete(struct windows *ws, struct batch *b)
{
	if (ws->c.singles.batching) {
		singles_add(&ws->singles, b);
		return singles_n_complete(&ws->singles) > 0;
	}
	b->complete = true;
	ws->n_complete++;
	b->next = NULL;
	if (!ws->c.any_order)
		return b == out_batch(ws);
	if (ws->first)
		ws->last->next = b;
	else
		ws->first = b;
	ws->last = b;
	return b == ws->first;
}

uint32_t windows_n_complete(const struct windows *ws)
{
	return ws->c.singles.batching ? singles_n_complete(&ws->singles)
				      : ws->n_complete;
}

struct batch *windows_next(struct windows *ws)
{
	struct batch *b;

	if (ws->c.singles.batching)
		return singles_next(&ws->singles);
	b = out_batch(ws);
	if (!b || !b->complete)
		return NULL;
	ws->n_complete--;
	if (ws->c.any_order) {
		ws->first = b->next;
	} else if (++ws->out_batch == b->window->n_batches) {
		ws->out_window++;
		ws->out_batch = 0;
	}
	return b;
}

static bool release_one(struct windows *ws, const struct batch *b)
{
	struct window *w = b->window;

	if (++w->released < w->n_batches)
		return false;
	ws->free[ws->n_free++] = w;
	return true;
}

bool windows_release(struct windows *ws, struct batch *b)
{
	if (!b->single)
		return release_one(ws, b);
	for (uint32_t i = 0; i < b->n; i++)
		release_one(ws, b->single[i]);
	singles_release(&ws->singles, b);
	return true;
}

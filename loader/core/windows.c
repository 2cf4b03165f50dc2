/* SPDX-License-Identifier: MIT */
#include "loader/core/windows.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

int windows_init(struct windows *ws, const struct windows_config *c)
{
	*ws = (struct windows){ .c = *c };
	ws->all = calloc(c->n, sizeof(*ws->all));
	ws->free = calloc(c->n, sizeof(struct window *));
	ws->open = calloc(c->n, sizeof(struct window *));
	if (!ws->all || !ws->free || !ws->open)
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
	return 0;
}

void windows_fini(struct windows *ws)
{
	for (uint32_t i = 0; ws->all && i < ws->c.n; i++)
		free(ws->all[i].batch);
	free(ws->all);
	free(ws->free);
	free(ws->open);
}

void windows_open(struct windows *ws, uint32_t at, uint32_t n)
{
	struct window *w = ws->free[at];
	uint32_t batch = ws->c.batch;

	ws->n_free--;
	memmove(&ws->free[at], &ws->free[at + 1],
		(ws->n_free - at) * sizeof(*ws->free));
	w->index = ws->n_opened++;
	w->n = n;
	w->n_batches = (n + batch - 1) / batch;
	w->taken = w->released = 0;
	atomic_store_explicit(&w->arrived, 0, memory_order_relaxed);
	for (uint32_t i = 0; i < w->n_batches; i++) {
		struct batch *b = &w->batch[i];

		b->n = MIN(batch, n - i * batch);
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

struct batch *windows_next(struct windows *ws)
{
	struct batch *b = out_batch(ws);

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

bool windows_release(struct windows *ws, struct batch *b)
{
	struct window *w = b->window;

	if (++w->released < w->n_batches)
		return false;
	ws->free[ws->n_free++] = w;
	return true;
}

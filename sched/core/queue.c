/* SPDX-License-Identifier: MIT */
#include "sched/core/queue.h"

#include <errno.h>
#include <stdlib.h>

#include "common/heap.h"
#include "common/util.h"

static bool queued_after(const struct queued *a, const struct queued *b)
{
	return queued_before(b, a);
}

static bool head_before(const struct queue_head *a, const struct queue_head *b)
{
	return queued_before(&a->first, &b->first);
}

DEFINE_HEAP(firsts, struct queued, queued_before, heap_unplaced)
DEFINE_HEAP(lasts, struct queued, queued_after, heap_unplaced)
DEFINE_HEAP(heads, struct queue_head, head_before, heap_unplaced)

int queue_init(struct queue *q, const struct sched_job *jobs, size_t n)
{
	*q = (struct queue){ 0 };
	for (size_t i = 0; i < n; i++)
		q->n_shapes = MAX(q->n_shapes, (size_t)jobs[i].shape + 1);
	q->shapes = calloc(q->n_shapes + 1, sizeof(*q->shapes));
	q->heads = malloc((q->n_shapes + 1) * sizeof(*q->heads));
	return q->shapes && q->heads ? 0 : -ENOMEM;
}

void queue_fini(struct queue *q)
{
	for (size_t i = 0; q->shapes && i < q->n_shapes; i++)
		free(q->shapes[i].v);
	free(q->shapes);
	free(q->heads);
	free(q->running);
	*q = (struct queue){ 0 };
}

void queue_reset(struct queue *q)
{
	for (size_t i = 0; i < q->n_shapes; i++)
		q->shapes[i].n = 0;
	q->n_running = q->n_seen = 0;
}

int queue_wait(struct queue *q, uint32_t shape, struct queued job)
{
	struct queue_shape *s = &q->shapes[shape];
	int r = util_reserve(&s->v, &s->allocated, s->n + 1, sizeof(*s->v));

	if (r < 0)
		return r;
	s->v[s->n++] = job;
	firsts_up(s->v, s->n - 1);
	return 0;
}

int queue_run(struct queue *q, struct queued job)
{
	int r = util_reserve(&q->running, &q->running_allocated,
			     q->n_running + 1, sizeof(*q->running));

	if (r < 0)
		return r;
	q->running[q->n_running++] = job;
	lasts_up(q->running, q->n_running - 1);
	return 0;
}

void queue_sooner(struct queue *q, struct queued last)
{
	q->running[0] = last;
	lasts_fix(q->running, q->n_running, 0);
}

void queue_drop_last(struct queue *q)
{
	q->running[0] = q->running[--q->n_running];
	lasts_fix(q->running, q->n_running, 0);
}

void queue_walk(struct queue *q)
{
	q->n_heads = 0;
	for (size_t i = 0; i < q->n_shapes; i++) {
		const struct queue_shape *s = &q->shapes[i];

		if (!s->n)
			continue;
		q->heads[q->n_heads++] =
			(struct queue_head){ s->v[0], (uint32_t)i };
		heads_up(q->heads, q->n_heads - 1);
	}
}

const struct queue_head *queue_next(const struct queue *q)
{
	return q->n_heads ? &q->heads[0] : NULL;
}

void queue_skip(struct queue *q)
{
	q->heads[0] = q->heads[--q->n_heads];
	heads_fix(q->heads, q->n_heads, 0);
}

void queue_take(struct queue *q)
{
	struct queue_shape *s = &q->shapes[q->heads[0].shape];

	s->v[0] = s->v[--s->n];
	firsts_fix(s->v, s->n, 0);
	if (!s->n) {
		queue_skip(q);
		return;
	}
	q->heads[0].first = s->v[0];
	heads_fix(q->heads, q->n_heads, 0);
}

/* SPDX-License-Identifier: MIT */
#include "service/decide/sweep.h"

#include <errno.h>
#include <stdlib.h>

#include "common/util.h"

struct element {
	void *element;
	uint64_t bytes;
};

struct sweep {
	uint64_t limit, bytes;
	sweep_drop_fn drop;
	void *ctx;
	uint64_t start, end;  /* indices of the elements in the window */
	struct element *ring; /* by index modulo `capacity` */
	uint64_t capacity;    /* 0, or a power of two */
};

/* arbitrary: the window grows as needed */
enum { FIRST_CAPACITY = 16 };

int sweep_new(uint64_t limit_bytes, sweep_drop_fn drop, void *ctx,
	      struct sweep **ret)
{
	struct sweep *s = calloc(1, sizeof(*s));

	if (!s)
		return -ENOMEM;
	s->limit = limit_bytes;
	s->drop = drop;
	s->ctx = ctx;
	*ret = s;
	return 0;
}

static void drop_oldest(struct sweep *s)
{
	struct element *e = &s->ring[s->start++ % s->capacity];

	s->bytes -= e->bytes;
	s->drop(e->element, s->ctx);
}

void sweep_free(struct sweep *s)
{
	if (!s)
		return;
	while (s->start < s->end)
		drop_oldest(s);
	free(s->ring);
	free(s);
}

int sweep_next(struct sweep *s, struct sweep_reader *r, void **ret)
{
	if (r->next < s->start) {
		/* before its first read a reader has not joined */
		r->n_skipped += r->n_read ? s->start - r->next : 0;
		r->next = s->start;
	}
	if (r->next == s->end)
		return -EAGAIN;
	*ret = s->ring[r->next++ % s->capacity].element;
	r->n_read++;
	return 0;
}

/* Room for one more element. */
static int reserve(struct sweep *s)
{
	uint64_t n = MAX(s->capacity * 2, FIRST_CAPACITY);
	struct element *ring;

	if (s->end - s->start < s->capacity)
		return 0;
	ring = calloc(n, sizeof(*ring));
	if (!ring)
		return -ENOMEM;
	for (uint64_t i = s->start; i < s->end; i++)
		ring[i % n] = s->ring[i % s->capacity];
	free(s->ring);
	s->ring = ring;
	s->capacity = n;
	return 0;
}

int sweep_extend(struct sweep *s, void *element, uint64_t bytes)
{
	uint64_t counts = MAX(bytes, 1);

	if (counts > s->limit)
		return -EFBIG;
	while (s->bytes > s->limit - counts)
		drop_oldest(s);
	if (reserve(s) < 0)
		return -ENOMEM;
	s->ring[s->end++ % s->capacity] =
		(struct element){ .element = element, .bytes = counts };
	s->bytes += counts;
	return 0;
}

uint64_t sweep_made(const struct sweep *s)
{
	return s->end;
}

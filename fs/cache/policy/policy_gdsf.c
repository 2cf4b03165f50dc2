/* SPDX-License-Identifier: MIT */
/*
 * Greedy-Dual-Size-Frequency (Cherkasova, "Improving WWW proxies performance
 * with Greedy-Dual-Size-Frequency caching policy", HP Laboratories report
 * HPL-98-69, 1998): the victim has the least
 *
 *	H = L + uses x cost / size
 *
 * where L is the H of the last victim, so that unused entries age. The cost of
 * a miss is 1 here, the report's choice for most object hits. Among equals the
 * victim is the one whose H was set first.
 *
 * No H is ever less than L, so the entries need no heap but a radix heap
 * (Ahuja, Mehlhorn, Orlin and Tarjan, "Faster algorithms for the shortest path
 * problem", Journal of the ACM, 1990): H that differ from a base first in bit
 * n are together in queue n + 1, those equal to it in queue 0. When queue 0 is
 * empty the least H becomes the base, and the first queue that is not empty is
 * spread over those before it. A hit only moves an entry from queue to queue,
 * and queues keep the order among equals.
 */
#include <string.h>

#include "common/util.h"
#include "fs/cache/policy/policy_list.h"

enum { N_QUEUES = 64 };

/* The bits of a double that is not negative have its order. */
struct queue {
	struct policy_list list;
	uint64_t least; /* no H in it is less */
};

struct gdsf {
	struct queue queue[N_QUEUES];
	uint64_t filled; /* bit n: queue n is not empty */
	uint64_t base;	 /* at most the bits of any H */
	double age;	 /* L */
};

struct gdsf_entry {
	struct policy_link link;
	uint64_t value; /* the bits of H */
	uint32_t uses;
};

static unsigned queue_of(const struct gdsf *s, uint64_t value)
{
	uint64_t differs = value ^ s->base;

	return differs ? 64 - (unsigned)__builtin_clzll(differs) : 0;
}

static void enter(struct gdsf *s, struct cache_entry *e)
{
	const struct gdsf_entry *x = cache_entry_data(e);
	unsigned n = queue_of(s, x->value);
	struct queue *q = &s->queue[n];

	if (!q->list.tail || x->value < q->least)
		q->least = x->value;
	policy_list_push(&q->list, e);
	s->filled |= (uint64_t)1 << n;
}

static void leave(struct gdsf *s, struct cache_entry *e)
{
	const struct gdsf_entry *x = cache_entry_data(e);
	unsigned n = queue_of(s, x->value);

	policy_list_remove(&s->queue[n].list, e);
	if (!s->queue[n].list.tail)
		s->filled &= ~((uint64_t)1 << n);
}

static void set_value(const struct gdsf *s, struct cache_entry *e)
{
	struct gdsf_entry *x = cache_entry_data(e);
	/* an empty file counts as one byte */
	double value = s->age + (double)x->uses / (double)MAX(e->bytes, 1);

	memcpy(&x->value, &value, sizeof(value));
}

static void gdsf_inserted(void *state, struct cache_entry *entry,
			  const struct cache_object *object)
{
	struct gdsf_entry *x = cache_entry_data(entry);

	(void)object;
	x->uses = 1;
	set_value(state, entry);
	enter(state, entry);
}

static void gdsf_hit(void *state, struct cache_entry *entry, uint64_t next_use)
{
	struct gdsf_entry *x = cache_entry_data(entry);

	(void)next_use;
	leave(state, entry);
	x->uses += x->uses < UINT32_MAX;
	set_value(state, entry);
	enter(state, entry);
}

static void gdsf_removed(void *state, struct cache_entry *entry)
{
	leave(state, entry);
}

/* Spread the first queue over those before it, oldest first. */
static void spread(struct gdsf *s)
{
	struct queue *q = &s->queue[__builtin_ctzll(s->filled)];
	struct cache_entry *e = q->list.tail;

	s->filled &= s->filled - 1;
	s->base = q->least;
	q->list = (struct policy_list){ 0 };
	while (e) {
		struct cache_entry *next = policy_list_newer(e);

		enter(s, e);
		e = next;
	}
}

static struct cache_entry *gdsf_victim(void *state)
{
	struct gdsf *s = state;

	/* `least` may be that of an entry that left: then once more */
	while (!s->queue[0].list.tail)
		spread(s);
	memcpy(&s->age, &s->base, sizeof(s->age));
	return s->queue[0].list.tail;
}

const struct policy_ops policy_gdsf = {
	.plugin = { .name = "gdsf",
		    .summary = "evict large, rarely used objects, with ageing",
		    .state_size = sizeof(struct gdsf) },
	.entry_size = sizeof(struct gdsf_entry),
	.inserted = gdsf_inserted,
	.hit = gdsf_hit,
	.removed = gdsf_removed,
	.victim = gdsf_victim,
};

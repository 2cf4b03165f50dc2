/* SPDX-License-Identifier: MIT */
/*
 * Least frequently used, counted while an object is cached ("in-cache LFU";
 * Breslau et al., "Web caching and Zipf-like distributions", INFOCOM 1999).
 * Among equals the victim is the least recently used.
 *
 * The entries of one count are a queue; the queues are a list by their count
 * (Shah, Mitra and Matani, "An O(1) algorithm for implementing the LFU cache
 * eviction scheme", 2010). A hit moves an entry to the queue of the next count.
 */
#include <stdlib.h>

#include "common/util.h"
#include "fs/cache/policy/policy_list.h"

/* The entries of one count, at least one. */
struct bucket {
	struct policy_list queue;
	uint32_t uses;
	uint32_t fewer, more; /* the next such buckets; 0: none */
};

/* All zeros: empty. */
struct lfu {
	struct bucket *v; /* v[0] begins the list */
	size_t n, allocated;
	uint32_t free; /* a list by `more` */
};

struct lfu_entry {
	struct policy_link link;
	uint32_t bucket;
};

static void lfu_fini(void *state)
{
	struct lfu *s = state;

	free(s->v);
}

/* Memory for a bucket more. */
static bool reserve(struct lfu *s)
{
	if (s->free)
		return true;
	if (util_reserve(&s->v, &s->allocated, s->n + 2, sizeof(*s->v)) < 0)
		return false;
	if (!s->n)
		s->v[s->n++] = (struct bucket){ 0 };
	return true;
}

/* The bucket of that count, maybe a new one, behind bucket `fewer`. */
static uint32_t bucket_behind(struct lfu *s, uint32_t fewer, uint32_t uses)
{
	uint32_t more = s->v[fewer].more, b = s->free;

	if (more && s->v[more].uses == uses)
		return more;
	if (b)
		s->free = s->v[b].more;
	else
		b = (uint32_t)s->n++;
	s->v[b] = (struct bucket){ .uses = uses, .fewer = fewer, .more = more };
	s->v[fewer].more = b;
	if (more)
		s->v[more].fewer = b;
	return b;
}

static void enter(struct lfu *s, struct cache_entry *e, uint32_t bucket)
{
	struct lfu_entry *x = cache_entry_data(e);

	policy_list_push(&s->v[bucket].queue, e);
	x->bucket = bucket;
}

static void leave(struct lfu *s, struct cache_entry *e)
{
	const struct lfu_entry *x = cache_entry_data(e);
	uint32_t number = x->bucket;
	struct bucket *b = &s->v[number];

	policy_list_remove(&b->queue, e);
	if (b->queue.tail)
		return;
	s->v[b->fewer].more = b->more;
	if (b->more)
		s->v[b->more].fewer = b->fewer;
	b->more = s->free;
	s->free = number;
}

static bool lfu_admit(void *state, const struct cache_object *object,
		      struct cache_entry *ghost)
{
	(void)object;
	(void)ghost;
	return reserve(state);
}

static void lfu_inserted(void *state, struct cache_entry *entry,
			 const struct cache_object *object)
{
	(void)object;
	enter(state, entry, bucket_behind(state, 0, 1));
}

static void lfu_hit(void *state, struct cache_entry *entry, uint64_t next_use)
{
	const struct lfu_entry *x = cache_entry_data(entry);
	struct lfu *s = state;
	uint32_t to = x->bucket;

	(void)next_use;
	/* without memory for a bucket the count stays */
	if (s->v[to].uses < UINT32_MAX && reserve(s))
		to = bucket_behind(s, to, s->v[to].uses + 1);
	if (to == x->bucket) {
		policy_list_move(&s->v[to].queue, &s->v[to].queue, entry);
		return;
	}
	leave(s, entry);
	enter(s, entry, to);
}

static void lfu_removed(void *state, struct cache_entry *entry)
{
	leave(state, entry);
}

static struct cache_entry *lfu_victim(void *state)
{
	const struct lfu *s = state;

	return s->v[s->v[0].more].queue.tail;
}

const struct policy_ops policy_lfu = {
	.plugin = { .name = "lfu",
		    .summary = "evict the least frequently used object",
		    .state_size = sizeof(struct lfu) },
	.entry_size = sizeof(struct lfu_entry),
	.fini = lfu_fini,
	.admit = lfu_admit,
	.inserted = lfu_inserted,
	.hit = lfu_hit,
	.removed = lfu_removed,
	.victim = lfu_victim,
};

/* SPDX-License-Identifier: MIT */
/*
 * A queue of cache entries, for policies that order them: newest at the head,
 * the next victim at the tail. The links are the first of the entry's private
 * bytes. They are distances, half as long as pointers.
 *
 * Eviction from the tail follows links through memory in no order; waiting for
 * it took a third of the time of an LRU. So a scout walks LIST_AHEAD entries
 * before the tail and prefetches them.
 */
#ifndef GPEMU_FS_CACHE_POLICY_POLICY_LIST_H
#define GPEMU_FS_CACHE_POLICY_POLICY_LIST_H

#include "fs/cache/policy.h"

/* Distances in ENTRY_UNIT; 0: none. */
struct policy_link {
	int32_t newer, older;
};

/* Source: measured, tests/bench/cachesim.c: LRU over random passes */
enum { LIST_AHEAD = 8 };

/* All zeros: not yet started. */
struct policy_scout {
	struct cache_entry *at;
	uint32_t ahead; /* at most so many before the one it serves */
};

/* All zeros: empty. */
struct policy_list {
	struct cache_entry *head, *tail;
	uint64_t bytes; /* of the entries in it */
	struct policy_scout scout;
};

/* NULL for a distance of 0. */
static inline struct cache_entry *policy_list_at(const struct cache_entry *e,
						 int32_t distance)
{
	return distance ? (struct cache_entry *)((char *)e +
						 (ptrdiff_t)distance *
							 ENTRY_UNIT)
			: NULL;
}

static inline struct policy_link *policy_list_link(struct cache_entry *e)
{
	return cache_entry_data(e);
}

/* The next newer one; NULL at the head. */
static inline struct cache_entry *policy_list_newer(struct cache_entry *e)
{
	return policy_list_at(e, policy_list_link(e)->newer);
}

/* What the scout serves went on to `e`, the next newer one, or NULL. */
static inline void policy_scout_follow(struct policy_scout *s,
				       struct cache_entry *e)
{
	if (s->ahead)
		s->ahead--;
	if (!e || !s->at || !s->ahead)
		*s = (struct policy_scout){ .at = e };
	/* two steps, to gain what removals between the two have lost */
	for (int i = 0; i < 2 && s->at && s->ahead < LIST_AHEAD; i++) {
		e = policy_list_newer(s->at);
		if (!e)
			return;
		__builtin_prefetch(e, 1);
		s->at = e;
		s->ahead++;
	}
}

static inline void policy_list_push(struct policy_list *l,
				    struct cache_entry *e)
{
	struct policy_link *link = policy_list_link(e);

	*link = (struct policy_link){ 0 };
	if (l->head) {
		link->older =
			(int32_t)(((char *)l->head - (char *)e) / ENTRY_UNIT);
		policy_list_link(l->head)->newer = -link->older;
	} else {
		l->tail = e;
	}
	l->head = e;
	l->bytes += e->bytes;
}

static inline void policy_list_remove(struct policy_list *l,
				      struct cache_entry *e)
{
	const struct policy_link *link = policy_list_link(e);
	struct cache_entry *newer = policy_list_at(e, link->newer);
	struct cache_entry *older = policy_list_at(e, link->older);
	int32_t apart = newer && older ? link->newer - link->older : 0;

	if (newer)
		policy_list_link(newer)->older = -apart;
	else
		l->head = older;
	if (older)
		policy_list_link(older)->newer = apart;
	else
		l->tail = newer;
	l->bytes -= e->bytes;
	if (l->scout.at == e)
		l->scout = (struct policy_scout){ .at = newer };
	if (!older)
		policy_scout_follow(&l->scout, newer);
}

/* From one list to the head of another, or of the same. */
static inline void policy_list_move(struct policy_list *from,
				    struct policy_list *to,
				    struct cache_entry *e)
{
	policy_list_remove(from, e);
	policy_list_push(to, e);
}

#endif

/* SPDX-License-Identifier: MIT */
/*
 * A queue of cache entries, for policies that order them: newest at the head,
 * the next victim at the tail. The links are the first of the entry's private
 * bytes.
 */
#ifndef GPEMU_FS_CACHE_POLICY_POLICY_LIST_H
#define GPEMU_FS_CACHE_POLICY_POLICY_LIST_H

#include <utlist.h>

#include "fs/cache/policy.h"

/*
 * Eviction from the tail follows pointers through memory in no order; these
 * cache misses took a third of the time of an LRU. So each entry points to the
 * one pushed LIST_AHEAD later, which is evicted that much later, and prefetches
 * it into the processor's cache. The pointer is only a hint and never followed:
 * its entry may have moved or left.
 */
struct policy_link {
	struct policy_link *prev, *next;
	const struct policy_link *later;
};

/* A power of 2. Source: measured, tests/bench/cachesim.c: LRU over random
 * passes, 9 M requests/s without, 16 M with 8 (2 busy EPYC cores) */
enum { LIST_AHEAD = 8 };

/* All zeros: empty. utlist keeps the tail in head->prev. */
struct policy_list {
	struct policy_link *head;
	uint64_t bytes; /* of the entries in it */
	/* the entries pushed last. Some may have left; their memory belongs to
	 * the cache and lives as long as the policy */
	struct policy_link *recent[LIST_AHEAD];
	uint32_t n_pushed;
};

static inline void policy_list_push(struct policy_list *l,
				    struct cache_entry *e)
{
	struct policy_link *link = cache_entry_data(e);
	struct policy_link **recent = &l->recent[l->n_pushed++ % LIST_AHEAD];

	DL_PREPEND(l->head, link);
	l->bytes += e->bytes;
	if (*recent)
		(*recent)->later = link;
	*recent = link;
}

static inline void policy_list_remove(struct policy_list *l,
				      struct cache_entry *e)
{
	struct policy_link *link = cache_entry_data(e);

	DL_DELETE(l->head, link);
	l->bytes -= e->bytes;
}

/* The oldest; the list must not be empty. */
static inline struct cache_entry *policy_list_tail(struct policy_list *l)
{
	struct policy_link *tail = l->head->prev;

	__builtin_prefetch(tail->later, 1);
	return cache_entry_of(tail);
}

/* The next newer one; NULL at the head. */
static inline struct cache_entry *policy_list_newer(struct policy_list *l,
						    struct cache_entry *e)
{
	struct policy_link *link = cache_entry_data(e);

	return link == l->head ? NULL : cache_entry_of(link->prev);
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

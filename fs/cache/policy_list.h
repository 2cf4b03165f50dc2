/* SPDX-License-Identifier: MIT */
/*
 * A queue of cache entries, for policies that order them: newest at the head,
 * the next victim at the tail. The links are the first of the entry's private
 * bytes.
 */
#ifndef GPEMU_FS_CACHE_POLICY_LIST_H
#define GPEMU_FS_CACHE_POLICY_LIST_H

#include <utlist.h>

#include "fs/cache/policy.h"

struct policy_link {
	struct policy_link *prev, *next;
};

/* Zeroed is empty. utlist keeps the tail in head->prev. */
struct policy_list {
	struct policy_link *head;
	uint64_t bytes; /* of the entries in it */
};

static inline void policy_list_push(struct policy_list *l,
				    struct cache_entry *e)
{
	struct policy_link *link = cache_entry_data(e);

	DL_PREPEND(l->head, link);
	l->bytes += e->bytes;
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

	/* the one that will be the tail after the next: each eviction changes
	 * a link of its neighbour, which would otherwise have to be waited for
	 */
	__builtin_prefetch(tail->prev->prev, 1);
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

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
};

static inline void policy_list_push(struct policy_list *l,
				    struct cache_entry *e)
{
	struct policy_link *link = cache_entry_data(e);

	DL_PREPEND(l->head, link);
}

static inline void policy_list_remove(struct policy_list *l,
				      struct cache_entry *e)
{
	struct policy_link *link = cache_entry_data(e);

	DL_DELETE(l->head, link);
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

#endif

/* SPDX-License-Identifier: MIT */
#include "fs/cache/policy/policy_heap.h"

#include <stdlib.h>

#include "common/heap.h"
#include "common/util.h"

bool policy_heap_reserve(struct policy_heap *h)
{
	uint32_t want = MAX(64, h->allocated * 2);
	struct policy_heap_item *v;

	if (h->n < h->allocated)
		return true;
	v = reallocarray(h->v, want, sizeof(*v));
	if (!v)
		return false;
	h->v = v;
	h->allocated = want;
	return true;
}

void policy_heap_fini(struct policy_heap *h)
{
	free(h->v);
	*h = (struct policy_heap){ 0 };
}

static bool before(const struct policy_heap_item *a,
		   const struct policy_heap_item *b)
{
	if (a->priority != b->priority)
		return a->priority < b->priority;
	return a->order < b->order;
}

static void placed(const struct policy_heap_item *item, size_t at)
{
	struct policy_heap_place *p = cache_entry_data(item->entry);

	p->at = (uint32_t)at;
}

DEFINE_HEAP(items, struct policy_heap_item, before, placed)

void policy_heap_add(struct policy_heap *h, struct cache_entry *e,
		     double priority)
{
	h->v[h->n] = (struct policy_heap_item){ priority, h->n_placed++, e };
	items_up(h->v, h->n++);
}

void policy_heap_change(struct policy_heap *h, struct cache_entry *e,
			double priority)
{
	struct policy_heap_place *p = cache_entry_data(e);

	h->v[p->at] = (struct policy_heap_item){ priority, h->n_placed++, e };
	items_fix(h->v, h->n, p->at);
}

void policy_heap_remove(struct policy_heap *h, struct cache_entry *e)
{
	uint32_t at = ((struct policy_heap_place *)cache_entry_data(e))->at;

	h->v[at] = h->v[--h->n];
	items_fix(h->v, h->n, at);
}

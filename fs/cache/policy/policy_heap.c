/* SPDX-License-Identifier: MIT */
#include "fs/cache/policy/policy_heap.h"

#include <stdlib.h>

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

static void set(struct policy_heap *h, uint32_t at,
		const struct policy_heap_item *item)
{
	struct policy_heap_place *p = cache_entry_data(item->entry);

	h->v[at] = *item;
	p->at = at;
}

static void sift_up(struct policy_heap *h, uint32_t at,
		    struct policy_heap_item item)
{
	while (at && before(&item, &h->v[(at - 1) / 4])) {
		set(h, at, &h->v[(at - 1) / 4]);
		at = (at - 1) / 4;
	}
	set(h, at, &item);
}

static void sift_down(struct policy_heap *h, uint32_t at,
		      struct policy_heap_item item)
{
	for (;;) {
		uint32_t first = at * 4 + 1, least = first;

		for (uint32_t i = first + 1; i < MIN(first + 4, h->n); i++)
			if (before(&h->v[i], &h->v[least]))
				least = i;
		if (first >= h->n || !before(&h->v[least], &item))
			break;
		set(h, at, &h->v[least]);
		at = least;
	}
	set(h, at, &item);
}

static void place(struct policy_heap *h, uint32_t at,
		  struct policy_heap_item item)
{
	if (at && before(&item, &h->v[(at - 1) / 4]))
		sift_up(h, at, item);
	else
		sift_down(h, at, item);
}

void policy_heap_add(struct policy_heap *h, struct cache_entry *e,
		     double priority)
{
	struct policy_heap_item item = { priority, h->n_placed++, e };

	sift_up(h, h->n++, item);
}

void policy_heap_change(struct policy_heap *h, struct cache_entry *e,
			double priority)
{
	struct policy_heap_place *p = cache_entry_data(e);

	place(h, p->at,
	      (struct policy_heap_item){ priority, h->n_placed++, e });
}

void policy_heap_remove(struct policy_heap *h, struct cache_entry *e)
{
	uint32_t at = ((struct policy_heap_place *)cache_entry_data(e))->at;
	struct policy_heap_item last = h->v[--h->n];

	if (last.entry != e)
		place(h, at, last);
}

/* SPDX-License-Identifier: MIT */
#include "fs/cache/policy/policy_heap.h"

#include <stdlib.h>

#include "common/heap.h"
#include "common/util.h"

int policy_heap_init(void *state, const struct policy_params *params,
		     struct err *err)
{
	struct policy_heap *h = state;

	(void)err;
	h->capacity = params->capacity_bytes;
	h->overhead = params->overhead_bytes;
	return 0;
}

void policy_heap_fini(void *state)
{
	struct policy_heap *h = state;

	free(h->v);
}

bool policy_heap_admit(struct policy_heap *h, const struct cache_object *object,
		       double priority)
{
	return util_reserve(&h->v, &h->allocated, (size_t)h->n + 1,
			    sizeof(*h->v)) == 0 &&
	       (h->used + object->bytes + h->overhead <= h->capacity ||
		(h->n && priority > h->v[0].priority));
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
	h->used += e->bytes;
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

void policy_heap_removed(void *state, struct cache_entry *entry)
{
	const struct policy_heap_place *p = cache_entry_data(entry);
	struct policy_heap *h = state;
	uint32_t at = p->at;

	h->used -= entry->bytes;
	h->v[at] = h->v[--h->n];
	items_fix(h->v, h->n, at);
}

struct cache_entry *policy_heap_victim(void *state)
{
	const struct policy_heap *h = state;

	return h->v[0].entry;
}

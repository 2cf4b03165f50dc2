/* SPDX-License-Identifier: MIT */
/*
 * Classes share the cache alike: an object of a class that has fewer bytes than
 * the largest takes the place of one of that. So rare classes are cached whole,
 * and the others have equal parts, for loaders that draw every class alike from
 * a dataset in which some are rare (gpemu-train --order weighted). Drawn so,
 * with objects of one size, the hit ratio is the mean of min(n, w) / n over
 * classes of n objects, with w so that all min(n, w) fill the cache.
 *
 * Within a class none makes room for another: with one class this is MinIO.
 */
#include <errno.h>
#include <stdlib.h>

#include "common/heap.h"
#include "fs/cache/policy/policy_list.h"

struct class
{
	struct policy_list cached;
	size_t rank; /* its place in the heap */
};

struct balanced {
	uint32_t (*label)(const void *ctx, uint64_t key);
	const void *ctx;
	struct class *classes;
	struct class **largest; /* the heap of all n */
	uint32_t n;
	uint64_t capacity, used;
	uint64_t overhead; /* of an entry, beyond its object's bytes */
};

static inline bool larger(struct class *const *a, struct class *const *b)
{
	return (*a)->cached.bytes > (*b)->cached.bytes;
}

#define ranked(item, i) ((void)((*(item))->rank = (i)))
DEFINE_HEAP(ranks, struct class *, larger, ranked)

static int balanced_init(void *state, const struct policy_params *params,
			 struct err *err)
{
	struct balanced *s = state;

	s->n = params->label ? params->n_labels : 1;
	s->label = params->label;
	s->ctx = params->label_ctx;
	s->capacity = params->capacity_bytes;
	s->overhead = params->overhead_bytes;
	s->classes = calloc(s->n, sizeof(*s->classes));
	s->largest = calloc(s->n, sizeof(*s->largest));
	if (!s->classes || !s->largest)
		return err_set(err, -ENOMEM, "out of memory");
	for (uint32_t i = 0; i < s->n; i++) {
		s->largest[i] = &s->classes[i];
		s->classes[i].rank = i;
	}
	return 0;
}

static void balanced_fini(void *state)
{
	struct balanced *s = state;

	free(s->classes);
	free(s->largest);
}

static struct class *class_of(const struct balanced *s, uint64_t key)
{
	return &s->classes[s->label ? s->label(s->ctx, key) : 0];
}

static bool balanced_admit(void *state, const struct cache_object *object,
			   struct cache_entry *ghost)
{
	const struct balanced *s = state;
	uint64_t bytes = object->bytes + s->overhead;

	(void)ghost;
	return s->used + bytes <= s->capacity ||
	       class_of(s, object->key)->cached.bytes + bytes <
		       s->largest[0]->cached.bytes;
}

static void balanced_inserted(void *state, struct cache_entry *entry,
			      const struct cache_object *object)
{
	struct balanced *s = state;
	struct class *c = class_of(s, entry->key);

	(void)object;
	s->used += entry->bytes;
	policy_list_push(&c->cached, entry);
	ranks_up(s->largest, c->rank);
}

static void balanced_removed(void *state, struct cache_entry *entry)
{
	struct balanced *s = state;
	struct class *c = class_of(s, entry->key);

	s->used -= entry->bytes;
	policy_list_remove(&c->cached, entry);
	ranks_down(s->largest, s->n, c->rank);
}

static struct cache_entry *balanced_victim(void *state)
{
	const struct balanced *s = state;

	return s->largest[0]->cached.tail;
}

const struct policy_ops policy_balanced = {
	.plugin = { .name = "balanced",
		    .summary = "classes share the cache alike; rare ones are "
			       "kept whole",
		    .state_size = sizeof(struct balanced) },
	.entry_size = sizeof(struct policy_link),
	.init = balanced_init,
	.fini = balanced_fini,
	.admit = balanced_admit,
	.inserted = balanced_inserted,
	.removed = balanced_removed,
	.victim = balanced_victim,
};

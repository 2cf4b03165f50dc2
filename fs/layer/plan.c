/* SPDX-License-Identifier: MIT */
#include "fs/layer/plan.h"

#include <stdlib.h>
#include <string.h>

#include "common/util.h"
#include "fs/server/object.h"

/* arbitrary: more accesses than loader workers are apart, so that nothing is
 * dropped that is still needed; and few drops until the plan is wrong */
enum { PATIENCE = 512, MOST_PATIENCE = 4096 };

struct plan {
	struct future *future;
	const struct tree *tree;
	uint64_t at;	    /* next access */
	uint32_t extent;    /* of its file */
	uint64_t epoch_end; /* first access of the next epoch */
	bool behind;	    /* the last access was missed */
	unsigned strange;   /* accesses in a row that were not announced */
	unsigned patience;  /* with them */
	/* Of each node: accesses that are still to be skipped, and their sum.
	 */
	uint64_t n_owed;
	uint16_t owed[];
};

struct plan *plan_new(struct future *f, const struct tree *tree)
{
	struct plan *n =
		calloc(1, sizeof(*n) + tree->n_nodes * sizeof(n->owed[0]));

	if (!n)
		return NULL;
	n->future = future_get(f);
	n->tree = tree;
	n->epoch_end = f->first;
	n->patience = PATIENCE;
	return n;
}

void plan_free(struct plan *n)
{
	if (n)
		future_put(n->future);
	free(n);
}

static uint32_t node_at(const struct plan *n)
{
	return future_access(n->future, n->future->rank, n->at);
}

/* To the next file. */
static void advance(struct plan *n)
{
	n->extent = 0;
	if (++n->at != n->epoch_end)
		return;
	n->epoch_end += n->future->rest;
	/* What is owed before the first access of the new epoch was never due:
	 * a file was accessed twice. */
	if (!n->behind && n->n_owed) {
		memset(n->owed, 0, n->tree->n_nodes * sizeof(n->owed[0]));
		n->n_owed = 0;
	}
}

/* An access was an announced one. */
static void matched(struct plan *n)
{
	n->strange = 0;
	n->patience = PATIENCE;
}

bool plan_next(struct plan *n, unsigned *looks, struct cache_object *ret)
{
	for (; n->at < n->future->n && *looks; advance(n)) {
		uint32_t node = node_at(n);
		uint64_t from = (uint64_t)n->extent * OBJECT_EXTENT;
		uint64_t all = node == TREE_NONE ? 0
						 : n->tree->nodes[node].bytes;

		--*looks;
		if (from >= all)
			continue;
		if (n->extent == 0 && n->owed[node]) {
			n->owed[node]--;
			n->n_owed--;
			matched(n);
			continue;
		}
		*ret = (struct cache_object){
			.key = object_key(node, n->extent),
			.bytes = MIN(all - from, OBJECT_EXTENT),
			.file_bytes = all
		};
		return true;
	}
	return false;
}

void plan_step(struct plan *n)
{
	n->extent++;
}

enum plan_state plan_missed(struct plan *n, uint64_t key)
{
	uint32_t node = (uint32_t)(key >> 32), extent = (uint32_t)key;

	n->behind = true;
	if (extent == 0 && n->owed[node] < UINT16_MAX) {
		n->owed[node]++;
		n->n_owed++;
	} else if (extent && n->extent && node_at(n) == node) {
		n->extent = MAX(n->extent, extent + 1);
	}
	if (++n->strange < n->patience)
		return PLAN_FITS;
	n->strange = 0;
	n->patience *= 2;
	return n->patience > MOST_PATIENCE ? PLAN_IS_WRONG : PLAN_STRAYS;
}

void plan_met(struct plan *n)
{
	n->behind = false;
	matched(n);
}

uint64_t plan_at(const struct plan *n)
{
	return n->at;
}

uint64_t plan_left(const struct plan *n)
{
	return n->future->n - n->at;
}

uint64_t plan_epoch(const struct plan *n)
{
	return n->future->rest;
}

/* SPDX-License-Identifier: MIT */
#include "fs/layer/announced.h"

#include <stdlib.h>

#include "common/util.h"
#include "fs/server/hash.h"
#include "fs/server/object.h"

/* arbitrary: more accesses than loader workers are apart, so that nothing is
 * dropped that is still needed; and few drops until the plan is wrong */
enum { PATIENCE = 512, MOST_PATIENCE = 4096 };

/* Accesses of a file that are still to be skipped. */
struct owed {
	uint32_t node, times;
	UT_hash_handle hh;
};

struct announced {
	struct future *future;
	uint32_t rank;
	const struct tree *tree;
	uint64_t at;	    /* next access */
	uint32_t extent;    /* of its file */
	uint64_t epoch_end; /* first access of the next epoch */
	bool behind;	    /* the last access was missed */
	unsigned strange;   /* accesses in a row that were not announced */
	unsigned patience;  /* with them */
	struct owed *owed;  /* uthash by node: few of many files */
};

struct announced *announced_new(struct future *f, uint32_t rank,
				const struct tree *tree)
{
	struct announced *n = calloc(1, sizeof(*n));

	if (!n)
		return NULL;
	n->future = future_get(f);
	n->rank = rank;
	n->tree = tree;
	n->epoch_end = f->first;
	n->patience = PATIENCE;
	return n;
}

static struct owed *find_owed(const struct announced *n, uint32_t node)
{
	struct owed *o;

	HASH_FIND(hh, n->owed, &node, sizeof(node), o);
	return o;
}

static void forget(struct announced *n, struct owed *o)
{
	HASH_DEL(n->owed, o);
	free(o);
}

static void forget_all(struct announced *n)
{
	while (n->owed)
		forget(n, n->owed);
}

/* The next access of a file is to be skipped. Without memory it is not. */
static void owe(struct announced *n, uint32_t node)
{
	struct owed *o = find_owed(n, node);

	if (!o) {
		o = calloc(1, sizeof(*o));
		if (!o)
			return;
		o->node = node;
		if (!HASH_TRY_ADD(n->owed, node, o)) {
			free(o);
			return;
		}
	}
	o->times++;
}

/* Is this access to be skipped? */
static bool pay(struct announced *n, uint32_t node)
{
	struct owed *o = find_owed(n, node);

	if (!o)
		return false;
	if (--o->times == 0)
		forget(n, o);
	return true;
}

void announced_free(struct announced *n)
{
	if (!n)
		return;
	forget_all(n);
	future_put(n->future);
	free(n);
}

static uint32_t node_at(const struct announced *n)
{
	return future_access(n->future, n->rank, n->at);
}

/* To the next file. */
static void advance(struct announced *n)
{
	n->extent = 0;
	if (++n->at != n->epoch_end)
		return;
	n->epoch_end += n->future->rest;
	/* What is owed before the first access of the new epoch was never due:
	 * a file was accessed twice. */
	if (!n->behind)
		forget_all(n);
}

/* An access was an announced one. */
static void matched(struct announced *n)
{
	n->strange = 0;
	n->patience = PATIENCE;
}

bool announced_next(struct announced *n, unsigned *looks,
		    struct cache_object *ret)
{
	for (; n->at < n->future->n && *looks; advance(n)) {
		uint32_t node = node_at(n);
		uint64_t from = (uint64_t)n->extent * OBJECT_EXTENT;
		uint64_t all = node == TREE_NONE ? 0
						 : n->tree->nodes[node].bytes;

		--*looks;
		if (from >= all)
			continue;
		if (n->extent == 0 && pay(n, node)) {
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

void announced_step(struct announced *n)
{
	n->extent++;
}

enum announced_state announced_missed(struct announced *n, uint64_t key)
{
	uint32_t node = (uint32_t)(key >> 32), extent = (uint32_t)key;

	n->behind = true;
	if (extent == 0)
		owe(n, node);
	else if (n->extent && node_at(n) == node)
		n->extent = MAX(n->extent, extent + 1);
	if (++n->strange < n->patience)
		return ANNOUNCED_FITS;
	n->strange = 0;
	n->patience *= 2;
	return n->patience > MOST_PATIENCE ? ANNOUNCED_IS_WRONG
					   : ANNOUNCED_STRAYS;
}

void announced_met(struct announced *n)
{
	n->behind = false;
	matched(n);
}

uint64_t announced_at(const struct announced *n)
{
	return n->at;
}

uint64_t announced_left(const struct announced *n)
{
	return n->future->n - n->at;
}

uint64_t announced_epoch(const struct announced *n)
{
	return n->future->rest;
}

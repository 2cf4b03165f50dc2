/* SPDX-License-Identifier: MIT */
#include "fs/cache/cache.h"

#include <errno.h>
#include <stdlib.h>

#include "common/conf/plugin_choice.h"
#include "common/counts.h"
#include "common/util.h"
#include "fs/cache/cache_index.h"

struct cache {
	const struct policy_ops *ops;
	char *text; /* of the policy, with its options */
	void *state;
	struct cache_index index;
	uint64_t capacity, used;
	uint64_t overhead; /* metadata counted with each entry */
	bool (*allowed)(void *ctx, uint64_t key); /* or NULL */
	void *allowed_ctx;
	cache_drop_fn drop;
	void *ctx;
	struct cache_counts counts;
	uint64_t n_objects; /* cached; the index has ghosts, too */
};

/* Index slots at half load and the entry, those of its ghosts, and the policy's
 * own bytes. */
static uint64_t overhead_of(const struct cache *c)
{
	return (2 * sizeof(*c->index.slots) + c->index.stride) *
		       (1 + c->ops->n_ghosts) +
	       c->ops->overhead_bytes;
}

int cache_new(const struct policy_ops *ops, const struct policy_params *params,
	      cache_drop_fn drop, void *ctx, struct cache **ret,
	      struct err *err)
{
	struct policy_params all;
	struct cache *c;
	int r;

	if (ops->offline && !params->knows_future)
		return err_set(err, -EINVAL,
			       "policy %s needs to know future accesses: use "
			       "it with gpemu-cachesim",
			       ops->plugin.name);
	c = calloc(1, sizeof(*c));
	if (!c)
		return -ENOMEM;
	*c = (struct cache){ .ops = ops,
			     .capacity = params->capacity_bytes,
			     .allowed = params->allowed,
			     .allowed_ctx = params->allowed_ctx,
			     .drop = drop,
			     .ctx = ctx };
	r = cache_index_init(&c->index, ops->entry_size, params->n_numbers);
	if (r < 0)
		goto fail;
	if (params->count_metadata)
		c->overhead = overhead_of(c) + params->overhead_bytes;
	r = -ENOMEM;
	c->state = calloc(1, MAX(ops->plugin.state_size, 1));
	c->text = plugin_choice_text(&ops->plugin, params->options);
	if (!c->state || !c->text)
		goto fail;
	all = *params;
	all.overhead_bytes = c->overhead;
	r = ops->init ? ops->init(c->state, &all, err) : 0;
	if (r < 0)
		goto fail;
	*ret = c;
	return 0;
fail:
	cache_free(c);
	return r;
}

/* What hosts attached; the policy, freed as well, need not keep up. */
static void drop_all(struct cache *c)
{
	struct cache_entry *e;
	size_t cursor = 0;

	while ((e = cache_index_next(&c->index, ENTRY_CACHED, &cursor)))
		if (e->user)
			c->drop(e->user, c->ctx);
}

void cache_free(struct cache *c)
{
	if (!c)
		return;
	if (c->drop)
		drop_all(c);
	if (c->state && c->ops->fini)
		c->ops->fini(c->state);
	free(c->state);
	free(c->text);
	cache_index_fini(&c->index);
	free(c);
}

void cache_on_drop(struct cache *c, cache_drop_fn drop, void *ctx)
{
	c->drop = drop;
	c->ctx = ctx;
}

struct cache_entry *cache_peek(struct cache *c, uint64_t key)
{
	struct cache_entry *e = cache_index_find(&c->index, key);

	return e && e->state == ENTRY_CACHED ? e : NULL;
}

void cache_expect(const struct cache *c, uint64_t key)
{
	cache_index_prefetch_slot(&c->index, key);
}

void cache_expect_soon(const struct cache *c, uint64_t key)
{
	cache_index_prefetch_entry(&c->index, key);
	if (c->ops->expect)
		c->ops->expect(c->state, key);
}

void cache_remove(struct cache *c, struct cache_entry *e)
{
	if (c->ops->removed)
		c->ops->removed(c->state, e);
	c->used -= e->bytes;
	c->n_objects--;
	if (c->drop && e->user) {
		c->drop(e->user, c->ctx);
		e->user = NULL;
	}
	if (e->state != ENTRY_GHOST)
		cache_index_remove(&c->index, e);
}

/* Evict until `bytes` fit; false: the policy has no victim. */
static bool make_room(struct cache *c, uint64_t bytes)
{
	if (bytes > c->capacity)
		return false;
	while (c->used + bytes > c->capacity) {
		if (!c->ops->victim)
			return false;
		cache_remove(c, c->ops->victim(c->state));
		c->counts.evictions++;
	}
	return true;
}

/* A new entry, or what was the object's ghost. */
static struct cache_entry *insert(struct cache *c, const struct cache_object *o,
				  struct cache_entry *e)
{
	uint64_t bytes = o->bytes + c->overhead;

	if (e)
		cache_index_renew(&c->index, e, bytes);
	else
		e = cache_index_add(&c->index, o->key, o->number, bytes);
	if (!e)
		return NULL;
	c->used += bytes;
	c->n_objects++;
	if (c->ops->inserted)
		c->ops->inserted(c->state, e, o);
	return e;
}

static void forget_ghosts(struct cache *c)
{
	struct cache_entry *e;

	if (c->ops->forget)
		while ((e = c->ops->forget(c->state)))
			cache_index_remove(&c->index, e);
}

static struct cache_entry *try_admit(struct cache *c,
				     const struct cache_object *o,
				     struct cache_entry *ghost)
{
	struct cache_entry *e = NULL;

	if (c->ops->bypass ||
	    (c->allowed && !c->allowed(c->allowed_ctx, o->key)) ||
	    (c->ops->admit && !c->ops->admit(c->state, o, ghost)))
		return NULL;
	if (make_room(c, o->bytes + c->overhead))
		e = insert(c, o, ghost);
	else if (ghost)
		cache_index_remove(&c->index, ghost);
	forget_ghosts(c);
	return e;
}

struct cache_entry *cache_offer(struct cache *c, const struct cache_object *o)
{
	struct cache_entry *e = cache_index_find(&c->index, o->key);

	return e && e->state == ENTRY_CACHED ? e : try_admit(c, o, e);
}

void cache_reweigh(struct cache *c, uint64_t key)
{
	struct cache_entry *e = c->ops->reweighed ? cache_peek(c, key) : NULL;

	if (e)
		c->ops->reweighed(c->state, e);
}

bool cache_has_room(const struct cache *c, uint64_t bytes)
{
	return c->used + bytes + c->overhead <= c->capacity;
}

static void hit(struct cache *c, struct cache_entry *e, uint64_t bytes,
		uint64_t next_use)
{
	c->counts.hits++;
	c->counts.hit_bytes += bytes;
	if (c->ops->hit)
		c->ops->hit(c->state, e, next_use);
}

/* A hit, or a miss that is not yet counted as rejected; *ret_entry may be the
 * object's ghost then. */
static bool look_up(struct cache *c, const struct cache_object *o,
		    struct cache_entry **ret_entry)
{
	struct cache_entry *e = cache_index_find(&c->index, o->key);

	*ret_entry = e;
	if (!e || e->state != ENTRY_CACHED) {
		c->counts.misses++;
		c->counts.miss_bytes += o->bytes;
		return false;
	}
	hit(c, e, o->bytes, o->next_use);
	return true;
}

struct cache_entry *cache_access_only(struct cache *c,
				      const struct cache_object *o)
{
	struct cache_entry *e;

	if (look_up(c, o, &e))
		return e;
	c->counts.rejected++;
	return NULL;
}

enum cache_result cache_access(struct cache *c, const struct cache_object *o,
			       struct cache_entry **ret_entry)
{
	if (look_up(c, o, ret_entry))
		return CACHE_HIT;
	*ret_entry = try_admit(c, o, *ret_entry);
	if (*ret_entry)
		return CACHE_ADMITTED;
	c->counts.rejected++;
	return CACHE_REJECTED;
}

/* Distance between the steps of a prefetch, in accesses. Source: measured,
 * tests/bench/cachesim.c */
enum { STEP = 8 };

/* Prefetch for accesses to come, of those in `numbers`. */
static void look_ahead(const struct cache *c, const struct cache_item *v,
		       const uint32_t *numbers)
{
	uint32_t soon = numbers[STEP], later = numbers[3 * STEP];
	const struct cache_index *x = &c->index;

	__builtin_prefetch(&v[later]);
	if (!x->numbered) {
		cache_expect(c, v[numbers[2 * STEP]].key);
		cache_expect_soon(c, v[soon].key);
		return;
	}
	__builtin_prefetch(&x->numbered[later]);
	/* of no entry: somewhere, as no branch could be predicted */
	__builtin_prefetch(cache_index_entry(x, x->numbered[soon]), 1);
	if (c->ops->expect)
		c->ops->expect(c->state, v[soon].key);
}

/* `e`: the object's ghost, or NULL. */
static void miss(struct cache *c, const struct cache_object *o,
		 struct cache_entry *e)
{
	c->counts.misses++;
	c->counts.miss_bytes += o->bytes;
	if (!try_admit(c, o, e))
		c->counts.rejected++;
}

void cache_replay(struct cache *c, const struct cache_items *items,
		  const uint32_t *numbers, const uint64_t *next_use, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		uint64_t next = next_use ? next_use[i] : 0;
		uint32_t number = numbers[i];
		struct cache_entry *e;

		if (i + 3 * STEP < n)
			look_ahead(c, items->v, &numbers[i]);
		e = c->index.numbered
			    ? cache_index_numbered(&c->index, number)
			    : cache_index_find(&c->index, items->v[number].key);
		if (e && e->state == ENTRY_CACHED) {
			hit(c, e, e->bytes - c->overhead, next);
		} else {
			const struct cache_object o =
				cache_items_object(items, number, next);

			miss(c, &o, e);
		}
	}
}

struct cache_entry *cache_next(const struct cache *c, size_t *cursor)
{
	return cache_index_next(&c->index, ENTRY_CACHED, cursor);
}

uint64_t cache_object_bytes(const struct cache *c, const struct cache_entry *e)
{
	return e->bytes - c->overhead;
}

void *cache_user(const struct cache_entry *e)
{
	return e->user;
}

void cache_set_user(struct cache_entry *e, void *user)
{
	e->user = user;
}

uint64_t cache_used(const struct cache *c)
{
	return c->used;
}

uint64_t cache_capacity(const struct cache *c)
{
	return c->capacity;
}

uint64_t cache_objects(const struct cache *c)
{
	return c->n_objects;
}

const struct policy_ops *cache_policy(const struct cache *c)
{
	return c->ops;
}

const char *cache_policy_text(const struct cache *c)
{
	return c->text;
}

const struct cache_counts *cache_counts(const struct cache *c)
{
	return &c->counts;
}

void cache_counts_add(struct cache_counts *sum, const struct cache_counts *n)
{
	counts_add(sum, n, sizeof(*sum));
}

void cache_reset_counts(struct cache *c)
{
	c->counts = (struct cache_counts){ 0 };
}

uint64_t cache_metadata_bytes(const struct cache *c)
{
	return sizeof(*c) + c->ops->plugin.state_size +
	       cache_index_bytes(&c->index) +
	       c->n_objects * c->ops->overhead_bytes;
}

size_t policy_expected_entries(const struct policy_params *p)
{
	double sum = 0, n;

	for (size_t i = 0; i < p->n_files; i++)
		sum += (double)(p->max_object_bytes ? MIN(p->file_bytes[i],
							  p->max_object_bytes)
						    : p->file_bytes[i]);
	sum += (double)p->overhead_bytes * (double)p->n_files;
	if (sum <= 0)
		return 16;
	n = (double)p->capacity_bytes / sum * (double)p->n_files;
	return (size_t)MIN(MAX(n, 16), 1 << 26);
}

/* SPDX-License-Identifier: MIT */
#include "fs/cache/cache.h"

#include <errno.h>
#include <stdlib.h>

/* a full table means a failed malloc: report it, do not exit() */
#define HASH_NONFATAL_OOM 1
#define uthash_nonfatal_oom(entry) ((entry)->indexed = false)
#include <uthash.h>

#include "common/util.h"

struct cache_entry {
	uint64_t key;
	uint64_t bytes;
	void *user;
	bool indexed;
	UT_hash_handle hh;
	max_align_t data[]; /* the policy's */
};

struct cache {
	const struct policy_ops *ops;
	void *state;
	struct cache_entry *index;
	uint64_t capacity, used;
	cache_drop_fn drop;
	void *ctx;
	struct cache_counts counts;
};

void *cache_entry_data(struct cache_entry *entry)
{
	return entry->data;
}

struct cache_entry *cache_entry_of(void *data)
{
	return container_of(data, struct cache_entry, data);
}

int cache_new(const struct policy_ops *ops, const struct policy_params *params,
	      cache_drop_fn drop, void *ctx, struct cache **ret,
	      struct err *err)
{
	struct cache *c = calloc(1, sizeof(*c));
	int r = -ENOMEM;

	if (!c)
		return r;
	*c = (struct cache){ .ops = ops,
			     .capacity = params->capacity_bytes,
			     .drop = drop,
			     .ctx = ctx };
	c->state = calloc(1, MAX(ops->plugin.state_size, 1));
	if (!c->state)
		goto fail;
	r = ops->init ? ops->init(c->state, params, err) : 0;
	if (r < 0)
		goto fail;
	*ret = c;
	return 0;
fail:
	cache_free(c);
	return r;
}

void cache_free(struct cache *c)
{
	if (!c)
		return;
	cache_clear(c);
	if (c->state && c->ops->fini)
		c->ops->fini(c->state);
	free(c->state);
	free(c);
}

struct cache_entry *cache_peek(struct cache *c, uint64_t key)
{
	struct cache_entry *e;

	HASH_FIND(hh, c->index, &key, sizeof(key), e);
	return e;
}

void cache_remove(struct cache *c, struct cache_entry *e)
{
	if (c->ops->removed)
		c->ops->removed(c->state, e);
	HASH_DEL(c->index, e);
	c->used -= e->bytes;
	if (e->user && c->drop)
		c->drop(e->user, c->ctx);
	free(e);
}

void cache_clear(struct cache *c)
{
	struct cache_entry *e, *next;

	HASH_ITER (hh, c->index, e, next)
		cache_remove(c, e);
}

/* Make room for `bytes`; false when the policy gives nobody up. */
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

static struct cache_entry *insert(struct cache *c, const struct cache_object *o)
{
	struct cache_entry *e = calloc(1, sizeof(*e) + c->ops->entry_size);

	if (!e)
		return NULL;
	e->key = o->key;
	e->bytes = o->bytes;
	e->indexed = true;
	HASH_ADD(hh, c->index, key, sizeof(e->key), e);
	if (!e->indexed) {
		free(e);
		return NULL;
	}
	c->used += o->bytes;
	if (c->ops->inserted)
		c->ops->inserted(c->state, e, o);
	return e;
}

enum cache_result cache_access(struct cache *c, const struct cache_object *o,
			       struct cache_entry **ret_entry)
{
	struct cache_entry *e = cache_peek(c, o->key);

	*ret_entry = e;
	if (e) {
		c->counts.hits++;
		c->counts.hit_bytes += o->bytes;
		if (c->ops->hit)
			c->ops->hit(c->state, e);
		return CACHE_HIT;
	}
	c->counts.misses++;
	c->counts.miss_bytes += o->bytes;
	if (!c->ops->bypass && (!c->ops->admit || c->ops->admit(c->state, o)) &&
	    make_room(c, o->bytes))
		*ret_entry = insert(c, o);
	if (*ret_entry)
		return CACHE_ADMITTED;
	c->counts.rejected++;
	return CACHE_REJECTED;
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
	return HASH_COUNT(c->index);
}

const struct policy_ops *cache_policy(const struct cache *c)
{
	return c->ops;
}

const struct cache_counts *cache_counts(const struct cache *c)
{
	return &c->counts;
}

void cache_reset_counts(struct cache *c)
{
	c->counts = (struct cache_counts){ 0 };
}

/* SPDX-License-Identifier: MIT */
/*
 * A cache of objects, run by a policy (fs/cache/cache.h). It may stand in the
 * stack several times. A read that misses is let in here, if the policy wants
 * it, and goes on to the layer below, which may be another cache; the object
 * that comes up is one and the same, with a reference of each cache that has
 * it.
 *
 *	ask	 hit: the object, at once
 *		 miss: admitted or not, then below
 *	offer	 from a group below: let in, uncounted, and on to the one above
 *	warm	 let in where there is room, else below
 *	forget	 out: its bytes cannot be read
 */
#include <errno.h>
#include <string.h>

#include "common/conf/plugin_choice.h"
#include "common/system/memory.h"
#include "common/util.h"
#include "fs/server/flight.h"
#include "fs/server/stack.h"

struct caching {
	struct cache *cache;
	struct cache_counts before; /* of the caches before this one */
};

/* --- life --------------------------------------------------------------- */

/* Of the cache in use. */
static void drop_object(void *user, void *ctx)
{
	(void)ctx;
	server_put_object(user);
}

/* Of one that was taken out of use. */
static void drop_unused(void *user, void *ctx)
{
	(void)ctx;
	object_put(user);
}

/* Half of the memory by default. arbitrary: as much is left for the page cache
 * below the source and for whoever reads. Several caches share it alike. */
static int capacity_bytes(const struct layer *l, const struct policy_ops *ops,
			  const struct units_capacity *size, uint64_t *ret,
			  struct err *err)
{
	uint64_t most = memory_limit() / l->n_alike;
	uint64_t want =
		units_capacity_bytes(size, l->server->c.tree->file_bytes);
	char wants[UNITS_TEXT], has[UNITS_TEXT];

	*ret = ops->bypass ? 0 : size->yields ? MIN(want, most / 2) : want;
	if (*ret <= most)
		return 0;
	return err_set(err, -EINVAL,
		       "a cache of %s does not fit the %s of memory that this "
		       "machine or its control group has%s; choose a smaller "
		       "--cache-size, or -p none",
		       units_human_size((double)want, wants),
		       units_human_size((double)most, has),
		       l->n_alike > 1 ? " for each of its caches" : "");
}

static int make(const struct layer *l, const char *policy,
		const struct units_capacity *size, struct cache **ret,
		struct err *err)
{
	_cleanup_(plugin_choice_fini) struct plugin_choice choice = { 0 };
	const struct server *s = l->server;
	const struct policy_ops *ops;
	struct policy_params params = { .seed = s->c.seed,
					.file_bytes = s->sizes,
					.n_files = s->c.tree->n_files,
					.max_object_bytes = OBJECT_EXTENT,
					.count_metadata = s->c.cache_metadata,
					.overhead_bytes = OBJECT_OVERHEAD };
	int r = plugin_choose(policy_table, "cache policy", policy, &choice,
			      err);

	if (r < 0)
		return r;
	ops = container_of(choice.plugin, const struct policy_ops, plugin);
	params.options = choice.options;
	r = capacity_bytes(l, ops, size, &params.capacity_bytes, err);
	if (r < 0)
		return r;
	r = cache_new(ops, &params, drop_object, NULL, ret, err);
	return r < 0 ? err_set(err, r, "cache: %s", strerror(-r)) : 0;
}

/* Under the lock, or before there is another thread. */
static struct cache *use(struct layer *l, struct cache *fresh)
{
	struct caching *c = l->state;
	struct server *s = l->server;
	struct cache *old = c->cache;

	s->capacity += cache_capacity(fresh) - (old ? cache_capacity(old) : 0);
	budget_set_capacity(&s->budget, s->capacity);
	s->n_keepers += !cache_policy(fresh)->bypass;
	s->n_keepers -= old && !cache_policy(old)->bypass;
	c->cache = fresh;
	return old;
}

static int caching_init(struct layer *l, struct err *err)
{
	const struct server_config *c = &l->server->c;
	struct cache *fresh;
	int r = make(l, c->cache_policy, &c->cache_size, &fresh, err);

	if (r == 0)
		use(l, fresh);
	return r;
}

static void caching_discard(struct layer *l, void *old)
{
	(void)l;
	cache_on_drop(old, drop_unused, NULL);
	cache_free(old);
}

static void caching_fini(struct layer *l)
{
	struct caching *c = l->state;

	if (c->cache)
		caching_discard(l, c->cache);
}

/* --- asking ------------------------------------------------------------- */

/* Of what is cached: if it has no bytes, and there is memory now, another
 * object takes its place, which is in flight, past the device. Who has the one
 * before looks at it without the lock: that stays as it is. */
static struct object *refill(struct server *s, struct ask *a,
			     struct cache_entry *e)
{
	struct object *old = cache_user(e), *o = flight_find(s, old->key);

	if (!o) {
		o = flight_begin(s, old->key, a->arrival);
		if (o && !o->data) {
			flight_cancel(s, o);
			o = NULL;
		}
		if (o) {
			o->fetch.op = STORAGE_N_OPS;
			o->fetch.later = a->later;
			o->brought = old->brought;
			a->start = &o->fetch;
		}
	}
	if (!o || !o->data)
		return old;
	cache_set_user(e, object_get(o));
	server_put_object(old);
	return o;
}

static void found(struct layer *l, struct ask *a, struct cache_entry *e)
{
	struct object *o = cache_user(e);

	if (a->first) {
		a->hit = true;
		if (o->brought)
			stack_accessed(l->server, o, a);
	}
	if (!o->data && o->state == OBJECT_READY && !a->peeks)
		o = refill(l->server, a, e);
	a->object = object_get(o);
}

static int caching_ask(struct layer *l, struct ask *a)
{
	struct caching *c = l->state;
	enum cache_result result = CACHE_HIT;
	struct cache_entry *e;
	int r;

	if (a->first)
		result = cache_access(c->cache, &a->what, &e);
	else
		e = cache_peek(c->cache, a->what.key);
	if (e && cache_user(e)) {
		found(l, a, e);
		return 0;
	}
	a->admitted = a->admitted || result == CACHE_ADMITTED;
	a->rejected = a->rejected || result == CACHE_REJECTED;
	r = layer_ask(l, a);
	if (e && a->offered)
		e = cache_peek(c->cache, a->what.key);
	if (e && a->object)
		cache_set_user(e, object_get(a->object));
	else if (e)
		cache_remove(c->cache, e);
	return r;
}

static void caching_offer(struct layer *l, struct object *o)
{
	struct caching *c = l->state;
	struct cache_object what = { .key = o->key,
				     .bytes = o->bytes,
				     .file_bytes = o->bytes };
	struct cache_entry *e = cache_offer(c->cache, &what);

	if (e && !cache_user(e))
		cache_set_user(e, object_get(o));
	layer_offer(l, o);
}

/* The object of an entry that has none yet: one that is there already, or
 * one in flight from now on. */
static enum layer_warmth fill(struct layer *l, struct ask *a,
			      struct cache_entry *e)
{
	struct caching *c = l->state;
	struct server *s = l->server;
	struct object *o = flight_find(s, a->what.key);

	if (!o)
		o = stack_peek(s, a->what.key, false);
	if (!o) {
		o = flight_begin(s, a->what.key, a->arrival);
		a->object = o;
		a->fresh = o;
	}
	if (!o) {
		cache_remove(c->cache, e);
		return WARM_FAILED;
	}
	cache_set_user(e, object_get(o));
	return WARM_LOADED;
}

static enum layer_warmth caching_warm(struct layer *l, struct ask *a)
{
	struct caching *c = l->state;
	struct cache_entry *e = cache_peek(c->cache, a->what.key);

	if (e)
		return WARM_CACHED;
	if (cache_has_room(c->cache, a->what.bytes))
		e = cache_offer(c->cache, &a->what);
	return e ? fill(l, a, e) : layer_warm(l, a);
}

static struct object *caching_peek(struct layer *l, uint64_t key, bool kept)
{
	const struct caching *c = l->state;
	struct cache_entry *e = cache_peek(c->cache, key);

	(void)kept;
	return e ? cache_user(e) : NULL;
}

static bool caching_forget(struct layer *l, const struct object *o)
{
	struct caching *c = l->state;
	struct cache_entry *e = cache_peek(c->cache, o->key);

	if (!e || cache_user(e) != o)
		return false;
	cache_remove(c->cache, e);
	return true;
}

/* The open of a file is free when its first object is. */
static void caching_metadata(struct layer *l, struct fetch *f)
{
	struct caching *c = l->state;
	struct server *s = l->server;
	bool there = false;

	if (f->op == STORAGE_OPEN) {
		pthread_mutex_lock(&s->lock);
		there = cache_peek(c->cache, object_key(f->node, 0));
		pthread_mutex_unlock(&s->lock);
	}
	if (there)
		f->done(f, false);
	else
		layer_metadata(l, f);
}

/* --- control ------------------------------------------------------------ */

static int caching_renew(struct layer *l, const struct layer_change *change,
			 void **ret, struct err *err)
{
	const struct caching *c = l->state;
	/* constant, under the lock of changes */
	struct units_capacity same = { .fraction = -1,
				       .bytes = cache_capacity(c->cache) };
	const char *policy = cache_policy_text(c->cache);
	bool mine = change && change->cache == l->nth;
	struct cache *fresh;
	int r = make(l, mine && change->policy ? change->policy : policy,
		     mine && change->size ? change->size : &same, &fresh, err);

	if (r == 0)
		*ret = fresh;
	return r;
}

static void caching_swap(struct layer *l, void **fresh)
{
	struct caching *c = l->state;

	cache_counts_add(&c->before, cache_counts(c->cache));
	*fresh = use(l, *fresh);
}

static void caching_reset(struct layer *l)
{
	struct caching *c = l->state;

	cache_reset_counts(c->cache);
	c->before = (struct cache_counts){ 0 };
}

static size_t caching_stats(struct layer *l, struct layer_stat ret[LAYER_STATS])
{
	const struct caching *c = l->state;
	struct cache_counts n = c->before;
	size_t i = 0;

	cache_counts_add(&n, cache_counts(c->cache));
	ret[i++] = (struct layer_stat){ "policy",
					.text = cache_policy_text(c->cache) };
	ret[i++] = (struct layer_stat){ "capacity_bytes",
					cache_capacity(c->cache) };
	ret[i++] = (struct layer_stat){ "used_bytes", cache_used(c->cache) };
	ret[i++] = (struct layer_stat){ "objects", cache_objects(c->cache) };
	ret[i++] = (struct layer_stat){ "metadata_bytes",
					cache_metadata_bytes(c->cache) +
						cache_objects(c->cache) *
							OBJECT_OVERHEAD };
	ret[i++] = (struct layer_stat){ "hits", n.hits };
	ret[i++] = (struct layer_stat){ "misses", n.misses };
	ret[i++] = (struct layer_stat){ "hit_bytes", n.hit_bytes };
	ret[i++] = (struct layer_stat){ "miss_bytes", n.miss_bytes };
	ret[i++] = (struct layer_stat){ "evictions", n.evictions };
	ret[i++] = (struct layer_stat){ "rejected", n.rejected };
	return i;
}

const struct layer_ops layer_cache = {
	.plugin = { .name = "cache",
		    .summary = "keep objects, as a policy decides",
		    .state_size = sizeof(struct caching) },
	.rank = LAYER_CACHE,
	.many = true,
	.init = caching_init,
	.fini = caching_fini,
	.ask = caching_ask,
	.offer = caching_offer,
	.warm = caching_warm,
	.peek = caching_peek,
	.forget = caching_forget,
	.metadata = caching_metadata,
	.renew = caching_renew,
	.swap = caching_swap,
	.discard = caching_discard,
	.reset = caching_reset,
	.stats = caching_stats,
};

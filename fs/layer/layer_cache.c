/* SPDX-License-Identifier: MIT */
/*
 * A cache of objects, run by a policy (fs/cache/cache.h). The stack may have
 * several of these layers, one per tier (fs/cache/tier.h). A miss is admitted
 * here if the policy wants it, and goes on to the layer below, which may be
 * another cache. All caches share the object that comes up; each has a
 * reference.
 *
 *	ask	 hit: the object, at once, or in flight for the duration of a
 *		 read of the tier's storage
 *		 miss: admitted or not, then below
 *	offer	 from a group below: admitted, not counted; passed on above
 *	warm	 admitted if there is room, else below
 *	forget	 removed: its bytes cannot be read
 *
 * A tier with a storage has its own device and queue. Hits of the tier, and
 * opens of its files, go through that queue. Readers of an object in flight
 * share one read. Filling a tier is free.
 *
 * With --cache-bytes source a cache keeps only the decision, not the bytes: its
 * entries share one object without bytes, `husk`. A hit is then an object in
 * flight that lives as long as it has readers.
 */
#include <errno.h>
#include <string.h>

#include "common/conf/plugin_choice.h"
#include "common/json.h"
#include "common/system/memory.h"
#include "common/units.h"
#include "common/util.h"
#include "fs/server/flight.h"
#include "fs/server/server.h"
#include "fs/server/stack.h"

struct caching {
	struct cache *cache;
	bool keeps; /* of the change under way: what fits stays */
	struct cache_counts before; /* of earlier caches of this layer */
	struct object husk; /* shared by all entries; refs 0: not used */
	/* constant: the cost of a hit; NULL: none */
	struct fetcher *fetcher;
	struct storage_profile *storage;
	const char *storage_name;
};

/* --- life --------------------------------------------------------------- */

/* For the cache in use. */
static void drop_object(void *user, void *ctx)
{
	(void)ctx;
	server_put_object(user);
}

/* For a cache that is no longer in use. */
static void drop_unused(void *user, void *ctx)
{
	(void)ctx;
	object_put(user);
}

/* Half of the memory by default. arbitrary: as much is left for the page cache
 * of the source and for the readers. Several caches share it equally. */
static int capacity_bytes(const struct layer *l, const struct policy_ops *ops,
			  const struct units_capacity *size, uint64_t *ret,
			  struct err *err)
{
	const struct server *s = l->server;
	const struct caching *c = l->state;
	/* the other caches */
	uint64_t others =
		s->capacity - (c->cache ? cache_capacity(c->cache) : 0);
	uint64_t most = memory_limit();
	uint64_t want = units_capacity_bytes(size, s->c.tree->file_bytes);
	char wants[UNITS_TEXT], has[UNITS_TEXT];

	if (s->c.bytes_in_source) {
		*ret = ops->bypass ? 0 : want;
		return 0;
	}
	*ret = ops->bypass    ? 0
	       : size->yields ? MIN(want, most / 2 / l->n_alike)
			      : want;
	if (*ret <= most && others <= most - *ret)
		return 0;
	return err_set(err, -EINVAL,
		       "a cache of %s does not fit the %s of memory that this "
		       "machine or its control group has; choose a smaller "
		       "--cache-size, -p none, or --cache-bytes source",
		       units_human_size((double)(want + others), wants),
		       units_human_size((double)most, has));
}

static bool allowed(void *layer, uint64_t key)
{
	const struct layer *l = layer;

	return layer_admits(layer, key, l->nth);
}

static int make(struct layer *l, const char *policy,
		const struct units_capacity *size, struct cache **ret,
		struct err *err)
{
	_cleanup_(plugin_choice_fini) struct plugin_choice choice = { 0 };
	const struct server *s = l->server;
	const struct policy_ops *ops;
	struct policy_params params = { .live = true,
					.seed = s->c.seed,
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
	params.importance = importance_of;
	params.importance_ctx = &l->server->importance;
	params.label = tree_label_of;
	params.label_ctx = s->c.tree;
	params.n_labels = tree_labels(s->c.tree);
	if (s->c.peers) {
		params.allowed = allowed;
		params.allowed_ctx = l;
	}
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
	s->tiers[l->nth] = cache_capacity(fresh);
	if (!s->c.bytes_in_source)
		budget_set_capacity(&s->budget,
				    s->capacity + s->c.prefetch_bytes);
	s->n_keepers += !cache_policy(fresh)->bypass;
	s->n_keepers -= old && !cache_policy(old)->bypass;
	c->cache = fresh;
	return old;
}

/* The device of a tier. */
static int start_fetcher(struct layer *l, const char *name, struct err *err)
{
	struct caching *c = l->state;
	const struct server *s = l->server;
	struct fetcher_config f = { .tick = s->c.tick,
				    .source = s->c.source,
				    .source_state = s->c.source_state,
				    .tree = s->c.tree,
				    /* a different stream per tier */
				    .seed = s->c.seed + l->nth + 1,
				    .lead = s->fetcher };
	int r = storage_profile_load(name, &c->storage, err);

	if (r < 0)
		return r;
	f.storage = c->storage;
	c->storage_name = name;
	r = fetcher_new(&f, &c->fetcher);
	return r < 0 ? err_set(err, r, "cannot start: %s", strerror(-r)) : 0;
}

static int caching_init(struct layer *l, struct err *err)
{
	const struct server_config *config = &l->server->c;
	const struct tiers *t = config->tiers;
	struct caching *c = l->state;
	struct cache *fresh;
	int r;

	c->husk = (struct object){ .server = l->server,
				   .refs = config->bytes_in_source,
				   .state = OBJECT_READY };
	if (!t || !t->n) {
		r = make(l, config->cache_policy, &config->cache_size, &fresh,
			 err);
	} else if (l->nth >= t->n) {
		r = err_set(err, -EINVAL, "layers: more caches than tiers");
	} else {
		const struct tier *tier = &t->v[l->nth];

		r = tier->storage ? start_fetcher(l, tier->storage, err) : 0;
		if (r == 0)
			r = make(l, tier->policies[0].text, &tier->sizes[0],
				 &fresh, err);
	}
	if (r == 0)
		use(l, fresh);
	return r;
}

static void caching_stop(struct layer *l)
{
	struct caching *c = l->state;

	if (c->fetcher)
		fetcher_stop(c->fetcher);
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
	fetcher_free(c->fetcher);
	storage_profile_free(c->storage);
}

/* --- access ------------------------------------------------------------- */

static void keep_object(struct caching *c, struct cache_entry *e,
			struct object *o)
{
	cache_set_user(e, object_get(c->husk.refs ? &c->husk : o));
}

/* The live object of an entry with the husk, if there is one: in flight, or
 * prefetched with its group. */
static struct object *find_live(struct server *s, uint64_t key)
{
	struct object *o = flight_find(s, key);

	for (size_t i = 0; i < s->n_layers && !o; i++) {
		struct layer *l = s->layers[i];

		if (l->ops->rank == LAYER_FETCH && l->ops->peek)
			o = l->ops->peek(l, key, false);
	}
	return o;
}

/*
 * A hit in flight: to take its time, to read the bytes that `o` lacks, or both.
 * All readers share one flight. NULL: no memory.
 */
static struct object *fly(struct layer *l, struct ask *a, struct object *o,
			  bool timed)
{
	struct caching *c = l->state;
	struct server *s = l->server;
	struct object *x = flight_find(s, a->what.key);

	if (x)
		return x;
	x = o->data ? flight_again(s, o, a->arrival)
		    : flight_begin(s, a->what.key, a->arrival);
	if (x && !x->data && !timed && o != &c->husk) {
		flight_cancel(s, x);
		x = NULL;
	}
	if (!x)
		return NULL;
	x->fetch.later = a->later;
	x->prefetched_by = o->prefetched_by;
	a->start = &x->fetch;
	a->fresh = true;
	if (timed)
		a->starter = l;
	else
		x->fetch.op = STORAGE_N_OPS;
	return x;
}

/* Replace `o`, the object of the entry, by `x`, unless that loses bytes. `o`
 * itself does not change: its readers use it without the lock. */
static void replace(struct cache_entry *e, struct object *o, struct object *x)
{
	if (x == o || (o->data && !x->data))
		return;
	cache_set_user(e, object_get(x));
	server_put_object(o);
}

static int found(struct layer *l, struct ask *a, struct cache_entry *e)
{
	struct caching *c = l->state;
	struct object *kept = cache_user(e), *o = kept, *x;
	bool timed = c->fetcher && !a->paid;

	if (kept == &c->husk && (x = find_live(l->server, a->what.key)))
		o = x;
	if (a->first) {
		a->hit = true;
		timed = timed && !o->prefetched_by;
		if (o->prefetched_by)
			stack_accessed(l->server, o, a);
	}
	if (o->state == OBJECT_READY && !a->peeks && (timed || !o->data)) {
		x = fly(l, a, o, timed);
		if (!x && (timed || kept == &c->husk))
			return -ENOMEM;
		if (x && kept != &c->husk)
			replace(e, kept, x);
		o = x ? x : o;
	}
	a->object = object_get(o);
	return 0;
}

static int caching_ask(struct layer *l, struct ask *a)
{
	struct caching *c = l->state;
	enum cache_result result = CACHE_HIT;
	struct cache_entry *e;
	int r;

	if (!a->first) {
		e = cache_peek(c->cache, a->what.key);
	} else if (a->admitted && l->server->c.admit == TIER_ADMIT_FIRST) {
		e = cache_access_only(c->cache, &a->what);
		result = e ? CACHE_HIT : CACHE_REJECTED;
	} else {
		result = cache_access(c->cache, &a->what, &e);
	}
	if (e && cache_user(e))
		return found(l, a, e);
	a->admitted = a->admitted || result == CACHE_ADMITTED;
	a->rejected = a->rejected || result == CACHE_REJECTED;
	r = layer_ask(l, a);
	if (e && a->offered)
		e = cache_peek(c->cache, a->what.key);
	if (e && a->object)
		keep_object(c, e, a->object);
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
	struct cache_entry *e;

	layer_offer(l, o);
	if (l->server->c.admit == TIER_ADMIT_FIRST &&
	    stack_peek(l->server, o->key, false))
		return;
	e = cache_offer(c->cache, &what);
	if (e && !cache_user(e))
		keep_object(c, e, o);
}

/* Give a new entry its object: one in memory already, or one in flight from now
 * on. */
static enum layer_warmth fill_entry(struct layer *l, struct ask *a,
				    struct cache_entry *e)
{
	struct caching *c = l->state;
	struct server *s = l->server;
	struct object *o = flight_find(s, a->what.key);

	if (c->husk.refs) {
		keep_object(c, e, NULL);
		return WARM_LOADED;
	}
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
	return e ? fill_entry(l, a, e) : layer_warm(l, a);
}

static struct object *caching_peek(struct layer *l, uint64_t key, bool kept)
{
	const struct caching *c = l->state;
	struct cache_entry *e = cache_peek(c->cache, key);

	return e && !(kept && (c->fetcher || c->husk.refs)) ? cache_user(e)
							    : NULL;
}

static bool caching_forget(struct layer *l, const struct object *o)
{
	struct caching *c = l->state;
	struct cache_entry *e = cache_peek(c->cache, o->key);

	if (!e || (cache_user(e) != o && !c->husk.refs))
		return false;
	cache_remove(c->cache, e);
	return true;
}

static void caching_reweigh(struct layer *l, uint32_t node)
{
	struct caching *c = l->state;

	if (!cache_policy(c->cache)->reweighed)
		return;
	for (uint32_t i = 0; i < server_extents(l->server, node); i++)
		cache_reweigh(c->cache, object_key(node, i));
}

/* The open of a file costs as much as its first object. */
static void caching_metadata(struct layer *l, struct fetch *f)
{
	struct caching *c = l->state;

	if (!stack_opens(l, f))
		layer_metadata(l, f);
	else if (c->fetcher)
		fetch_start(c->fetcher, f);
	else
		f->done(f, false);
}

/* Start a hit that takes time. */
static void caching_start(struct layer *l, struct fetch *f)
{
	const struct caching *c = l->state;

	fetch_start(c->fetcher, f);
}

/* --- control ------------------------------------------------------------ */

static int caching_renew(struct layer *l, const struct layer_change *change,
			 void **ret, struct err *err)
{
	struct caching *c = l->state;
	/* constant under change_lock */
	struct units_capacity same = { .fraction = -1,
				       .bytes = cache_capacity(c->cache) };
	const char *policy = cache_policy_text(c->cache);
	bool mine = change && change->cache == l->nth;
	struct cache *fresh;
	int r = make(l, mine && change->policy ? change->policy : policy,
		     mine && change->size ? change->size : &same, &fresh, err);

	if (r < 0)
		return r;
	c->keeps = mine && change->keep;
	*ret = fresh;
	return 0;
}

/* In the order in which they lie in memory: the policy's history is lost. */
static void keep_what_fits(const struct tree *tree, const struct cache *from,
			   struct cache *to)
{
	struct cache_entry *e;
	size_t cursor = 0;

	while ((e = cache_next(from, &cursor))) {
		uint64_t bytes = cache_object_bytes(from, e);
		struct cache_object o = { e->key, bytes,
					  tree->nodes[e->key >> 32].bytes };

		if (cache_has_room(to, bytes) && cache_offer(to, &o)) {
			cache_set_user(cache_peek(to, o.key), cache_user(e));
			cache_set_user(e, NULL);
		}
	}
}

static void caching_swap(struct layer *l, void **fresh)
{
	struct caching *c = l->state;

	cache_counts_add(&c->before, cache_counts(c->cache));
	if (c->keeps)
		keep_what_fits(l->server->c.tree, c->cache, *fresh);
	*fresh = use(l, *fresh);
}

static void caching_reset(struct layer *l)
{
	struct caching *c = l->state;

	cache_reset_counts(c->cache);
	c->before = (struct cache_counts){ 0 };
	if (c->fetcher)
		fetcher_reset_stats(c->fetcher);
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
	ret[i++] = (struct layer_stat){
		"metadata_bytes",
		cache_metadata_bytes(c->cache) +
			(c->husk.refs
				 ? 0
				 : cache_objects(c->cache) * OBJECT_OVERHEAD)
	};
	ret[i++] = (struct layer_stat){ "hits", n.hits };
	ret[i++] = (struct layer_stat){ "misses", n.misses };
	ret[i++] = (struct layer_stat){ "hit_bytes", n.hit_bytes };
	ret[i++] = (struct layer_stat){ "miss_bytes", n.miss_bytes };
	ret[i++] = (struct layer_stat){ "evictions", n.evictions };
	ret[i++] = (struct layer_stat){ "rejected", n.rejected };
	return i;
}

/* Also append the part to the list of tiers. */
static void caching_json(struct layer *l, json_t *stats, json_t *part)
{
	const struct caching *c = l->state;
	struct fetch_stats *f = c->fetcher ? malloc(sizeof(*f)) : NULL;
	json_t *tiers = json_object_get(stats, "tiers");

	json_object_set_new(part, "storage",
			    json_bytes(c->fetcher ? c->storage_name : "dram"));
	if (f) {
		fetcher_stats(c->fetcher, f);
		json_add_integer(part, "reads", f->backend_reads);
		json_add_integer(part, "read_bytes", f->backend_bytes);
		json_object_set_new(part, "latency_us", server_latency_json(f));
	}
	free(f);
	if (!tiers) {
		tiers = json_array();
		json_object_set_new(stats, "tiers", tiers);
	}
	json_array_append(tiers, part);
	if (cache_policy(c->cache)->reweighed)
		json_object_set_new(stats, "uses_importance", json_true());
}

const struct layer_ops layer_cache = {
	.plugin = { .name = "cache",
		    .summary = "keep objects; a policy decides which",
		    .state_size = sizeof(struct caching) },
	.rank = LAYER_CACHE,
	.many = true,
	.init = caching_init,
	.fini = caching_fini,
	.stop = caching_stop,
	.start = caching_start,
	.json = caching_json,
	.ask = caching_ask,
	.offer = caching_offer,
	.warm = caching_warm,
	.peek = caching_peek,
	.forget = caching_forget,
	.metadata = caching_metadata,
	.reweigh = caching_reweigh,
	.renew = caching_renew,
	.swap = caching_swap,
	.discard = caching_discard,
	.reset = caching_reset,
	.stats = caching_stats,
};

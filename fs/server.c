/* SPDX-License-Identifier: MIT */
#include "fs/server.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>

#include "common/hist.h"
#include "common/json.h"
#include "common/tick.h"
#include "common/util.h"
#include "common/version.h"
#include "fs/device.h"
#include "fs/server_trace.h"

/* arbitrary: reads that would block the receiving thread; more only helps a
 * source on a slow real disk */
enum { N_READERS = 4 };

/* arbitrary: some groups of 64 files of ImageNet at once, for that many
 * workers of a loader, each of which is in another group */
#define LEAST_BUFFER (64 * MIB)

static void drop_object(void *user, void *ctx)
{
	(void)ctx;
	object_put(user);
}

/* What a cache may take: all memory, less what the rest of us needs. */
static uint64_t memory_bytes(void)
{
	return (uint64_t)sysconf(_SC_PHYS_PAGES) *
	       (uint64_t)sysconf(_SC_PAGESIZE);
}

static int make_cache(struct server *s, const char *policy,
		      const struct units_capacity *size, struct cache **ret,
		      struct err *err)
{
	const struct plugin *p =
		plugin_find(policy_table, "cache policy", policy, err);
	uint64_t bytes = units_capacity_bytes(size, s->c.tree->file_bytes);
	char want[UNITS_TEXT], have[UNITS_TEXT];
	struct policy_params params = { .capacity_bytes = bytes,
					.seed = s->c.seed,
					.file_bytes = s->sizes,
					.n_files = s->c.tree->n_files,
					.max_object_bytes = OBJECT_EXTENT,
					.count_metadata = s->c.cache_metadata,
					.overhead_bytes = OBJECT_OVERHEAD };

	if (!p)
		return -EINVAL;
	if (bytes > memory_bytes())
		return err_set(err, -EINVAL,
			       "a cache of %s does not fit this machine's %s "
			       "of memory; choose a smaller --cache-size",
			       units_human_size((double)bytes, want),
			       units_human_size((double)memory_bytes(), have));
	int r = cache_new(container_of(p, const struct policy_ops, plugin),
			  &params, drop_object, NULL, ret, err);

	return r < 0 ? err_set(err, r, "cache: %s", strerror(-r)) : 0;
}

static int start_fetcher(struct server *s, struct err *err)
{
	struct fetcher_config c = { .tick = s->c.tick,
				    .source = s->c.source,
				    .source_state = s->c.source_state,
				    .tree = s->c.tree,
				    .storage = s->storage,
				    .seed = s->c.seed,
				    .n_readers = N_READERS };
	int r = fetcher_new(&c, &s->fetcher);

	return r < 0 ? err_set(err, r, "cannot start: %s", strerror(-r)) : 0;
}

int server_new(const struct server_config *config, struct server **ret,
	       struct err *err)
{
	struct server *s = calloc(1, sizeof(*s));
	int r = -ENOMEM;

	if (!s)
		return r;
	s->c = *config;
	pthread_mutex_init(&s->lock, NULL);
	pthread_mutex_init(&s->backing_lock, NULL);
	faults_init(&s->faults);
	s->sizes = tree_sizes(config->tree);
	s->marks = calloc(1, sizeof(*s->marks));
	s->storage_name = strdup(config->storage);
	if (!s->sizes || !s->marks || !s->storage_name)
		goto fail;
	s->n_marks = 1;
	s->buffer.limit = config->group_buffer;
	if (config->groups && !s->buffer.limit)
		s->buffer.limit =
			MAX(LEAST_BUFFER, 2 * config->groups->largest_bytes);
	r = make_cache(s, config->cache_policy, &config->cache_size, &s->cache,
		       err);
	if (r == 0)
		r = storage_profile_load(config->storage, &s->storage, err);
	if (r == 0)
		r = start_fetcher(s, err);
	if (r < 0)
		goto fail;
	*ret = s;
	return 0;
fail:
	server_free(s);
	return err_set(err, r, "%s", strerror(-r));
}

void server_stop(struct server *s)
{
	faults_stop(&s->faults);
	pthread_mutex_lock(&s->lock);
	s->stopping = true;
	pthread_mutex_unlock(&s->lock);
	fetcher_free(s->fetcher);
	s->fetcher = NULL;
}

void server_free(struct server *s)
{
	if (!s)
		return;
	server_stop(s);
	cache_free(s->cache);
	group_buffer_clear(&s->buffer);
	storage_profile_free(s->storage);
	faults_fini(&s->faults);
	pthread_mutex_destroy(&s->lock);
	pthread_mutex_destroy(&s->backing_lock);
	free(s->storage_name);
	free(s->sizes);
	free(s->marks);
	free(s);
}

const struct tree *server_tree(const struct server *s)
{
	return s->c.tree;
}

struct tick *server_tick(const struct server *s)
{
	return s->c.tick;
}

int server_readlink(struct server *s, uint32_t node, char *buf, size_t n)
{
	return s->c.source->readlink(s->c.source_state, s->c.tree, node, buf,
				     n);
}

bool server_place(struct server *s, uint32_t node, uint64_t *ret)
{
	bool has;

	pthread_mutex_lock(&s->lock);
	has = s->storage->op[STORAGE_READ].settle_ns &&
	      node < s->c.tree->n_nodes && S_ISREG(s->c.tree->nodes[node].mode);
	pthread_mutex_unlock(&s->lock);
	if (has)
		*ret = device_place(group_lead(s, node), 0);
	return has;
}

int server_open_source(struct server *s, uint32_t node)
{
	if (!s->c.source->open)
		return -EOPNOTSUPP;
	return s->c.source->open(s->c.source_state, s->c.tree, node);
}

void server_on_backing_close(struct server *s, void (*fn)(int id, void *ctx),
			     void *ctx)
{
	pthread_mutex_lock(&s->backing_lock);
	s->backing_close = fn;
	s->backing_ctx = ctx;
	pthread_mutex_unlock(&s->backing_lock);
}

void server_backing_close(struct server *s, int id)
{
	pthread_mutex_lock(&s->backing_lock);
	if (s->backing_close)
		s->backing_close(id, s->backing_ctx);
	pthread_mutex_unlock(&s->backing_lock);
}

void server_set_round_trip(struct server *s, const struct round_trip *trip)
{
	/* who measured it may be late, and the mount at its end */
	pthread_mutex_lock(&s->lock);
	if (!s->stopping)
		fetcher_set_round_trip(s->fetcher, trip);
	pthread_mutex_unlock(&s->lock);
}

struct handle *server_open(struct server *s, uint32_t node)
{
	uint64_t bytes = s->c.tree->nodes[node].bytes;
	size_t extents = bytes / OBJECT_EXTENT + 1;
	struct handle *h = calloc(1, sizeof(*h));

	if (!h)
		return NULL;
	h->node = node;
	h->seen = extents <= 64 ? &h->seen_small
				: calloc(extents / 64 + 1, sizeof(*h->seen));
	if (!h->seen) {
		free(h);
		return NULL;
	}
	return h;
}

void server_close(struct server *s, struct handle *h)
{
	(void)s;
	object_put(h->held);
	if (h->seen != &h->seen_small)
		free(h->seen);
	free(h);
}

/* --- control ------------------------------------------------------------ */

/* Under the lock: what the cache counted, but for what a group had brought. */
static struct cache_counts counts_now(const struct server *s)
{
	struct cache_counts c = s->before;

	cache_counts_add(&c, cache_counts(s->cache));
	c.hits += s->unmissed.hits;
	c.hit_bytes += s->unmissed.hit_bytes;
	c.misses -= s->unmissed.hits;
	c.miss_bytes -= s->unmissed.hit_bytes;
	c.rejected -= s->unmissed.rejected;
	return c;
}

/* Under the lock: the counters as they stand. */
static struct epoch_mark mark_now(struct server *s)
{
	struct fetch_stats f;

	fetcher_stats(s->fetcher, &f);
	return (struct epoch_mark){ .cache = counts_now(s),
				    .backend_reads = f.backend_reads,
				    .backend_bytes = f.backend_bytes,
				    .start = tick_now(s->c.tick) };
}

/* Under the lock. */
static void begin_epoch(struct server *s)
{
	struct epoch_mark now = mark_now(s);
	struct epoch_mark *last = &s->marks[s->n_marks - 1];

	/* an epoch in which nothing was read has not begun: begin it again */
	if (now.cache.hits + now.cache.misses >
	    last->cache.hits + last->cache.misses) {
		struct epoch_mark *more =
			realloc(s->marks, (s->n_marks + 1) * sizeof(*s->marks));

		if (more) {
			s->marks = more;
			s->n_marks++;
		}
	}
	s->marks[s->n_marks - 1] = now;
}

void server_epoch(struct server *s)
{
	pthread_mutex_lock(&s->lock);
	if (!s->stopping) {
		trace_event(s, TRACE_EPOCH, 0);
		begin_epoch(s);
	}
	pthread_mutex_unlock(&s->lock);
}

/* Under the lock. */
static void reset_counts(struct server *s)
{
	trace_event(s, TRACE_RESET, 0);
	cache_reset_counts(s->cache);
	fetcher_reset_stats(s->fetcher);
	s->before = (struct cache_counts){ 0 };
	__atomic_store_n(&s->delivered_bytes, 0, __ATOMIC_RELAXED);
	s->coalesced = 0;
	s->group_hits = s->group_hit_bytes = 0;
	s->unmissed = (struct cache_counts){ 0 };
	s->n_marks = 1;
	s->marks[0] = mark_now(s);
}

void server_reset(struct server *s)
{
	pthread_mutex_lock(&s->lock);
	if (!s->stopping)
		reset_counts(s);
	pthread_mutex_unlock(&s->lock);
	faults_reset(&s->faults);
}

void server_drop_cache(struct server *s)
{
	pthread_mutex_lock(&s->lock);
	trace_event(s, TRACE_DROP_CACHE, 0);
	cache_clear(s->cache);
	group_buffer_clear(&s->buffer);
	pthread_mutex_unlock(&s->lock);
}

int server_set_cache(struct server *s, const char *policy,
		     const struct units_capacity *size, struct err *err)
{
	struct cache *fresh, *old;
	int r = make_cache(s, policy, size, &fresh, err);

	if (r < 0)
		return r;
	pthread_mutex_lock(&s->lock);
	if (s->stopping) {
		pthread_mutex_unlock(&s->lock);
		cache_free(fresh);
		return err_set(err, -ECONNABORTED, "the mount is at its end");
	}
	trace_event(s, TRACE_SET_CACHE, 0);
	old = s->cache;
	cache_counts_add(&s->before, cache_counts(old));
	s->cache = fresh;
	group_buffer_clear(&s->buffer);
	/* what the two caches did is told apart */
	begin_epoch(s);
	pthread_mutex_unlock(&s->lock);
	cache_free(old);
	return 0;
}

int server_set_storage(struct server *s, const char *storage, struct err *err)
{
	struct storage_profile *fresh = NULL, *old;
	_cleanup_free_ char *name = strdup(storage), *old_name = NULL;
	int r = name ? storage_profile_load(storage, &fresh, err) : -ENOMEM;

	pthread_mutex_lock(&s->lock);
	if (r == 0 && s->stopping)
		r = -ECONNABORTED;
	if (r == 0)
		r = fetcher_set_storage(s->fetcher, fresh, s->c.seed);
	old = fresh;
	if (r == 0) {
		old = s->storage;
		s->storage = fresh;
		old_name = s->storage_name;
		s->storage_name = TAKE_PTR(name);
	}
	pthread_mutex_unlock(&s->lock);
	storage_profile_free(old);
	return r < 0 ? err_set(err, r, "%s", strerror(-r)) : 0;
}

/* --- stats -------------------------------------------------------------- */

static double ratio(uint64_t part, uint64_t rest)
{
	return part + rest ? (double)part / (double)(part + rest) : 0;
}

static json_t *epoch_json(size_t number, const struct epoch_mark *from,
			  const struct epoch_mark *to)
{
	uint64_t hits = to->cache.hits - from->cache.hits;
	uint64_t misses = to->cache.misses - from->cache.misses;
	uint64_t hit_bytes = to->cache.hit_bytes - from->cache.hit_bytes;
	uint64_t miss_bytes = to->cache.miss_bytes - from->cache.miss_bytes;

	return json_pack("{s:I, s:I, s:I, s:f, s:f, s:I, s:I, s:f}", "epoch",
			 (json_int_t)number, "hits", (json_int_t)hits, "misses",
			 (json_int_t)misses, "hit_ratio", ratio(hits, misses),
			 "byte_hit_ratio", ratio(hit_bytes, miss_bytes),
			 "backend_reads",
			 (json_int_t)(to->backend_reads - from->backend_reads),
			 "backend_bytes",
			 (json_int_t)(to->backend_bytes - from->backend_bytes),
			 "seconds",
			 (double)(to->start - from->start) / NS_PER_S);
}

/* The finished epochs and, when it has begun, the running one. */
static json_t *epochs_json(const struct server *s, const struct epoch_mark *now)
{
	json_t *j = json_array();

	for (size_t i = 0; i < s->n_marks; i++) {
		const struct epoch_mark *from = &s->marks[i];
		const struct epoch_mark *to =
			i + 1 < s->n_marks ? &s->marks[i + 1] : now;

		if (to->cache.hits + to->cache.misses >
		    from->cache.hits + from->cache.misses)
			json_array_append_new(j, epoch_json(i, from, to));
	}
	return j;
}

static void add_counts(json_t *j, struct server *s, const struct fetch_stats *f)
{
	const struct cache_counts now = counts_now(s), *c = &now;
	const struct {
		const char *name;
		uint64_t value;
	} counts[] = {
		{ "capacity_bytes", cache_capacity(s->cache) },
		{ "used_bytes", cache_used(s->cache) },
		{ "objects", cache_objects(s->cache) },
		{ "metadata_bytes",
		  cache_metadata_bytes(s->cache) +
			  cache_objects(s->cache) * OBJECT_OVERHEAD },
		{ "hits", c->hits },
		{ "misses", c->misses },
		{ "hit_bytes", c->hit_bytes },
		{ "miss_bytes", c->miss_bytes },
		{ "evictions", c->evictions },
		{ "rejected", c->rejected },
		{ "coalesced", s->coalesced },
		{ "delivered_bytes",
		  __atomic_load_n(&s->delivered_bytes, __ATOMIC_RELAXED) },
		{ "backend_reads", f->backend_reads },
		{ "backend_bytes", f->backend_bytes },
		{ "inflight", f->inflight },
		{ "files", s->c.tree->n_files },
		{ "file_bytes", s->c.tree->file_bytes },
		{ "groups", s->c.groups ? s->c.groups->groups.n_groups : 0 },
		{ "group_hits", s->group_hits },
		{ "group_hit_bytes", s->group_hit_bytes },
		{ "group_buffer_bytes", s->buffer.bytes },
		{ "epoch", s->n_marks - 1 },
	};

	for (size_t i = 0; i < ARRAY_SIZE(counts); i++)
		json_object_set_new(j, counts[i].name,
				    json_integer((json_int_t)counts[i].value));
	json_object_set_new(j, "hit_ratio",
			    json_real(ratio(c->hits, c->misses)));
	json_object_set_new(j, "byte_hit_ratio",
			    json_real(ratio(c->hit_bytes, c->miss_bytes)));
	/* bytes the device read for each byte that missed the cache */
	json_object_set_new(j, "read_amplification",
			    json_real(c->miss_bytes
					      ? (double)f->backend_bytes /
							(double)c->miss_bytes
					      : 0));
}

void server_print_groups(const struct server *s, FILE *f)
{
	if (s->c.groups)
		group_map_print(s->c.groups, s->c.tree, f);
}

static json_t *alone_json(const struct fetch_stats *f)
{
	json_t *j = json_object();

	for (int op = 0; op < STORAGE_N_OPS; op++)
		json_object_set_new(
			j, storage_op_name(op),
			json_real((double)f->round_trip.alone_ns[op] /
				  NS_PER_US));
	json_object_set_new(
		j, "mib",
		json_real((double)f->round_trip.alone_mib_ns / NS_PER_US));
	json_object_set_new(
		j, "mib_slow",
		json_real((double)f->round_trip.slow_mib_ns / NS_PER_US));
	return j;
}

json_t *server_stats(struct server *s)
{
	json_t *j = json_object();
	struct fetch_stats *f = malloc(sizeof(*f));

	if (!j || !f) {
		free(f);
		json_decref(j);
		return NULL;
	}
	fetcher_stats(s->fetcher, f);
	pthread_mutex_lock(&s->lock);
	struct epoch_mark now = mark_now(s);

	json_object_set_new(j, "gpemu_version", json_string(GPEMU_VERSION));
	json_object_set_new(j, "storage", json_bytes(s->storage_name));
	json_object_set_new(j, "policy",
			    json_string(cache_policy(s->cache)->plugin.name));
	add_counts(j, s, f);
	json_object_set_new(j, "epochs", epochs_json(s, &now));
	pthread_mutex_unlock(&s->lock);
	json_object_set_new(j, "faults", faults_json(&s->faults));
	json_object_set_new(
		j, "round_trip_us",
		json_real((double)f->round_trip.busy_ns / NS_PER_US));
	json_object_set_new(j, "alone_round_trip_us", alone_json(f));
	json_object_set_new(j, "timer_error_us", tick_error_json(s->c.tick));
	json_object_set_new(j, "time_scale", json_real(tick_scale(s->c.tick)));
	json_object_set_new(
		j, "latency_us",
		json_pack("{s:o, s:o, s:o}", "requested",
			  hist_json(&f->requested, NS_PER_US), "achieved",
			  hist_json(&f->achieved, NS_PER_US), "error",
			  hist_json(&f->error, NS_PER_US)));
	free(f);
	return j;
}

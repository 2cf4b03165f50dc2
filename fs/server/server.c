/* SPDX-License-Identifier: MIT */
#include "fs/server/server.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>

#include "common/hist.h"
#include "common/json.h"
#include "common/system/memory.h"
#include "common/tick.h"
#include "common/util.h"
#include "common/version.h"
#include "fs/device/device.h"
#include "fs/server/server_trace.h"

/* arbitrary: reads that would block the receiving thread; more only helps a
 * source on a slow real disk */
enum { N_READERS = 4 };

/* arbitrary: some groups of 64 files of ImageNet at once, for that many
 * workers of a loader, each of which is in another group */
#define LEAST_BUFFER (64 * MIB)

/* arbitrary: 32 extents of large files at once and as much for answers; beyond
 * it bytes are copied twice, which costs the reader about as much as before */
#define DEFAULT_MEMORY (256 * MIB)

static uint64_t default_memory(void)
{
	return MIN(DEFAULT_MEMORY, memory_limit() / 8);
}

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

void server_free_cache(struct cache *c)
{
	if (c)
		cache_on_drop(c, drop_unused, NULL);
	cache_free(c);
}

/* Half of the memory by default. arbitrary: as much is left for the page cache
 * below the source and for whoever reads */
static int capacity_bytes(const struct server *s, const struct policy_ops *ops,
			  const struct units_capacity *size, uint64_t *ret,
			  struct err *err)
{
	uint64_t most = memory_limit();
	uint64_t want = units_capacity_bytes(size, s->c.tree->file_bytes);
	char wants[UNITS_TEXT], has[UNITS_TEXT];

	*ret = ops->bypass ? 0 : size->yields ? MIN(want, most / 2) : want;
	if (*ret <= most)
		return 0;
	return err_set(err, -EINVAL,
		       "a cache of %s does not fit the %s of memory that this "
		       "machine or its control group has; choose a smaller "
		       "--cache-size, or -p none",
		       units_human_size((double)want, wants),
		       units_human_size((double)most, has));
}

int server_make_cache(struct server *s, const char *policy,
		      const struct units_capacity *size, struct cache **ret,
		      struct err *err)
{
	const struct plugin *p =
		plugin_find(policy_table, "cache policy", policy, err);
	const struct policy_ops *ops;
	struct policy_params params = { .seed = s->c.seed,
					.file_bytes = s->sizes,
					.n_files = s->c.tree->n_files,
					.max_object_bytes = OBJECT_EXTENT,
					.count_metadata = s->c.cache_metadata,
					.overhead_bytes = OBJECT_OVERHEAD };
	int r;

	if (!p)
		return -EINVAL;
	ops = container_of(p, const struct policy_ops, plugin);
	r = capacity_bytes(s, ops, size, &params.capacity_bytes, err);
	if (r < 0)
		return r;
	r = cache_new(ops, &params, drop_object, NULL, ret, err);
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
	s->why_reply = "no kernel has taken the mount into service";
	pthread_mutex_init(&s->change_lock, NULL);
	tick_mutex_init(&s->lock);
	tick_mutex_init(&s->backing_lock);
	faults_init(&s->faults, server_read_now, server_metadata_now);
	budget_init(&s->budget,
		    config->memory ? config->memory : default_memory());
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
	r = server_make_cache(s, config->cache_policy, &config->cache_size,
			      &s->cache, err);
	if (r == 0 && config->memory > memory_limit())
		r = err_set(err, -EINVAL,
			    "--memory is more than this machine or its "
			    "control group has");
	if (r == 0)
		budget_set_capacity(&s->budget, cache_capacity(s->cache));
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
	gate_close(&s->gate);
	/* who is inside may still hold or start one: that ends there at once */
	faults_stop(&s->faults);
	read_stop(s);
	if (s->fetcher)
		fetcher_stop(s->fetcher);
	gate_wait(&s->gate);
}

void server_free(struct server *s)
{
	if (!s)
		return;
	server_stop(s);
	fetcher_free(s->fetcher);
	server_free_cache(s->cache);
	group_buffer_clear(&s->buffer);
	budget_fini(&s->budget);
	storage_profile_free(s->storage);
	faults_fini(&s->faults);
	pthread_mutex_destroy(&s->change_lock);
	pthread_mutex_destroy(&s->lock);
	pthread_mutex_destroy(&s->backing_lock);
	free(s->storage_name);
	free(s->sizes);
	free(s->marks);
	free(s);
}

uint64_t server_capacity(struct server *s)
{
	uint64_t bytes;

	pthread_mutex_lock(&s->lock);
	bytes = cache_capacity(s->cache);
	pthread_mutex_unlock(&s->lock);
	return bytes;
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
	server_unlock(s);
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

void server_set_hit_path(struct server *s, const char *why_reply)
{
	__atomic_store_n(&s->why_reply, why_reply, __ATOMIC_RELEASE);
}

void server_set_round_trip(struct server *s, const struct round_trip *trip)
{
	fetcher_set_round_trip(s->fetcher, trip);
}

/* --- stats -------------------------------------------------------------- */

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

struct epoch_mark server_mark_now(struct server *s)
{
	struct epoch_mark now = { .cache = counts_now(s),
				  .start = tick_now(s->c.tick) };

	fetcher_counts(s->fetcher, &now.backend_reads, &now.backend_bytes);
	return now;
}

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

/* What the lock guards, as it stands. */
struct snapshot {
	struct epoch_mark now;
	const char *policy;
	uint64_t capacity_bytes, used_bytes, objects, metadata_bytes;
	uint64_t coalesced, passed_through;
	uint64_t group_hits, group_hit_bytes, group_buffer_bytes;
	uint64_t filling_bytes, held_bytes;
};

static struct snapshot take_snapshot(struct server *s)
{
	struct snapshot n;

	pthread_mutex_lock(&s->lock);
	n = (struct snapshot){
		.now = server_mark_now(s),
		.policy = cache_policy(s->cache)->plugin.name,
		.capacity_bytes = cache_capacity(s->cache),
		.used_bytes = cache_used(s->cache),
		.objects = cache_objects(s->cache),
		.metadata_bytes = cache_metadata_bytes(s->cache),
		.coalesced = s->coalesced,
		.passed_through = s->passed_through,
		.group_hits = s->group_hits,
		.group_hit_bytes = s->group_hit_bytes,
		.group_buffer_bytes = s->buffer.bytes,
		.filling_bytes = s->filling_bytes,
		.held_bytes = s->held_bytes,
	};
	server_unlock(s);
	return n;
}

static void add_counts(json_t *j, struct server *s, const struct snapshot *n,
		       const struct fetch_stats *f)
{
	const struct cache_counts *c = &n->now.cache;
	uint64_t objects =
		__atomic_load_n(&s->budget.objects, __ATOMIC_RELAXED);
	uint64_t answers =
		__atomic_load_n(&s->budget.answers, __ATOMIC_RELAXED);
	const struct {
		const char *name;
		uint64_t value;
	} counts[] = {
		{ "capacity_bytes", n->capacity_bytes },
		{ "used_bytes", n->used_bytes },
		{ "objects", n->objects },
		{ "metadata_bytes",
		  n->metadata_bytes + n->objects * OBJECT_OVERHEAD },
		{ "memory_bytes", objects + answers },
		{ "memory_limit_bytes", budget_limit(&s->budget) },
		{ "inflight_bytes", n->filling_bytes + answers },
		{ "held_bytes", n->held_bytes },
		{ "open_bytes",
		  __atomic_load_n(&s->seen_bytes, __ATOMIC_RELAXED) },
		{ "reread_bytes",
		  __atomic_load_n(&s->reread_bytes, __ATOMIC_RELAXED) },
		{ "hits", c->hits },
		{ "misses", c->misses },
		{ "hit_bytes", c->hit_bytes },
		{ "miss_bytes", c->miss_bytes },
		{ "evictions", c->evictions },
		{ "rejected", c->rejected },
		{ "coalesced", n->coalesced },
		{ "passthrough_opens", n->passed_through },
		{ "delivered_bytes",
		  __atomic_load_n(&s->delivered_bytes, __ATOMIC_RELAXED) },
		{ "backend_reads", n->now.backend_reads },
		{ "backend_bytes", n->now.backend_bytes },
		{ "inflight", f->inflight },
		{ "files", s->c.tree->n_files },
		{ "file_bytes", s->c.tree->file_bytes },
		{ "groups", s->c.groups ? s->c.groups->groups.n_groups : 0 },
		{ "group_hits", n->group_hits },
		{ "group_hit_bytes", n->group_hit_bytes },
		{ "group_buffer_bytes", n->group_buffer_bytes },
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
					      ? (double)n->now.backend_bytes /
							(double)c->miss_bytes
					      : 0));
}

int server_read_groups(const struct server *s, uint64_t offset, size_t n,
		       char **ret, size_t *ret_n)
{
	*ret = NULL;
	*ret_n = 0;
	if (!s->c.groups)
		return 0;
	return group_map_read(s->c.groups, s->c.tree, offset, n, ret, ret_n);
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

/* Under the lock of changes. */
static void add_state(json_t *j, struct server *s, const struct fetch_stats *f)
{
	const char *why = __atomic_load_n(&s->why_reply, __ATOMIC_ACQUIRE);
	struct snapshot n = take_snapshot(s);

	json_object_set_new(j, "gpemu_version", json_string(GPEMU_VERSION));
	json_object_set_new(j, "storage", json_bytes(s->storage_name));
	json_object_set_new(j, "policy", json_string(n.policy));
	json_object_set_new(j, "hit_path",
			    json_string(why ? "reply" : "passthrough"));
	if (why)
		json_object_set_new(j, "hit_path_reason", json_string(why));
	add_counts(j, s, &n, f);
	json_object_set_new(j, "epochs", epochs_json(s, &n.now));
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
	pthread_mutex_lock(&s->change_lock);
	fetcher_stats(s->fetcher, f);
	add_state(j, s, f);
	pthread_mutex_unlock(&s->change_lock);
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

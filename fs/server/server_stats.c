/* SPDX-License-Identifier: MIT */
/* The stats of the mount: totals, and each layer's part. */
#include "fs/server/server_stats.h"

#include <string.h>

#include "common/hist.h"
#include "common/json.h"
#include "common/tick.h"
#include "common/util.h"
#include "fs/server/object.h"
#include "fs/server/stack.h"

struct epoch_mark server_mark_now(struct server *s)
{
	struct epoch_mark now = { .reads = s->reads,
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
	uint64_t hits = to->reads.hits - from->reads.hits;
	uint64_t misses = to->reads.misses - from->reads.misses;
	uint64_t hit_bytes = to->reads.hit_bytes - from->reads.hit_bytes;
	uint64_t miss_bytes = to->reads.miss_bytes - from->reads.miss_bytes;

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

/* The finished epochs and the running one, if it has begun. */
static json_t *epochs_json(const struct server *s, const struct epoch_mark *now)
{
	json_t *j = json_array();

	for (size_t i = 0; i < s->n_marks; i++) {
		const struct epoch_mark *from = &s->marks[i];
		const struct epoch_mark *to =
			i + 1 < s->n_marks ? &s->marks[i + 1] : now;

		if (to->reads.hits + to->reads.misses >
		    from->reads.hits + from->reads.misses)
			json_array_append_new(j, epoch_json(i, from, to));
	}
	return j;
}

/* Numbers of the mount that are sums over its layers. */
static const char *const sums[] = {
	"capacity_bytes", "used_bytes",	     "objects",
	"metadata_bytes", "evictions",	     "groups",
	"group_hits",	  "group_hit_bytes", "group_buffer_bytes",
};

/* A copy of what the lock guards. */
struct snapshot {
	struct epoch_mark now;
	uint64_t coalesced, passed_through;
	uint64_t filling_bytes, held_bytes;
	struct {
		struct layer_stat stats[LAYER_STATS];
		size_t n;
	} layers[MOST_LAYERS];
};

static void take_snapshot(struct server *s, struct snapshot *n)
{
	memset(n, 0, sizeof(*n));
	pthread_mutex_lock(&s->lock);
	n->now = server_mark_now(s);
	n->coalesced = s->coalesced;
	n->passed_through = s->passed_through;
	n->filling_bytes = s->filling_bytes;
	n->held_bytes = s->held_bytes;
	for (size_t i = 0; i < s->n_layers; i++) {
		struct layer *l = s->layers[i];

		n->layers[i].n = l->ops->stats
					 ? l->ops->stats(l, n->layers[i].stats)
					 : 0;
	}
	server_unlock(s);
}

static const struct layer_stat *find_stat(const struct snapshot *n, size_t i,
					  const char *name)
{
	for (size_t k = 0; k < n->layers[i].n; k++)
		if (!strcmp(n->layers[i].stats[k].name, name))
			return &n->layers[i].stats[k];
	return NULL;
}

static void add_sums(json_t *j, const struct server *s,
		     const struct snapshot *n)
{
	for (size_t k = 0; k < ARRAY_SIZE(sums); k++) {
		uint64_t sum = 0;

		for (size_t i = 0; i < s->n_layers; i++) {
			const struct layer_stat *x = find_stat(n, i, sums[k]);

			sum += x ? x->value : 0;
		}
		json_add_integer(j, sums[k], sum);
	}
}

/* The policy of the uppermost cache. */
static const char *policy_of(const struct server *s, const struct snapshot *n)
{
	for (size_t i = 0; i < s->n_layers; i++) {
		const struct layer_stat *x = find_stat(n, i, "policy");

		if (x)
			return x->text;
	}
	return "none";
}

static json_t *part_json(const struct layer *l, const struct layer_stat *stats,
			 size_t n)
{
	json_t *part = json_pack("{s:s}", "layer", l->ops->plugin.name);

	for (size_t k = 0; part && k < n; k++) {
		const struct layer_stat *x = &stats[k];

		json_object_set_new(
			part, x->name,
			x->text ? json_string(x->text)
				: json_integer((json_int_t)x->value));
	}
	return part;
}

/* A part for each layer, from the top; some add to the mount's stats, too. */
static void add_layers(json_t *j, struct server *s, const struct snapshot *n)
{
	json_t *parts = json_array();

	for (size_t i = 0; i < s->n_layers; i++) {
		struct layer *l = s->layers[i];
		json_t *part = part_json(l, n->layers[i].stats, n->layers[i].n);

		if (part && l->ops->json)
			l->ops->json(l, j, part);
		json_array_append_new(parts, part);
	}
	json_object_set_new(j, "layers", parts);
}

static void add_counts(json_t *j, struct server *s, const struct snapshot *n,
		       const struct fetch_stats *f)
{
	const struct cache_counts *c = &n->now.reads;
	uint64_t objects =
		__atomic_load_n(&s->budget.objects, __ATOMIC_RELAXED);
	uint64_t answers =
		__atomic_load_n(&s->budget.answers, __ATOMIC_RELAXED);
	const struct {
		const char *name;
		uint64_t value;
	} counts[] = {
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
		{ "rejected", c->rejected },
		{ "coalesced", n->coalesced },
		{ "passthrough_opens", n->passed_through },
		{ "delivered_bytes",
		  __atomic_load_n(&s->delivered_bytes, __ATOMIC_RELAXED) },
		{ "backend_reads", n->now.backend_reads },
		{ "backend_bytes", n->now.backend_bytes },
		{ "writes", f->writes },
		{ "bytes_written", f->bytes_written },
		{ "syncs", f->syncs },
		{ "inflight", f->inflight },
		{ "files", s->c.tree->n_files },
		{ "file_bytes", s->c.tree->file_bytes },
		{ "further_names", s->c.tree->n_again },
		{ "epoch", s->n_marks - 1 },
	};

	add_sums(j, s, n);
	for (size_t i = 0; i < ARRAY_SIZE(counts); i++)
		json_add_integer(j, counts[i].name, counts[i].value);
	json_add_real(j, "hit_ratio", ratio(c->hits, c->misses));
	json_add_real(j, "byte_hit_ratio", ratio(c->hit_bytes, c->miss_bytes));
	/* bytes read by the device per byte that missed the cache */
	json_add_real(j, "read_amplification",
		      c->miss_bytes ? (double)n->now.backend_bytes /
					      (double)c->miss_bytes
				    : 0);
}

json_t *server_latency_json(const struct fetch_stats *f)
{
	return json_pack("{s:o, s:o, s:o}", "requested",
			 hist_json(&f->requested, NS_PER_US), "achieved",
			 hist_json(&f->achieved, NS_PER_US), "error",
			 hist_json(&f->error, NS_PER_US));
}

static json_t *alone_json(const struct fetch_stats *f)
{
	json_t *j = json_object();

	for (int op = 0; op < STORAGE_N_READING; op++)
		json_add_real(j, storage_op_name(op),
			      (double)f->round_trip.alone_ns[op] / NS_PER_US);
	json_add_real(j, "mib", (double)f->round_trip.alone_mib_ns / NS_PER_US);
	json_add_real(j, "mib_slow",
		      (double)f->round_trip.slow_mib_ns / NS_PER_US);
	return j;
}

static json_t *links_json(const struct tree *t)
{
	const struct tree_links *l = &t->links;

	return json_pack("{s:I, s:I, s:I, s:I}", "followed",
			 (json_int_t)l->followed, "dangling",
			 (json_int_t)l->dangling, "loops", (json_int_t)l->loops,
			 "outside", (json_int_t)l->outside);
}

/* Under change_lock. */
static void add_state(json_t *j, struct server *s, const struct fetch_stats *f)
{
	const char *why = __atomic_load_n(&s->why_reply, __ATOMIC_ACQUIRE);
	struct snapshot n;

	take_snapshot(s, &n);
	json_object_set_new(j, "gpemu", json_version());
	json_object_set_new(j, "storage", json_bytes(s->storage_name));
	json_add_integer(j, "bandwidth_limit", s->bandwidth);
	json_add_text(j, "policy", policy_of(s, &n));
	json_add_text(j, "cache_bytes",
		      s->c.bytes_in_source ? "source" : "memory");
	json_add_text(j, "hit_path", why ? "reply" : "passthrough");
	if (why)
		json_add_text(j, "hit_path_reason", why);
	add_counts(j, s, &n, f);
	json_object_set_new(j, "links", links_json(s->c.tree));
	json_object_set_new(j, "epochs", epochs_json(s, &n.now));
	add_layers(j, s, &n);
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
	json_add_real(j, "round_trip_us",
		      (double)f->round_trip.busy_ns / NS_PER_US);
	json_object_set_new(j, "alone_round_trip_us", alone_json(f));
	json_object_set_new(j, "timer_error_us", tick_error_json(s->c.tick));
	json_add_real(j, "time_scale", tick_scale(s->c.tick));
	json_add_real(j, "writable_scale",
		      s->c.writable_scale > 0 ? s->c.writable_scale : 1);
	json_object_set_new(j, "latency_us", server_latency_json(f));
	if (s->c.source->stats)
		json_object_set_new(j, "source",
				    s->c.source->stats(s->c.source_state));
	free(f);
	return j;
}

/* SPDX-License-Identifier: MIT */
#include "loader/sim/sim_mounts.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/counts.h"
#include "common/json.h"
#include "common/pool.h"
#include "common/thread.h"
#include "common/util.h"
#include "common/word.h"
#include "emu/node/profile_node.h"
#include "fs/device/calibrate.h"
#include "fs/server/object.h"
#include "loader/order/order.h"
#include "loader/sim/sim_read.h"
#include "loader/sim/sim_own.h"

int sim_caches_parse(const char *word, enum sim_caches *ret, struct err *err)
{
	static const char *const words[] = {
		[SIM_CACHES_PRIVATE] = "private",
		[SIM_CACHES_PARTITIONED] = "partitioned",
	};

	return WORD_INTO(words, "--caches", word, ret, err);
}

/* --- life ----------------------------------------------------------------- */

static int load_storage(struct sim_mounts *m, struct err *err)
{
	int r = storage_profile_load(m->c.fs->storage, &m->storage, err);

	for (size_t k = 0; r == 0 && k < m->tiers.n; k++)
		if (m->tiers.v[k].storage)
			r = storage_profile_load(m->tiers.v[k].storage,
						 &m->tier_storage[k], err);
	return r;
}

static const struct policy_ops *policy_of(const struct sim_mounts *m, size_t k)
{
	return tier_policy_ops(&m->tiers.v[k].policies[0]);
}

static uint64_t tier_bytes(const struct sim_mounts *m, size_t k)
{
	return policy_of(m, k)->bypass
		       ? 0
		       : units_capacity_bytes(&m->tiers.v[k].sizes[0],
					      m->c.tree->file_bytes);
}

static bool allowed(void *ctx, uint64_t key)
{
	const struct own_tier *t = ctx;
	const uint64_t *kept = t->kept ? t->kept : t->own->tier[0].kept;

	return place_has(t->own->all->place, kept, key);
}

static int new_caches(struct own *o, struct err *err)
{
	struct sim_mounts *m = o->all;
	struct policy_params p = { .seed = m->c.seed,
				   .file_bytes = m->sizes,
				   .n_files = m->c.tree->n_files,
				   .max_object_bytes = OBJECT_EXTENT,
				   .count_metadata = m->c.fs->cache_metadata,
				   .overhead_bytes = OBJECT_OVERHEAD };
	int r = 0;

	p.importance = importance_of;
	p.importance_ctx = &m->importance;
	p.label = tree_label_of;
	p.label_ctx = m->c.tree;
	p.n_labels = tree_labels(m->c.tree);
	p.allowed = m->place ? allowed : NULL;
	o->caches.admit = fs_config_admit(m->c.fs);
	for (size_t k = 0; r == 0 && k < m->tiers.n; k++) {
		const struct tier_policy *policy = &m->tiers.v[k].policies[0];

		o->tier[k].own = o;
		p.allowed_ctx = &o->tier[k];
		p.capacity_bytes = m->tier_bytes[k];
		p.options = policy->choice.options;
		r = cache_new(tier_policy_ops(policy), &p, NULL, NULL,
			      &o->caches.c[k], err);
		o->caches.n += r == 0;
		/* streams as in fs/layer/layer_cache.c */
		if (r == 0 && m->tier_storage[k])
			r = device_new(m->tier_storage[k], m->c.seed + k + 1,
				       &o->tier[k].device);
	}
	return r < 0 ? err_set(err, r, "cache: %s", strerror(-r)) : 0;
}

static int new_shards(struct own *o)
{
	const struct sim_mounts *m = o->all;

	if (!m->c.n_shards)
		return 0;
	o->shard = calloc(m->c.n_shards, sizeof(*o->shard));
	o->flight = calloc(1 << OWN_FLIGHTS_LOG2, sizeof(*o->flight));
	for (uint32_t i = 0; o->shard && i < m->c.n_shards; i++) {
		uint64_t bytes = m->c.tree->nodes[m->c.shard[i]].bytes;

		o->shard[i].seen = calloc(visit_words(bytes), sizeof(uint64_t));
		if (!o->shard[i].seen)
			return -ENOMEM;
	}
	return o->shard && o->flight ? 0 : -ENOMEM;
}

static void free_shards(struct own *o)
{
	for (uint32_t i = 0; o->shard && i < o->all->c.n_shards; i++)
		free(o->shard[i].seen);
	free(o->shard);
	free(o->flight);
}

static int new_own(struct sim_mounts *m, uint32_t node,
		   const struct node_profile *nic, struct err *err)
{
	struct own *o = &m->own[node];
	int r = new_caches(o, err);

	if (r < 0)
		return r;
	o->nic = nic_new();
	if (!o->nic)
		return err_set(err, -ENOMEM, "out of memory");
	nic_limit(o->nic, nic->nic.gb_per_s * 1e9, nic->nic.latency_ns);
	if (m->c.shared_storage && node)
		o->device = m->own[0].device;
	else
		r = device_new(m->storage, m->c.seed, &o->device);
	if (r == 0)
		r = new_shards(o);
	return r == 0 ? sim_ahead_init(o) : r;
}

/* --- a partitioned cache -------------------------------------------------- */

struct keep {
	struct sim_mounts *m;
	uint32_t *sizes;
};

static int keep_one(void *ctx, void *state, size_t i, struct err *err)
{
	const struct keep *k = ctx;
	uint64_t surplus;

	(void)state;
	(void)err;
	return place_keep(k->m->place, k->sizes, (uint32_t)i,
			  &k->m->own[i].tier[0].kept, &surplus);
}

static int divide(struct sim_mounts *m, struct err *err)
{
	const struct place_config c = { .tree = m->c.tree,
					.seed = m->c.seed,
					.n_nodes = m->c.nodes,
					.self = PLACE_NONE,
					.capacity_bytes = m->capacity_bytes,
					.extent_bytes = OBJECT_EXTENT };
	struct keep k = { .m = m };
	struct pool pool = { .n = m->c.nodes,
			     .threads = thread_cpus(),
			     .ctx = &k,
			     .work = keep_one };
	int r = place_new(&c, &m->place);

	/* else the future says what each node keeps */
	if (r == 0 && !m->c.fs->prefetch) {
		k.sizes = place_sizes(m->place);
		r = k.sizes ? pool_run(&pool, err) : -ENOMEM;
	}
	free(k.sizes);
	return r < 0 ? err_set(err, r, "partitioned cache: %s", strerror(-r))
		     : 0;
}

static int init_mounts(struct sim_mounts *m, struct err *err)
{
	_cleanup_(node_profile_free) struct node_profile nic = { 0 };
	int r = sim_fs_tiers(m->c.fs, &m->tiers, err);

	if (r == 0)
		r = load_storage(m, err);
	if (r == 0)
		r = m->c.fs->nic ? fs_config_nic(m->c.fs, &nic, err) : 0;
	if (r < 0)
		return r;
	m->sizes = tree_sizes(m->c.tree);
	m->own = calloc(m->c.nodes, sizeof(*m->own));
	if (!m->sizes || !m->own)
		return err_set(err, -ENOMEM, "out of memory");
	m->bypass = true;
	for (size_t k = 0; k < m->tiers.n; k++) {
		m->tier_bytes[k] = tier_bytes(m, k);
		m->capacity_bytes += m->tier_bytes[k];
		m->bypass = m->bypass && policy_of(m, k)->bypass;
	}
	m->bypass = m->bypass && !m->c.fs->prefetch;
	if (m->c.caches == SIM_CACHES_PARTITIONED && m->c.nodes > 1) {
		m->card_gb_per_s = nic.nic.gb_per_s;
		r = divide(m, err);
	}
	for (uint32_t i = 0; r == 0 && i < m->c.nodes; i++) {
		m->own[i].all = m;
		m->own[i].node = i;
		r = new_own(m, i, &nic, err);
	}
	return r;
}

int sim_mounts_new(const struct sim_mounts_config *c, struct sim_mounts **ret,
		   struct err *err)
{
	struct sim_mounts *m = calloc(1, sizeof(*m));

	*ret = m;
	if (!m)
		return err_set(err, -ENOMEM, "out of memory");
	m->c = *c;
	return init_mounts(m, err);
}

void sim_mounts_free(struct sim_mounts *m)
{
	if (!m)
		return;
	for (uint32_t i = 0; m->own && i < m->c.nodes; i++) {
		struct own *o = &m->own[i];

		cache_stack_fini(&o->caches);
		sim_ahead_fini(o);
		free_shards(o);
		nic_free(o->nic);
		for (size_t k = 0; k < TIERS_MAX; k++) {
			device_free(o->tier[k].device);
			free(o->tier[k].kept);
		}
		if (i == 0 || !m->c.shared_storage)
			device_free(o->device);
	}
	for (size_t k = 0; k < TIERS_MAX; k++)
		storage_profile_free(m->tier_storage[k]);
	storage_profile_free(m->storage);
	tiers_fini(&m->tiers);
	place_free(m->place);
	importance_fini(&m->importance);
	free(m->sizes);
	free(m->own);
	free(m);
}

uint64_t sim_mounts_change(struct sim_mounts *m, uint32_t node,
			   enum storage_op op, uint64_t object, uint64_t offset,
			   uint64_t bytes, uint64_t now)
{
	struct own *o = &m->own[node];

	o->counts.writes += op == STORAGE_WRITE;
	o->counts.bytes_written += bytes;
	o->counts.syncs += op == STORAGE_SYNC;
	return device_schedule(o->device, op, object, offset, bytes, now);
}

int sim_mounts_read_back(const struct sim_mounts *m, uint64_t bytes,
			 uint64_t *ret_ns)
{
	uint32_t readers = m->c.shared_storage ? m->c.nodes : 1;
	struct device *d;
	uint64_t now = 0, end;
	int r = device_new(m->storage, m->c.seed, &d);

	if (r < 0)
		return r;
	for (uint64_t at = 0; at < bytes; at += CALIBRATE_BYTES, now = end) {
		end = now;
		for (uint32_t i = 0; i < readers; i++) {
			uint64_t n = MIN(bytes - at, CALIBRATE_BYTES);
			uint64_t read =
				device_schedule(d, STORAGE_READ, i, at, n, now);

			end = MAX(end, read);
		}
	}
	device_free(d);
	*ret_ns = now;
	return 0;
}

int sim_mounts_owners(const struct sim_mounts *m, const uint32_t *file,
		      size_t n, uint32_t **ret)
{
	*ret = NULL;
	if (!m->place)
		return 0;
	*ret = calloc(n, sizeof(**ret));
	for (size_t i = 0; *ret && i < n; i++) {
		uint32_t owner = place_owner(m->place, object_key(file[i], 0));

		(*ret)[i] = owner == PLACE_NONE ? ORDER_NOBODY : owner;
	}
	return *ret ? 0 : -ENOMEM;
}

int sim_mounts_weigh(struct sim_mounts *m, const uint32_t *file,
		     const float *importance, size_t n)
{
	if (importance_init(&m->importance, m->c.tree->n_nodes) < 0)
		return -ENOMEM;
	for (size_t i = 0; i < n; i++)
		m->importance.v[file[i]] = importance[i];
	return 0;
}

/* --- numbers -------------------------------------------------------------- */

struct sim_counts sim_mounts_take_counts(struct sim_mounts *m, uint32_t node)
{
	struct sim_counts n = m->own[node].counts;

	m->own[node].counts = (struct sim_counts){ 0 };
	memcpy(n.ahead, m->own[node].ahead.counts, sizeof(n.ahead));
	memset(m->own[node].ahead.counts, 0, sizeof(n.ahead));
	m->own[node].epoch++;
	return n;
}

void sim_counts_add(struct sim_counts *sum, const struct sim_counts *n)
{
	counts_add(sum, n, sizeof(*sum));
}

static double ratio(uint64_t part, uint64_t rest)
{
	return part + rest ? (double)part / (double)(part + rest) : 0;
}

json_t *sim_counts_json(const struct sim_counts *n)
{
	json_t *ahead = json_object();

	for (int i = 0; i < AHEAD_COUNTS; i++)
		json_add_integer(ahead, ahead_names[i], n->ahead[i]);
	return json_pack(
		"{s:I, s:I, s:f, s:I, s:I, s:f, s:I, s:I, "
		"s:I, s:I, s:I, s:{s:I, s:I}, s:o}",
		"hits", (json_int_t)n->hits, "misses", (json_int_t)n->misses,
		"hit_ratio", ratio(n->hits, n->misses), "hit_bytes",
		(json_int_t)n->hit_bytes, "miss_bytes",
		(json_int_t)n->miss_bytes, "byte_hit_ratio",
		ratio(n->hit_bytes, n->miss_bytes), "backend_reads",
		(json_int_t)n->backend_reads, "backend_bytes",
		(json_int_t)n->backend_bytes, "writes", (json_int_t)n->writes,
		"bytes_written", (json_int_t)n->bytes_written, "syncs",
		(json_int_t)n->syncs, "peer", "hits", (json_int_t)n->peer_hits,
		"hit_bytes", (json_int_t)n->peer_bytes, "prefetch", ahead);
}

double sim_mounts_card(const struct sim_mounts *m)
{
	return m->card_gb_per_s;
}

struct nic *sim_mounts_nic(const struct sim_mounts *m, uint32_t node)
{
	return m->own[node].nic;
}

json_t *sim_mounts_json(const struct sim_mounts *m)
{
	return json_pack("{s:s, s:s, s:o, s:I, s:I, s:s, s:b}", "kind",
			 "SIMULATED", "storage", m->c.fs->storage, "config",
			 sim_fs_json(m->c.fs), "capacity_bytes",
			 (json_int_t)m->capacity_bytes, "mounts",
			 (json_int_t)m->c.nodes, "caches",
			 m->place ? "partitioned" : "private", "shared_storage",
			 m->c.shared_storage);
}

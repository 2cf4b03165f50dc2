/* SPDX-License-Identifier: MIT */
/*
 * Each policy against a second implementation (policy_models.c), request by
 * request, and against known results on long traces.
 */
#include "tests/unit/test.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/conf/plugin_choice.h"
#include "common/rng.h"
#include "common/util.h"
#include "fs/cache/cache.h"
#include "tests/contract/policy_models.h"

/* --- side by side --------------------------------------------------------- */

static struct cache *make(const char *policy, uint64_t capacity,
			  const uint64_t *sizes, size_t n)
{
	_cleanup_(plugin_choice_fini) struct plugin_choice choice = { 0 };
	struct err err = { 0 };
	struct policy_params params = { .capacity_bytes = capacity,
					.seed = 1,
					.file_bytes = sizes,
					.n_files = n,
					.knows_future = true };
	struct cache *c;

	if (plugin_choose(policy_table, "policy", policy, &choice, &err) < 0)
		fail_msg("%s", err.text);
	params.options = choice.options;
	assert_int_equal(cache_new(container_of(choice.plugin,
						const struct policy_ops,
						plugin),
				   &params, NULL, NULL, &c, &err),
			 0);
	return c;
}

static bool ask(struct cache *c, uint64_t key, uint64_t bytes, uint64_t next)
{
	struct cache_object o = { .key = key,
				  .bytes = bytes,
				  .file_bytes = bytes,
				  .next_use = next };
	struct cache_entry *e;

	return cache_access(c, &o, &e) == CACHE_HIT;
}

/* Some keys often, most rarely, now and then a scan. */
static int draw(struct rng *r, int n_keys, int *scan)
{
	double u = rng_double(r);

	if (*scan > 0)
		return (*scan)-- % n_keys;
	if (rng_below(r, 200) == 0)
		*scan = n_keys / 2;
	return (int)(u * u * u * n_keys);
}

static void compare(const struct model_policy *o, int cap, int n_keys,
		    uint64_t seed)
{
	struct cache *c = make(o->name, (uint64_t)cap, (uint64_t[]){ 1 }, 1);
	struct model *m = calloc(1, sizeof(*m));
	struct rng r = rng_stream(seed, o->name, (uint64_t)cap);
	int scan = 0, hits = 0;

	assert_non_null(m);
	m->cap = cap;
	for (int i = 0; i < n_keys; i++)
		m->size[i] = o->sized ? 1 + (int)rng_below(&r, 9) : 1;
	for (int i = 0; i < 4000; i++) {
		int key = draw(&r, n_keys, &scan);
		bool want = o->ask(m, key);

		hits += want;
		if (ask(c, (uint64_t)key, (uint64_t)m->size[key], 0) != want)
			fail_msg("%s, capacity %d, seed %d, request %d: key %d "
				 "should %shave been a hit",
				 o->name, cap, (int)seed, i, key,
				 want ? "" : "not ");
	}
	assert_true(hits > 0);
	free(m);
	cache_free(c);
}

static void policies_equal_their_models(void **state)
{
	static const int caps[] = { 1, 2, 3, 7, 10, 15, 40, 130 };

	(void)state;
	for (const struct model_policy *o = model_policies; o->name; o++)
		for (size_t k = 0; k < ARRAY_SIZE(caps); k++)
			for (uint64_t seed = 1; seed <= 3; seed++)
				compare(o, caps[k] * (o->sized ? 5 : 1),
					3 * caps[k] + 1, seed);
}

/* --- options -------------------------------------------------------------- */

/* Of 4000 requests, those that one policy hits and the other misses. */
static int differences(const char *a, const char *b, int cap)
{
	uint64_t sizes[] = { 1 };
	struct cache *x = make(a, (uint64_t)cap, sizes, 1);
	struct cache *y = make(b, (uint64_t)cap, sizes, 1);
	struct rng r = rng_stream(1, "options", (uint64_t)cap);
	int scan = 0, n = 0;

	for (int i = 0; i < 4000; i++) {
		uint64_t key = (uint64_t)draw(&r, 3 * cap, &scan);

		n += ask(x, key, 1, 0) != ask(y, key, 1, 0);
	}
	cache_free(x);
	cache_free(y);
	return n;
}

/* Extreme values of an option make one policy equal another. */
static void options_lead_from_one_policy_to_another(void **state)
{
	static const struct {
		const char *with, *is, *usual;
	} pairs[] = {
		{ "slru:protected=0", "lru", "slru" },
		{ "tinylfu:window=1", "lru", "tinylfu" },
		{ "s3fifo:uses=3,promote=2,small=0.1", "s3fifo",
		  "s3fifo:small=0.6" },
		{ "2q:ratio=1", "2q", "2q:ratio=9" },
		{ "tinylfu:sample=10", "tinylfu", "tinylfu:window=0.5" },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(pairs); i++) {
		assert_int_equal(differences(pairs[i].with, pairs[i].is, 40),
				 0);
		assert_true(differences(pairs[i].with, pairs[i].usual, 40) > 0);
	}
}

/* --- the optimum ---------------------------------------------------------- */

enum { SHORT = 16, FEW = 6, SETS = 1 << FEW };

/* The most hits that any cache can have: all sets of keys it could hold. */
static int most_hits(const int *keys, int cap)
{
	int best[SETS], next[SETS], ret = 0;

	for (int s = 0; s < SETS; s++)
		best[s] = s ? -1 : 0;
	for (int t = 0; t < SHORT; t++) {
		memset(next, -1, sizeof(next));
		for (int s = 0; s < SETS; s++) {
			int bit = 1 << keys[t], got = best[s] + !!(s & bit);

			if (best[s] < 0)
				continue;
			/* stay, or hold any part of it and the new one */
			next[s] = MAX(next[s], got);
			for (int sub = s; sub; sub = (sub - 1) & s)
				if (__builtin_popcount(sub | bit) <= cap)
					next[sub | bit] =
						MAX(next[sub | bit], got);
			next[bit] = MAX(next[bit], got);
		}
		memcpy(best, next, sizeof(best));
	}
	for (int s = 0; s < SETS; s++)
		ret = MAX(ret, best[s]);
	return ret;
}

static int hits_of(const char *policy, const int *keys, int cap)
{
	struct cache *c = make(policy, (uint64_t)cap, (uint64_t[]){ 1 }, 1);
	int hits = 0;

	for (int i = 0; i < SHORT; i++) {
		uint64_t next = POLICY_NEVER;

		for (int j = SHORT - 1; j > i; j--)
			if (keys[j] == keys[i])
				next = (uint64_t)j;
		hits += ask(c, (uint64_t)keys[i], 1, next);
	}
	cache_free(c);
	return hits;
}

static void belady_is_the_optimum_and_nobody_beats_it(void **state)
{
	struct rng r = rng_stream(1, "short", 0);
	int keys[SHORT];

	(void)state;
	for (int trace = 0; trace < 200; trace++) {
		int cap = 1 + trace % 4, most;

		for (int i = 0; i < SHORT; i++)
			keys[i] = (int)rng_below(&r, FEW);
		most = most_hits(keys, cap);
		assert_int_equal(hits_of("belady", keys, cap), most);
		/* one size, few entries: its sample is all of them */
		assert_int_equal(hits_of("belady_size", keys, cap), most);
		for (size_t p = 0; policy_table[p]; p++)
			assert_true(hits_of(policy_table[p]->name, keys, cap) <=
				    most);
	}
}

static void offline_policies_need_the_future(void **state)
{
	struct policy_params params = { .capacity_bytes = 10 };
	int refused = 0;

	(void)state;
	for (size_t p = 0; policy_table[p]; p++) {
		const struct policy_ops *ops = container_of(
			policy_table[p], const struct policy_ops, plugin);
		struct err err = { 0 };
		struct cache *c = NULL;
		int r = cache_new(ops, &params, NULL, NULL, &c, &err);

		assert_int_equal(r < 0, ops->offline);
		if (r < 0)
			assert_non_null(strstr(
				err.text, "needs to know future accesses"));
		refused += r < 0;
		cache_free(c);
	}
	assert_int_equal(refused, 2);
}

/* --- importance ----------------------------------------------------------- */

enum { SCORED = 60 };

/* Of each key, and when it was set or the key entered. */
struct scored {
	double score[SCORED];
	int since[SCORED]; /* 0: not cached */
	int now, used;
};

static double score(const void *ctx, uint64_t key)
{
	return ((const double *)ctx)[key];
}

static struct cache *make_scored(const char *policy, uint64_t capacity,
				 double *scores)
{
	const struct plugin *p =
		plugin_find(policy_table, "policy", policy, NULL);
	struct policy_params params = { .capacity_bytes = capacity,
					.importance = score,
					.importance_ctx = scores };
	struct err err = { 0 };
	struct cache *c;

	assert_int_equal(
		cache_new(container_of(p, const struct policy_ops, plugin),
			  &params, NULL, NULL, &c, &err),
		0);
	return c;
}

static int bytes_of(int key)
{
	return 1 + key % 4;
}

/* The least important that is cached, of equals the first; -1: none is. */
static int least(const struct scored *m)
{
	int ret = -1;

	for (int k = 0; k < SCORED; k++)
		if (m->since[k] && (ret < 0 || m->score[k] < m->score[ret] ||
				    (m->score[k] == m->score[ret] &&
				     m->since[k] < m->since[ret])))
			ret = k;
	return ret;
}

static bool ask_scored(struct scored *m, int key, int cap)
{
	int out = least(m);

	if (m->since[key])
		return true;
	if (m->used + bytes_of(key) > cap &&
	    (out < 0 || m->score[key] <= m->score[out]))
		return false;
	for (; m->used + bytes_of(key) > cap; out = least(m)) {
		m->used -= bytes_of(out);
		m->since[out] = 0;
	}
	m->used += bytes_of(key);
	m->since[key] = ++m->now;
	return false;
}

/* Scores change all the time, of what is cached and of what is not. */
static void shade_keeps_the_most_important(void **state)
{
	(void)state;
	for (int cap = 4; cap <= 100; cap += 8) {
		struct scored m = { 0 };
		struct cache *c = make_scored("shade", (uint64_t)cap, m.score);
		struct rng r = rng_stream(7, "scores", (uint64_t)cap);

		for (int i = 0; i < 5000; i++) {
			int key = (int)rng_below(&r, SCORED);

			if (i % 3 == 0) {
				m.score[key] = (double)rng_below(&r, 20);
				m.since[key] = m.since[key] ? ++m.now : 0;
				cache_reweigh(c, (uint64_t)key);
			} else {
				bool want = ask_scored(&m, key, cap);

				assert_int_equal(ask(c, (uint64_t)key,
						     (uint64_t)bytes_of(key),
						     0),
						 want);
			}
			assert_int_equal(cache_used(c), m.used);
		}
		cache_free(c);
	}
}

/* Of one million draws in proportion to weights 1/1, 1/2, 1/3 ... */
static double hits_of_weighted_draws(const char *policy)
{
	enum { KEYS = 1000, DRAWS = 1000000 };
	static double weight[KEYS], sum[KEYS];
	struct cache *c = make_scored(policy, KEYS / 5, weight);
	struct rng r = rng_stream(8, "draws", 0);
	int hits = 0;

	for (int i = 0; i < KEYS; i++) {
		weight[i] = 1. / (i + 1);
		sum[i] = weight[i] + (i ? sum[i - 1] : 0);
	}
	for (int i = 0; i < DRAWS; i++) {
		double u = rng_double(&r) * sum[KEYS - 1];
		uint64_t key = 0;

		while (sum[key] < u)
			key++;
		hits += ask(c, key, 1, 0);
	}
	cache_free(c);
	return (double)hits / DRAWS;
}

/* The hits of samples that are drawn by their importance are the share that the
 * cached fifth, the most important, has of all importance: H(200)/H(1000).
 * Those of LRU are fewer: 0.697 by the approximation of Che, Tung and Wang
 * ("Hierarchical Web caching systems", IEEE JSAC 20(7), 2002). */
static void importance_predicts_the_hits_of_weighted_draws(void **state)
{
	double h200 = 0, h1000 = 0;

	(void)state;
	for (int i = 1; i <= 1000; i++) {
		h1000 += 1. / i;
		h200 += i <= 200 ? 1. / i : 0;
	}
	assert_true(fabs(hits_of_weighted_draws("shade") - h200 / h1000) <
		    .005);
	assert_true(fabs(hits_of_weighted_draws("lru") - .697) < .005);
}

/* --- classes -------------------------------------------------------------- */

enum { N_CLASSES = 8 };

/* Objects of a byte: 512 of class 0, 256 of class 1 ... 4 of class 7. */
static uint64_t class_size(uint32_t k)
{
	return 512 >> k;
}

static uint64_t class_first(uint32_t k)
{
	return 1024 - (1024 >> k);
}

static uint32_t label(const void *ctx, uint64_t key)
{
	uint32_t k = 0;

	assert_null(ctx);
	while (key >= class_first(k + 1))
		k++;
	return k;
}

/* How much of each class is cached after many draws, each class alike. */
static void draw_classes(const char *policy, uint64_t capacity,
			 uint64_t cached[N_CLASSES], double *hit_ratio)
{
	const struct plugin *p =
		plugin_find(policy_table, "policy", policy, NULL);
	struct policy_params params = { .capacity_bytes = capacity,
					.label = label,
					.n_labels = N_CLASSES + 1 };
	struct rng r = rng_stream(9, "classes", 0);
	struct err err = { 0 };
	struct cache *c;
	int hits = 0;

	assert_int_equal(
		cache_new(container_of(p, const struct policy_ops, plugin),
			  &params, NULL, NULL, &c, &err),
		0);
	for (int i = 0; i < 400000; i++) {
		uint32_t k = (uint32_t)rng_below(&r, N_CLASSES);
		uint64_t key = class_first(k) + rng_below(&r, class_size(k));

		hits += ask(c, key, 1, 0) && i >= 200000;
	}
	*hit_ratio = hits / 200000.;
	memset(cached, 0, N_CLASSES * sizeof(*cached));
	for (uint64_t key = 0; key < class_first(N_CLASSES); key++)
		cached[label(NULL, key)] += cache_peek(c, key) != NULL;
	cache_free(c);
}

/* 8 classes of 512 to 4 objects: of 300 bytes, 60 are those of the four
 * smallest, and each of the four others has a fourth of the rest. */
static void balanced_shares_among_classes(void **state)
{
	uint64_t cached[N_CLASSES], most = 0, sum = 0;
	double hits, lru, ideal = 0;

	(void)state;
	draw_classes("balanced", 300, cached, &hits);
	for (int k = 0; k < N_CLASSES; k++) {
		sum += cached[k];
		most = MAX(most, cached[k]);
	}
	assert_int_equal(sum, 300);
	for (uint32_t k = 0; k < N_CLASSES; k++) {
		/* all of it, or as much as the largest but for one */
		assert_true(cached[k] == class_size(k) ||
			    cached[k] + 1 >= most);
		ideal += (double)cached[k] / (double)class_size(k) / N_CLASSES;
	}
	/* min(n, w) / n with w = 60 */
	assert_true(fabs(ideal - (60. / 512 + 60. / 256 + 60. / 128 + 60. / 64 +
				  4) / 8) < .001);
	assert_true(fabs(hits - ideal) < .004);
	draw_classes("lru", 300, cached, &lru);
	assert_true(lru < hits - .01);
}

/* --- long traces ---------------------------------------------------------- */

enum { N = 10000, EPOCHS = 6 };

/* Object hits of each epoch of random passes, or of independent draws. */
static void epochs_of(const char *policy, uint64_t cap, bool passes,
		      uint64_t hits[EPOCHS])
{
	static uint32_t order[EPOCHS * N];
	static uint64_t next[EPOCHS * N], last[N];
	struct cache *c = make(policy, cap, (uint64_t[]){ 1 }, 1);
	struct rng r = rng_stream(5, "epochs", 0);

	for (uint32_t i = 0; i < EPOCHS * N; i++)
		order[i] = passes ? i % N : (uint32_t)rng_below(&r, N);
	for (int e = 0; passes && e < EPOCHS; e++)
		rng_shuffle_u32(&r, order + (size_t)e * N, N);
	memset(last, 0xff, sizeof(last));
	for (uint64_t i = EPOCHS * N; i-- > 0;) {
		next[i] = last[order[i]];
		last[order[i]] = i;
	}
	memset(hits, 0, EPOCHS * sizeof(*hits));
	for (uint64_t i = 0; i < EPOCHS * N; i++)
		hits[i / N] += ask(c, order[i], 1, next[i]);
	cache_free(c);
}

static double mean_of(const uint64_t hits[EPOCHS])
{
	double sum = 0;

	for (int e = 2; e < EPOCHS; e++)
		sum += (double)hits[e];
	return sum / (EPOCHS - 2) / N;
}

/* One request for each object an epoch: a hit was cached at its start. */
static void no_policy_hits_more_than_the_cached_share(void **state)
{
	uint64_t hits[EPOCHS];

	(void)state;
	for (size_t p = 0; policy_table[p]; p++) {
		epochs_of(policy_table[p]->name, 3500, true, hits);
		assert_int_equal(hits[0], 0);
		for (int e = 1; e < EPOCHS; e++)
			assert_true(hits[e] <= 3500);
	}
	epochs_of("belady", 3500, true, hits);
	for (int e = 1; e < EPOCHS - 1; e++)
		assert_int_equal(hits[e], 3500);
}

static void random_replacement_matches_its_closed_form(void **state)
{
	static const double shares[] = { .2, .35, .65, .9 };
	uint64_t hits[EPOCHS];

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(shares); i++) {
		double c = shares[i];
		double h = 1 - c * log(c + (1 - c) * exp(1 / c));

		epochs_of("random", (uint64_t)(c * N), true, hits);
		if (fabs(mean_of(hits) - h) > .008)
			fail_msg("at %.2f: %.4f, not %.4f", c, mean_of(hits),
				 h);
	}
}

/* Independent uniform requests: nothing to learn, all policies hit the cached
 * share. */
static void independent_requests_hit_the_cached_share(void **state)
{
	static const char *const policies[] = { "lru",	 "fifo",  "random",
						"minio", "clock", "sieve",
						"slru" };
	uint64_t hits[EPOCHS];

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(policies); i++) {
		epochs_of(policies[i], 3500, false, hits);
		if (fabs(mean_of(hits) - .35) > .01)
			fail_msg("%s: %.4f", policies[i], mean_of(hits));
	}
	epochs_of("belady", 3500, false, hits);
	assert_true(mean_of(hits) > .5);
}

static int by_size(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

/* From the second pass on, the two kinds of small-file-first are equal. */
static void sff_online_learns_what_sff_knows(void **state)
{
	static uint64_t sizes[N], sorted[N];
	struct rng r = rng_stream(6, "sizes", 0);
	uint64_t total = 0, hits[2] = { 0 };

	(void)state;
	for (int i = 0; i < N; i++)
		total += sizes[i] = (uint64_t)(1e5 * exp(.6 * rng_normal(&r)));
	memcpy(sorted, sizes, sizeof(sizes));
	qsort(sorted, N, sizeof(*sorted), by_size);
	for (int k = 0; k < 2; k++) {
		struct cache *c = make(k ? "sff_online" : "sff",
				       total / 100 * 35, sorted, N);

		for (int i = 0; i < 2 * N; i++)
			hits[k] += ask(c, (uint64_t)(i % N), sizes[i % N], 0);
		cache_free(c);
	}
	/* Phi(Phi^-1(.35) + .6) = .585 of the files, for lognormal sizes */
	assert_true(fabs((double)hits[0] / N - .585) < .01);
	assert_true(fabs((double)hits[1] - (double)hits[0]) < .002 * N);
}

/* Entries, ghosts and all: with metadata counted, fewer objects fit. */
static void metadata_counts_when_asked_for(void **state)
{
	(void)state;
	for (size_t p = 0; policy_table[p]; p++) {
		const struct policy_ops *ops = container_of(
			policy_table[p], const struct policy_ops, plugin);
		uint64_t size = 1000;
		struct policy_params params = { .capacity_bytes = 4000000,
						.file_bytes = &size,
						.n_files = 1,
						.knows_future = true,
						.count_metadata = true };
		struct err err = { 0 };
		struct cache *c;

		if (ops->bypass)
			continue;
		assert_int_equal(cache_new(ops, &params, NULL, NULL, &c, &err),
				 0);
		for (uint64_t i = 0; i < 20000; i++)
			ask(c, i % 5000, size, i + 5000);
		assert_true(cache_used(c) <= 4000000);
		assert_true(cache_objects(c) > 3000);
		assert_true(cache_objects(c) * size + cache_objects(c) * 48 <=
			    4000000);
		assert_true(cache_metadata_bytes(c) > cache_objects(c) * 48);
		cache_free(c);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(policies_equal_their_models),
		cmocka_unit_test(options_lead_from_one_policy_to_another),
		cmocka_unit_test(belady_is_the_optimum_and_nobody_beats_it),
		cmocka_unit_test(offline_policies_need_the_future),
		cmocka_unit_test(shade_keeps_the_most_important),
		cmocka_unit_test(
			importance_predicts_the_hits_of_weighted_draws),
		cmocka_unit_test(balanced_shares_among_classes),
		cmocka_unit_test(no_policy_hits_more_than_the_cached_share),
		cmocka_unit_test(random_replacement_matches_its_closed_form),
		cmocka_unit_test(independent_requests_hit_the_cached_share),
		cmocka_unit_test(sff_online_learns_what_sff_knows),
		cmocka_unit_test(metadata_counts_when_asked_for),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

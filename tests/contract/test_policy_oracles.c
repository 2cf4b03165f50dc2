/* SPDX-License-Identifier: MIT */
/*
 * Each policy against a second implementation, written here from its paper in
 * the plainest way (arrays, linear search, one object one unit), request by
 * request; and against what is known of it on long traces.
 */
#include "tests/unit/test.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/rng.h"
#include "common/util.h"
#include "fs/cache/cache.h"

enum { MAX_KEYS = 512 };

/* Keys in order; v[0] is the newest. */
struct seq {
	int v[MAX_KEYS], n;
};

struct model {
	int cap;
	struct seq a, b, ga, gb;
	int used[MAX_KEYS], count[MAX_KEYS], size[MAX_KEYS], ring[MAX_KEYS];
	long stamp[MAX_KEYS];
	double value[MAX_KEYS];
	double p, inflation;
	long now, age;
	int hand, n_counted;
};

static int find(const struct seq *s, int key)
{
	for (int i = 0; i < s->n; i++)
		if (s->v[i] == key)
			return i;
	return -1;
}

static bool has(const struct seq *s, int key)
{
	return find(s, key) >= 0;
}

static void push(struct seq *s, int key)
{
	memmove(s->v + 1, s->v, (size_t)s->n * sizeof(*s->v));
	s->v[0] = key;
	s->n++;
}

static void drop(struct seq *s, int key)
{
	int i = find(s, key);

	if (i < 0)
		return;
	s->n--;
	memmove(s->v + i, s->v + i + 1, (size_t)(s->n - i) * sizeof(*s->v));
}

static int pop(struct seq *s)
{
	return s->v[--s->n];
}

static bool mark(struct model *m, int key)
{
	m->used[key] = true;
	return true;
}

/* --- the models: one request, was it a hit? ------------------------------ */

static bool ask_fifo(struct model *m, int key)
{
	if (has(&m->a, key))
		return true;
	if (m->a.n == m->cap)
		pop(&m->a);
	push(&m->a, key);
	return false;
}

static bool ask_lru(struct model *m, int key)
{
	bool hit = has(&m->a, key);

	drop(&m->a, key);
	if (m->a.n == m->cap)
		pop(&m->a);
	push(&m->a, key);
	return hit;
}

static bool ask_minio(struct model *m, int key)
{
	if (has(&m->a, key))
		return true;
	if (m->a.n < m->cap)
		push(&m->a, key);
	return false;
}

/* The ring as a ring: frames, and a hand that goes round them. */
static bool ask_clock(struct model *m, int key)
{
	for (int i = 0; i < m->a.n; i++)
		if (m->ring[i] == key)
			return mark(m, key);
	if (m->a.n < m->cap) {
		m->ring[m->a.n++] = key;
		m->used[key] = false;
		return false;
	}
	while (m->used[m->ring[m->hand]]) {
		m->used[m->ring[m->hand]] = false;
		m->hand = (m->hand + 1) % m->cap;
	}
	m->ring[m->hand] = key;
	m->used[key] = false;
	m->hand = (m->hand + 1) % m->cap;
	return false;
}

/* The hand is a key, or -1. */
static bool ask_sieve(struct model *m, int key)
{
	int i;

	if (!m->now++)
		m->hand = -1;
	if (has(&m->a, key))
		return mark(m, key);
	if (m->a.n == m->cap) {
		i = m->hand < 0 ? m->a.n - 1 : find(&m->a, m->hand);
		while (m->used[m->a.v[i]]) {
			m->used[m->a.v[i]] = false;
			i = i > 0 ? i - 1 : m->a.n - 1;
		}
		m->hand = i > 0 ? m->a.v[i - 1] : -1;
		drop(&m->a, m->a.v[i]);
	}
	push(&m->a, key);
	m->used[key] = false;
	return false;
}

static bool ask_slru(struct model *m, int key)
{
	int protected = m->cap * 8 / 10;

	if (has(&m->a, key) || has(&m->b, key)) {
		drop(&m->a, key);
		drop(&m->b, key);
		push(&m->b, key);
		while (m->b.n > protected)
			push(&m->a, pop(&m->b));
		return true;
	}
	if (m->a.n + m->b.n == m->cap)
		pop(m->a.n ? &m->a : &m->b);
	push(&m->a, key);
	return false;
}

static bool ask_lfu(struct model *m, int key)
{
	bool hit = has(&m->a, key);
	int worst = 0;

	m->stamp[key] = m->now++;
	if (hit)
		return m->count[key]++, true;
	for (int i = 1; i < m->a.n; i++) {
		int x = m->a.v[i], w = m->a.v[worst];

		if (m->count[x] < m->count[w] ||
		    (m->count[x] == m->count[w] && m->stamp[x] < m->stamp[w]))
			worst = i;
	}
	if (m->a.n == m->cap)
		drop(&m->a, m->a.v[worst]);
	push(&m->a, key);
	m->count[key] = 1;
	return false;
}

static int seq_size(const struct model *m, const struct seq *s)
{
	int sum = 0;

	for (int i = 0; i < s->n; i++)
		sum += m->size[s->v[i]];
	return sum;
}

static bool ask_gdsf(struct model *m, int key)
{
	bool hit = has(&m->a, key);

	m->stamp[key] = m->now++;
	m->count[key] = hit ? m->count[key] + 1 : 1;
	while (!hit && m->size[key] <= m->cap &&
	       seq_size(m, &m->a) + m->size[key] > m->cap) {
		int w = m->a.v[0];

		for (int i = 1; i < m->a.n; i++) {
			int x = m->a.v[i];

			if (m->value[x] < m->value[w] ||
			    (m->value[x] == m->value[w] &&
			     m->stamp[x] < m->stamp[w]))
				w = x;
		}
		m->inflation = m->value[w];
		drop(&m->a, w);
	}
	m->value[key] =
		m->inflation + (double)m->count[key] / (double)m->size[key];
	if (!hit && m->size[key] <= m->cap)
		push(&m->a, key);
	return hit;
}

static void s3fifo_evict_main(struct model *m)
{
	for (;;) {
		int t = pop(&m->b);

		if (!m->count[t])
			return;
		m->count[t]--;
		push(&m->b, t);
	}
}

/* a: small, b: main, ga: ghosts */
static void s3fifo_evict(struct model *m)
{
	while (m->a.n && (m->a.n >= .1 * m->cap || !m->b.n)) {
		int t = pop(&m->a);

		if (m->count[t] <= 1) {
			push(&m->ga, t);
			if (m->ga.n > m->cap - (int)ceil(.1 * m->cap))
				pop(&m->ga);
			return;
		}
		m->count[t] = 0;
		push(&m->b, t);
		if (m->b.n > .9 * m->cap)
			break;
	}
	s3fifo_evict_main(m);
}

static bool ask_s3fifo(struct model *m, int key)
{
	bool ghost = has(&m->ga, key);

	if (has(&m->a, key) || has(&m->b, key)) {
		m->count[key] = MIN(m->count[key] + 1, 3);
		return true;
	}
	drop(&m->ga, key);
	if (m->a.n + m->b.n == m->cap)
		s3fifo_evict(m);
	push(ghost ? &m->b : &m->a, key);
	m->count[key] = 0;
	return false;
}

/* a: T1, b: T2, ga: B1, gb: B2; names and cases as in figure 4 */
static void arc_replace(struct model *m, bool in_b2)
{
	if (m->a.n && (m->a.n > m->p || (in_b2 && m->a.n == m->p)))
		push(&m->ga, pop(&m->a));
	else
		push(&m->gb, pop(&m->b));
}

static void arc_case_4(struct model *m)
{
	int l1 = m->a.n + m->ga.n, all = l1 + m->b.n + m->gb.n;

	if (l1 == m->cap) {
		if (m->a.n < m->cap) {
			pop(&m->ga);
			arc_replace(m, false);
		} else {
			pop(&m->a);
		}
	} else if (all >= m->cap) {
		if (all == 2 * m->cap)
			pop(&m->gb);
		arc_replace(m, false);
	}
}

static bool ask_arc(struct model *m, int key)
{
	bool in_b1 = has(&m->ga, key), in_b2 = has(&m->gb, key);
	double b1 = m->ga.n, b2 = m->gb.n;
	bool hit = has(&m->a, key) || has(&m->b, key);

	if (in_b1)
		m->p = fmin(m->p + (b1 >= b2 ? 1 : b2 / b1), m->cap);
	if (in_b2)
		m->p = fmax(m->p - (b2 >= b1 ? 1 : b1 / b2), 0);
	if (in_b1 || in_b2)
		arc_replace(m, in_b2);
	else if (!hit)
		arc_case_4(m);
	drop(&m->a, key);
	drop(&m->b, key);
	drop(&m->ga, key);
	drop(&m->gb, key);
	push(hit || in_b1 || in_b2 ? &m->b : &m->a, key);
	return hit;
}

/* a: inactive, b: active, ga: ever evicted, when in `stamp` */
static bool ask_twoq(struct model *m, int key)
{
	bool refault = false;

	if (has(&m->b, key))
		return true;
	if (has(&m->a, key)) {
		drop(&m->a, key);
		push(&m->b, key);
		m->age++;
		return true;
	}
	if (has(&m->ga, key)) {
		refault = m->age - m->stamp[key] <= m->b.n;
		drop(&m->ga, key);
	}
	if (m->a.n + m->b.n == m->cap) {
		int out;

		while (m->b.n > m->a.n)
			push(&m->a, pop(&m->b));
		out = pop(&m->a);
		m->stamp[out] = ++m->age;
		push(&m->ga, out);
	}
	push(refault ? &m->b : &m->a, key);
	m->age += refault;
	return false;
}

/* a: window, b: probation, ga: protected; counts are exact */
static void tinylfu_count(struct model *m, int key)
{
	m->count[key] = MIN(m->count[key] + 1, 15);
	if (++m->n_counted < 10 * MAX(m->cap, 16))
		return;
	m->n_counted /= 2;
	for (int i = 0; i < MAX_KEYS; i++)
		m->count[i] /= 2;
}

static void tinylfu_evict(struct model *m, int window)
{
	struct seq *from = m->b.n ? &m->b : &m->ga;

	if (!from->n) {
		pop(&m->a);
		return;
	}
	if (!m->a.n || m->a.n + 1 <= window) {
		pop(from);
		return;
	}
	int candidate = pop(&m->a), victim = from->v[from->n - 1];

	if (m->count[candidate] <= m->count[victim])
		return;
	pop(from);
	push(&m->b, candidate);
}

static bool ask_tinylfu(struct model *m, int key)
{
	int window = m->cap / 100;
	int protected = (int)(.8 * (m->cap - .01 * m->cap));

	tinylfu_count(m, key);
	if (has(&m->a, key)) {
		drop(&m->a, key);
		push(&m->a, key);
		return true;
	}
	if (has(&m->b, key) || has(&m->ga, key)) {
		drop(&m->b, key);
		drop(&m->ga, key);
		push(&m->ga, key);
		while (m->ga.n > protected)
			push(&m->b, pop(&m->ga));
		return true;
	}
	if (m->a.n + m->b.n + m->ga.n == m->cap)
		tinylfu_evict(m, window);
	push(&m->a, key);
	while (m->a.n > MAX(window, 1))
		push(&m->b, pop(&m->a));
	return false;
}

/* Keep what is smallest: a list sorted by size would do as well. */
static bool ask_sff_online(struct model *m, int key)
{
	int largest = -1;

	if (has(&m->a, key))
		return true;
	for (int i = 0; i < m->a.n; i++) {
		int x = m->a.v[i];

		/* v[] is by age: among equals the oldest, the last one */
		if (largest < 0 || m->size[x] >= m->size[largest])
			largest = x;
	}
	if (seq_size(m, &m->a) + m->size[key] > m->cap) {
		if (largest < 0 || m->size[key] >= m->size[largest])
			return false;
		drop(&m->a, largest);
	}
	push(&m->a, key);
	return false;
}

/* --- side by side --------------------------------------------------------- */

static struct cache *make(const char *policy, uint64_t capacity,
			  const uint64_t *sizes, size_t n)
{
	struct err err = { 0 };
	const struct plugin *p =
		plugin_find(policy_table, "policy", policy, &err);
	struct policy_params params = { .capacity_bytes = capacity,
					.seed = 1,
					.file_bytes = sizes,
					.n_files = n,
					.knows_future = true };
	struct cache *c;

	assert_non_null(p);
	assert_int_equal(
		cache_new(container_of(p, const struct policy_ops, plugin),
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

struct oracle {
	const char *policy;
	bool (*ask)(struct model *, int key);
	bool sized;
};

static void compare(const struct oracle *o, int cap, int n_keys, uint64_t seed)
{
	struct cache *c = make(o->policy, (uint64_t)cap, (uint64_t[]){ 1 }, 1);
	struct model *m = calloc(1, sizeof(*m));
	struct rng r = rng_stream(seed, o->policy, (uint64_t)cap);
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
				 o->policy, cap, (int)seed, i, key,
				 want ? "" : "not ");
	}
	assert_true(hits > 0);
	free(m);
	cache_free(c);
}

static void policies_equal_their_models(void **state)
{
	static const struct oracle oracles[] = {
		{ "fifo", ask_fifo },
		{ "lru", ask_lru },
		{ "minio", ask_minio },
		{ "clock", ask_clock },
		{ "sieve", ask_sieve },
		{ "slru", ask_slru },
		{ "lfu", ask_lfu },
		{ "gdsf", ask_gdsf, .sized = true },
		{ "s3fifo", ask_s3fifo },
		{ "arc", ask_arc },
		{ "twoq", ask_twoq },
		{ "tinylfu", ask_tinylfu },
		{ "sff_online", ask_sff_online, .sized = true },
	};
	static const int caps[] = { 1, 2, 3, 7, 10, 15, 40, 130 };

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(oracles); i++)
		for (size_t k = 0; k < ARRAY_SIZE(caps); k++)
			for (uint64_t seed = 1; seed <= 3; seed++) {
				int cap = caps[k] * (oracles[i].sized ? 5 : 1);

				compare(&oracles[i], cap, 3 * caps[k] + 1,
					seed);
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
			assert_non_null(strstr(err.text, "needs the future"));
		refused += r < 0;
		cache_free(c);
	}
	assert_int_equal(refused, 2);
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

/* Independent uniform requests: nothing to learn, all hit the share. */
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

/* From the second pass on the two kinds of small-file-first are one. */
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
		cmocka_unit_test(belady_is_the_optimum_and_nobody_beats_it),
		cmocka_unit_test(offline_policies_need_the_future),
		cmocka_unit_test(no_policy_hits_more_than_the_cached_share),
		cmocka_unit_test(random_replacement_matches_its_closed_form),
		cmocka_unit_test(independent_requests_hit_the_cached_share),
		cmocka_unit_test(sff_online_learns_what_sff_knows),
		cmocka_unit_test(metadata_counts_when_asked_for),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

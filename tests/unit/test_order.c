/* SPDX-License-Identifier: MIT */
/* The contract of every registered order, and the properties of each. */
#include "tests/unit/test.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/conf/plugin_choice.h"
#include "common/util.h"
#include "loader/order/order.h"
#include "loader/order/schedule.h"
#include "tests/contract/tested.h"

enum { N = 1009, N_GROUPS = 60, PAGE = 1000 };

static const struct plugin *const *tested;

static const struct order_ops *order(const char *name)
{
	const struct plugin *p = plugin_find(order_table, "order", name, NULL);

	assert_non_null(p);
	return container_of(p, struct order_ops, plugin);
}

/* Groups of all sizes, the first empty, their samples scattered; samples of
 * all sizes, some of none, one larger than a page. */
static struct order_input input(uint64_t seed, uint64_t epoch, size_t n)
{
	static uint32_t group[N];
	static uint64_t size[N];

	for (uint32_t i = 0; i < N; i++) {
		group[i] = 1 + (i % 7 ? i : i * i) % (N_GROUPS - 1);
		size[i] = i * 7919 % 400;
	}
	size[N / 2] = PAGE + 1;
	return (struct order_input){ .seed = seed,
				     .epoch = epoch,
				     .n = n,
				     .group = group,
				     .n_groups = N_GROUPS,
				     .size = size,
				     .batch = 4 };
}

static int compare_u32(const void *a, const void *b)
{
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

	return (x > y) - (x < y);
}

/* With options, where the order has them: NAME:`options`. */
static void fill_with(const char *name, const char *options,
		      const struct order_input *in, uint32_t *ret)
{
	_cleanup_(plugin_choice_fini) struct plugin_choice c = { 0 };
	struct order_input with = *in;
	struct err err = { 0 };
	char text[100];

	snprintf(text, sizeof(text), "%s:%s", name, options);
	if (plugin_choose(order_table, "order", text, &c, &err) < 0)
		fail_msg("%s", err.text);
	with.options = c.options;
	if (order(name)->fill(&with, ret, &err) < 0)
		fail_msg("%s: %s", text, err.text);
}

static void fill(const struct order_ops *o, const struct order_input *in,
		 uint32_t *ret)
{
	struct err err = { 0 };

	if (o->fill(in, ret, &err) < 0)
		fail_msg("%s: %s", o->plugin.name, err.text);
}

static void assert_permutation(const uint32_t *v, size_t n)
{
	_cleanup_free_ char *seen = calloc(n + 1, 1);

	for (size_t i = 0; i < n; i++) {
		assert_true(v[i] < n);
		assert_false(seen[v[i]]);
		seen[v[i]] = 1;
	}
}

/* A window, and pages that are smaller than the dataset. */
static const char *options_of(const char *name, uint32_t window, char text[64])
{
	bool pages = !strcmp(name, "quasi_random");

	if (!strcmp(name, "webdataset")) {
		snprintf(text, 64, "streams=%u", window % 65536 + 1);
		return text;
	}
	if (!pages && strcmp(name, "group"))
		return "";
	snprintf(text, 64, "window=%u%s", window, pages ? ",page=1000" : "");
	return text;
}

static bool repeats(const char *name)
{
	return order(name)->repeats;
}

static void each_sample_once_an_epoch(void **state)
{
	static const size_t sizes[] = { 1, 2, 500, N };
	static const uint32_t windows[] = { 0, 1, 3, N_GROUPS, UINT32_MAX };
	char text[64];
	uint32_t v[N];

	(void)state;
	for (size_t p = 0; tested[p]; p++)
		for (size_t k = 0; k < ARRAY_SIZE(sizes) * 3 * 2; k++) {
			size_t n = sizes[k / 6];
			struct order_input in = input(7, k % 3, n);

			if (k % 2)
				in.group = NULL;
			memset(v, 0xff, sizeof(v));
			fill_with(tested[p]->name,
				  options_of(tested[p]->name,
					     windows[k % ARRAY_SIZE(windows)],
					     text),
				  &in, v);
			if (!repeats(tested[p]->name))
				assert_permutation(v, n);
			for (size_t i = 0; i < n; i++)
				assert_true(v[i] < n);
			/* nothing is written behind the end */
			assert_true(n == N || v[n] == UINT32_MAX);
		}
}

static void the_same_seed_gives_the_same_order(void **state)
{
	struct order_input in = input(42, 3, N);
	uint32_t a[N], b[N];

	(void)state;
	for (size_t p = 0; tested[p]; p++) {
		const struct order_ops *o =
			container_of(tested[p], struct order_ops, plugin);

		fill(o, &in, a);
		fill(o, &in, b);
		assert_memory_equal(a, b, sizeof(a));
	}
}

static void random_orders_depend_on_seed_and_epoch(void **state)
{
	static const char *const names[] = { "shuffle",	 "torch",
					     "group",	 "quasi_random",
					     "weighted", "webdataset" };
	struct order_input one = input(42, 0, N), later = input(42, 1, N);
	struct order_input other = input(43, 0, N);
	uint32_t a[N], b[N];

	(void)state;
	for (size_t p = 0; p < ARRAY_SIZE(names); p++) {
		const struct order_ops *o = order(names[p]);
		size_t fixed = 0;

		fill(o, &one, a);
		fill(o, &later, b);
		assert_memory_not_equal(a, b, sizeof(a));
		fill(o, &other, b);
		assert_memory_not_equal(a, b, sizeof(a));
		for (size_t i = 0; i < N; i++)
			fixed += a[i] == i;
		/* one is expected, or a few where neighbours stay together;
		 * ten or more happen once in 10 million seeds */
		assert_true(fixed < 10);
	}
}

enum { DRAWN_EPOCHS = 400 };

static char weights_path[] = "/tmp/gpemu-test-order-XXXXXX";

static int make_file(void **state)
{
	(void)state;
	return close(mkstemp(weights_path));
}

static int remove_file(void **state)
{
	(void)state;
	return unlink(weights_path);
}

/* How often each sample comes in many epochs; their number of draws. */
static double draw(const char *options, struct order_input *in, size_t count[N])
{
	uint32_t v[N];

	memset(count, 0, N * sizeof(*count));
	for (in->epoch = 0; in->epoch < DRAWN_EPOCHS; in->epoch++) {
		fill_with("weighted", options, in, v);
		for (size_t i = 0; i < N; i++)
			count[v[i]]++;
	}
	return (double)N * DRAWN_EPOCHS;
}

/* Within six standard deviations of n * p. */
static void assert_share(size_t count, double n, double p)
{
	double off = fabs((double)count - n * p);

	assert_true(off <= 6 * sqrt(n * p * (1 - p)));
}

static void write_weights(const char *path, size_t n, size_t zero)
{
	FILE *f = fopen(path, "w");

	assert_non_null(f);
	fputs("# a comment\n\n", f);
	for (size_t i = 0; i < n; i++)
		fprintf(f, "%g\r\n", i == zero ? 0. : (double)(1 + i % 7) / 3);
	assert_int_equal(fclose(f), 0);
}

static void weighted_draws_in_proportion_to_the_weights(void **state)
{
	struct order_input in = input(5, 0, N);
	char options[256];
	size_t count[N];
	double n, sum = 0;

	(void)state;
	write_weights(weights_path, N, 3);
	for (size_t i = 0; i < N; i++)
		sum += i == 3 ? 0 : (double)(1 + i % 7) / 3;
	snprintf(options, sizeof(options), "by=sample,file=%s", weights_path);
	n = draw(options, &in, count);
	assert_int_equal(count[3], 0);
	for (size_t i = 0; i < N; i++)
		if (i != 3)
			assert_share(count[i], n,
				     (double)(1 + i % 7) / 3 / sum);
}

/* Label 0 has nine tenths of the samples: each comes a ninth as often. With a
 * file the weight is that of a sample of the label. */
static void weighted_gives_each_label_the_same_share(void **state)
{
	struct order_input in = input(5, 0, N);
	uint32_t label[N];
	char options[256];
	size_t count[N], of[2] = { 0 }, first = 0;
	double n;

	(void)state;
	for (size_t i = 0; i < N; i++)
		of[label[i] = i % 10 == 9]++;
	n = draw("", &in, count); /* one label: uniform */
	for (size_t i = 0; i < N; i++)
		assert_share(count[i], n, 1. / N);
	in.label = label;
	in.n_labels = 2;
	n = draw("", &in, count);
	for (size_t i = 0; i < N; i++)
		assert_share(count[i], n, .5 / (double)of[label[i]]);
	write_weights(weights_path, 2, SIZE_MAX); /* 1/3 and 2/3 */
	snprintf(options, sizeof(options), "file=%s", weights_path);
	n = draw(options, &in, count);
	for (size_t i = 0; i < N; i++)
		first += label[i] ? 0 : count[i];
	assert_share(first, n, (double)of[0] / (double)(of[0] + 2 * of[1]));
}

static void weighted_draws_the_share_of_distinct_samples(void **state)
{
	struct order_input in = input(5, 0, N);
	double distinct = 0;
	uint32_t v[N];

	(void)state;
	for (in.epoch = 0; in.epoch < DRAWN_EPOCHS; in.epoch++) {
		bool seen[N] = { false };

		fill(order("weighted"), &in, v);
		for (size_t i = 0; i < N; i++) {
			distinct += !seen[v[i]];
			seen[v[i]] = true;
		}
	}
	distinct /= DRAWN_EPOCHS * (double)N;
	/* 1 - (1 - 1/n)^n; its deviation over these epochs is under .001 */
	assert_true(fabs(distinct - (1 - pow(1 - 1. / N, N))) < .004);
}

static void a_file_of_weights_is_checked(void **state)
{
	static const struct {
		const char *text, *why;
	} bad[] = {
		{ "1\n2\n", ": 2 weights for 3 samples" },
		{ "1\n2\n3\n4\n", ":4:1: more weights than" },
		{ "1\nroot:x\n3\n", ":2:1: a weight must be a number, 0 or "
				    "more" },
		{ "1\n-2\n3\n", ":2:1: a weight must be" },
		{ "1\nnan\n3\n", ":2:1: a weight must be" },
		{ "0\n0\n0\n", ": the sum of the weights must be" },
		{ "1e300\n1e300\n1\n", ": the sum of the weights must be" },
		{ "", ": 0 weights for 3 samples" },
	};
	struct order_input in = input(5, 0, 3);
	uint32_t v[3];

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		struct {
			char *by, *file;
		} o = { (char *)"sample", weights_path };
		FILE *f = fopen(weights_path, "w");
		struct err err = { 0 };

		fputs(bad[i].text, f);
		fclose(f);
		in.options = &o;
		assert_int_equal(order("weighted")->fill(&in, v, &err),
				 -EINVAL);
		if (!strstr(err.text, bad[i].why) || strstr(err.text, "root"))
			fail_msg("%s", err.text);
	}
}

static void frozen_is_the_same_every_epoch(void **state)
{
	struct order_input one = input(42, 0, N), later = input(42, 1, N);
	struct order_input other = input(43, 0, N);
	uint32_t a[N], b[N];

	(void)state;
	fill(order("frozen"), &one, a);
	fill(order("frozen"), &later, b);
	assert_memory_equal(a, b, sizeof(a));
	fill(order("shuffle"), &one, b);
	assert_memory_equal(a, b, sizeof(a));
	fill(order("frozen"), &other, b);
	assert_memory_not_equal(a, b, sizeof(a));
}

static void sequential_is_in_order(void **state)
{
	struct order_input in = input(1, 5, N);
	uint32_t v[N];

	(void)state;
	fill(order("sequential"), &in, v);
	for (uint32_t i = 0; i < N; i++)
		assert_int_equal(v[i], i);
}

/*
 * Made with Debian's python3-torch 1.13:
 *	for n, s, e in ...:
 *	    p = torch.randperm(n, generator=torch.Generator().manual_seed(
 *	        s + e)).tolist()
 *	    print(n, s, e, p[:4], sum(i * v for i, v in enumerate(p)) % 2**64)
 * tests/cli/order.bats compares more of them where torch is installed.
 */
static void torch_is_that_of_torch(void **state)
{
	static const struct {
		size_t n;
		uint64_t seed, epoch;
		uint32_t first[4];
		uint64_t sum; /* of index times value */
	} table[] = {
		{ 1, 0u, 0, { 0, 0, 0, 0 }, 0u },
		{ 2, 1u, 0, { 1, 0, 0, 0 }, 0u },
		{ 10, 0u, 0, { 4, 1, 7, 5 }, 209u },
		{ 10, 42u, 3, { 7, 6, 5, 3 }, 167u },
		{ 700, 7u, 1, { 323, 41, 125, 664 }, 82591166u },
		{ 1281167,
		  42u,
		  0,
		  { 772957, 412848, 214023, 1211721 },
		  525830684188255750u },
		{ 1281167,
		  4294967295u,
		  1,
		  { 1069931, 571398, 762430, 399643 },
		  525632212876822078u },
		{ 1000, 4294967301u, 2, { 615, 284, 599, 580 }, 251046965u },
	};

	(void)state;
	for (size_t t = 0; t < ARRAY_SIZE(table); t++) {
		struct order_input in = { .seed = table[t].seed,
					  .epoch = table[t].epoch,
					  .n = table[t].n };
		_cleanup_free_ uint32_t *v = calloc(in.n, sizeof(*v));
		uint64_t sum = 0;

		fill(order("torch"), &in, v);
		for (size_t i = 0; i < in.n; i++)
			sum += i * v[i];
		for (size_t i = 0; i < MIN(in.n, 4); i++)
			assert_int_equal(v[i], table[t].first[i]);
		assert_true(sum == table[t].sum);
	}
}

/* The largest number of classes by `of` that are begun and not finished at the
 * same time. */
static uint32_t most_open(const uint32_t *v, const uint32_t *of)
{
	uint32_t left[N] = { 0 }, begun[N] = { 0 };
	uint32_t open = 0, most = 0;

	for (size_t i = 0; i < N; i++)
		left[of[i]]++;
	for (size_t i = 0; i < N; i++) {
		uint32_t k = of[v[i]];

		open += begun[k]++ == 0;
		most = MAX(most, open);
		open -= --left[k] == 0;
	}
	return most;
}

static void group_keeps_a_window_of_groups_open(void **state)
{
	struct order_input in = input(3, 0, N);
	uint32_t v[N], most;

	(void)state;
	for (uint32_t window = 1; window <= 16; window *= 4) {
		char text[64];

		fill_with("group", options_of("group", window, text), &in, v);
		most = most_open(v, in.group);
		assert_int_equal(most, window);
	}
	/* two batches of 4 are smaller than a group of 17 */
	fill(order("group"), &in, v);
	assert_int_equal(most_open(v, in.group), 1);
}

static void quasi_random_keeps_a_window_of_pages_open(void **state)
{
	struct order_input in = input(3, 0, N);
	uint32_t v[N], page[N] = { 0 }, n_pages = 0;
	uint64_t used = 0;
	size_t together = 0;

	(void)state;
	for (size_t i = 0; i < N; i++) {
		if (used + in.size[i] > PAGE) {
			n_pages++;
			used = 0;
		}
		used += in.size[i];
		page[i] = n_pages;
	}
	assert_true(n_pages > 200);
	fill_with("quasi_random", "window=1,page=1000", &in, v);
	assert_int_equal(most_open(v, page), 1);
	/* 2 * batch, as FFCV */
	fill_with("quasi_random", "page=1000", &in, v);
	assert_int_equal(most_open(v, page), 8);
	/* a page follows itself once in 8 times */
	for (size_t i = 1; i < N; i++)
		together += page[v[i]] == page[v[i - 1]];
	assert_in_range(together, N / 8 / 2, N / 8 * 2);
	in.size = NULL;
	assert_true(order("quasi_random")->fill(&in, v, NULL) < 0);
}

/* --- what the schedule checks --------------------------------------------- */

static int fill_wrong(const struct order_input *in, uint32_t *ret,
		      struct err *err)
{
	const uint32_t *wrong = in->options;

	(void)err;
	for (size_t i = 0; i < in->n; i++)
		ret[i] = (uint32_t)i;
	if (in->epoch > 0)
		ret[wrong[0]] = wrong[1];
	return 0;
}

/* Position `at` of epoch 1 has `sample`. */
static void check_schedule(bool may_repeat, uint32_t at, uint32_t sample,
			   const char *why)
{
	const struct order_ops wrong = { .plugin = { .name = "wrong" },
					 .repeats = may_repeat,
					 .fill = fill_wrong };
	const uint32_t options[] = { at, sample };
	const struct schedule_config c = {
		.order = &wrong,
		.in = { .n = 100, .options = options },
		.world = 1,
	};
	struct order_schedule s;
	struct err err = { 0 };
	uint32_t all[100];

	assert_int_equal(schedule_open(&c, &s, &err), 0);
	assert_true(schedule_repeats(&s) == may_repeat);
	assert_int_equal(schedule_fill(&s, 0, &err), 0);
	assert_int_equal(schedule_fill(&s, 1, &err), why ? -EINVAL : 0);
	assert_string_equal(err.text, why ? why : "");
	assert_int_equal(schedule_all(&s, 1, all, NULL), why ? -EINVAL : 0);
	assert_int_equal(schedule_all(&s, 0, all, NULL), 0);
	schedule_close(&s);
}

static void an_order_that_does_not_say_so_may_not_repeat(void **state)
{
	(void)state;
	check_schedule(false, 99, 7,
		       "the order wrong: epoch 1 has sample 7 at position 99, "
		       "for the second time: an order that repeats samples "
		       "must declare it");
	check_schedule(true, 99, 7, NULL);
	check_schedule(false, 0, 100,
		       "the order wrong: epoch 1 has sample 100 at position 0, "
		       "which the dataset does not have");
	check_schedule(true, 64, UINT32_MAX,
		       "the order wrong: epoch 1 has sample 4294967295 at "
		       "position 64, which the dataset does not have");
}

enum { RANKS_MAX = 8, BATCH_MAX = 128, STEPS = 300 };

/* What a global batch moves between ranks, and in how many transfers. */
struct moves {
	uint64_t n, transfers_max;
};

/* Steps of an epoch of `locality`, by who holds a sample: the rank that epoch 0
 * gave it to. */
static struct moves moves_of(const uint32_t *holder, const uint32_t *v,
			     uint32_t p, uint32_t b)
{
	struct moves m = { 0 };

	for (uint32_t k = 0; k < STEPS; k++) {
		bool pair[RANKS_MAX][RANKS_MAX] = { { false } };
		uint64_t transfers = 0;

		for (uint32_t i = 0; i < b * p; i++) {
			uint32_t to = i % p, from = holder[v[k * b * p + i]];

			if (from == to)
				continue;
			m.n++;
			transfers += !pair[from][to];
			pair[from][to] = true;
		}
		m.transfers_max = MAX(m.transfers_max, transfers);
	}
	return m;
}

/* Source: Yang and Cong, HiPC 2019: the share of samples that move. */
/*
 * Every stream reads shard after shard, each from its begin to its end; the
 * batches of a rank take turns among its streams.
 */
static void webdataset_reads_whole_shards(void **state)
{
	enum {
		SHARDS = 12,
		EACH = 32,
		RANKS = 2,
		STREAMS = 3,
		BATCH = 4,
		ALL = SHARDS * EACH
	};
	uint32_t v[ALL], group[ALL], last[RANKS][STREAMS];

	(void)state;
	for (uint32_t i = 0; i < ALL; i++)
		group[i] = i / EACH;
	for (uint64_t epoch = 0; epoch < 3; epoch++) {
		struct order_input in = { .seed = 7,
					  .epoch = epoch,
					  .n = ALL,
					  .group = group,
					  .n_groups = SHARDS,
					  .batch = BATCH,
					  .world = RANKS };

		fill_with("webdataset", "streams=3", &in, v);
		assert_permutation(v, ALL);
		memset(last, 0xff, sizeof(last));
		for (uint32_t i = 0; i < ALL; i++) {
			uint32_t rank = i % RANKS;
			uint32_t batch = i / RANKS / BATCH;
			uint32_t *at = &last[rank][batch % STREAMS];

			if (*at == UINT32_MAX || *at % EACH == EACH - 1)
				assert_int_equal(v[i] % EACH, 0);
			else
				assert_int_equal(v[i], *at + 1);
			*at = v[i];
		}
	}
}

/* One shard for two ranks: both visit as many samples. */
static void webdataset_shares_what_is_too_little(void **state)
{
	enum { ALL = 100 };
	static uint32_t group[ALL];
	struct order_input in = { .seed = 1,
				  .n = ALL,
				  .group = group,
				  .n_groups = 1,
				  .batch = 8,
				  .world = 2 };
	uint32_t v[ALL];

	(void)state;
	fill_with("webdataset", "streams=16", &in, v);
	for (uint32_t i = 0; i < ALL; i++)
		assert_int_equal(v[i], i);
}

static void locality_moves_what_the_balance_needs(void **state)
{
	static const uint32_t ranks[] = { 4, 8 }, batches[] = { 32, 64, 128 };
	size_t most = (size_t)RANKS_MAX * BATCH_MAX * STEPS;
	_cleanup_free_ uint32_t *v = calloc(most, sizeof(*v));
	_cleanup_free_ uint32_t *holder = calloc(most, sizeof(*holder));

	(void)state;
	for (int i = 0; i < 6; i++) {
		uint32_t p = ranks[i / 3], b = batches[i % 3];
		struct order_input in = { .seed = 5,
					  .n = (size_t)p * b * STEPS,
					  .batch = b,
					  .world = p };
		double share = sqrt((1 - 1. / p) / (2 * M_PI * b));
		struct moves m;

		fill(order("locality"), &in, v);
		for (uint32_t k = 0; k < in.n; k++)
			holder[v[k]] = k % p;
		in.epoch = 1;
		fill(order("locality"), &in, v);
		assert_permutation(v, in.n);
		m = moves_of(holder, v, p, b);
		if (fabs((double)m.n / (double)in.n - share) > .005)
			fail_msg("%u ranks, %u samples: %.4f, not %.4f", p, b,
				 (double)m.n / (double)in.n, share);
		assert_in_range(m.transfers_max, 1, p - 1);
	}
}

/* Who has the sample in its cache takes it, as far as its part of the batch
 * reaches; the batches are those of `shuffle`. */
static void locality_keeps_global_batches(void **state)
{
	enum { RANKS = 3, BATCH = 4, STEP = RANKS * BATCH };
	struct order_input in = input(7, 2, N);
	uint32_t v[N], plain[N];

	(void)state;
	in.world = RANKS;
	in.batch = BATCH;
	fill_with("locality", "cache=20K", &in, v);
	fill(order("shuffle"), &in, plain);
	assert_permutation(v, N);
	for (size_t at = 0; at < N; at += STEP) {
		size_t n = MIN(STEP, N - at);

		qsort(v + at, n, sizeof(*v), compare_u32);
		qsort(plain + at, n, sizeof(*v), compare_u32);
		assert_memory_equal(v + at, plain + at, n * sizeof(*v));
	}
	/* of one rank, and in epoch 0, it is that of shuffle */
	for (in.epoch = 0; in.epoch < 2; in.epoch++) {
		fill(order("locality"), &in, v);
		fill(order("shuffle"), &in, plain);
		assert_memory_equal(v, plain, sizeof(v));
		in.world = 1;
	}
}

/* Caches of a fifth of the samples: those are taken by who has them, but for
 * the few that a rank has too many. */
static void locality_knows_what_fits_into_the_caches(void **state)
{
	enum { RANKS = 4, SIZE = 100 };
	static uint64_t size[10000];
	static uint32_t first[10000], v[10000], holder[10000];
	struct order_input in = { .seed = 3,
				  .n = ARRAY_SIZE(size),
				  .size = size,
				  .batch = 50,
				  .world = RANKS };
	uint32_t held = 0, own = 0;
	struct err err = { 0 };

	(void)state;
	for (uint32_t i = 0; i < in.n; i++)
		size[i] = SIZE;
	fill_with("locality", "cache=50000", &in, first);
	for (uint32_t i = 0; i < in.n; i++)
		holder[first[i]] = i / RANKS < 500 ? i % RANKS : RANKS;
	in.epoch = 1;
	fill_with("locality", "cache=50000", &in, v);
	for (uint32_t i = 0; i < in.n; i++) {
		held += holder[v[i]] < RANKS;
		own += holder[v[i]] == i % RANKS;
	}
	assert_int_equal(held, 2000);
	assert_int_equal(own, 2000);
	/* and sizes are needed to know that */
	in.size = NULL;
	in.options = &(uint64_t){ 50000 };
	assert_int_equal(order("locality")->fill(&in, v, &err), -EINVAL);
	assert_non_null(strstr(err.text, "sizes"));
}

/* The mounts say who holds what: from epoch 0 on, whatever that order is. */
static void locality_follows_the_caches_of_the_mounts(void **state)
{
	enum { RANKS = 4, BATCH = 25 };
	static uint32_t holder[10000], v[10000], plain[10000];
	struct order_input in = { .seed = 3,
				  .n = ARRAY_SIZE(holder),
				  .batch = BATCH,
				  .world = RANKS,
				  .holder = holder };

	(void)state;
	/* nobody has the last tenth */
	for (uint32_t i = 0; i < in.n; i++)
		holder[i] = i < 9000 ? i / 7 % RANKS : ORDER_NOBODY;
	for (in.epoch = 0; in.epoch < 3; in.epoch++) {
		struct order_input shuffled = in;
		uint32_t own = 0;

		fill(order("locality"), &in, v);
		fill(order("shuffle"), &shuffled, plain);
		assert_permutation(v, in.n);
		for (uint32_t at = 0; at < in.n; at += RANKS * BATCH) {
			uint32_t n = RANKS * BATCH, has[RANKS] = { 0 };

			for (uint32_t i = at; i < at + n; i++) {
				own += holder[v[i]] == i % RANKS;
				if (holder[v[i]] != ORDER_NOBODY)
					has[holder[v[i]]]++;
			}
			/* all it holds, up to its part */
			for (uint32_t r = 0; r < RANKS; r++)
				own -= MIN(has[r], BATCH);
			assert_int_equal(own, 0);
			qsort(v + at, n, sizeof(*v), compare_u32);
			qsort(plain + at, n, sizeof(*v), compare_u32);
			assert_memory_equal(v + at, plain + at, n * sizeof(*v));
		}
	}
}

/* From epoch 1 on, the last sample is one that the dataset has not. */
static int lie(const struct order_input *in, uint32_t *ret, struct err *err)
{
	(void)err;
	for (uint32_t i = 0; i < in->n; i++)
		ret[i] = i;
	ret[in->n - 1] += in->epoch > 0;
	return 0;
}

static void a_sample_outside_the_dataset_is_an_error(void **state)
{
	static const struct order_ops liar = { .plugin = { .name = "liar" },
					       .fill = lie };
	struct schedule_config c = { .order = &liar,
				     .in = { .n = N },
				     .world = 2 };

	(void)state;
	for (int whole = 0; whole < 2; whole++) {
		struct order_schedule s;
		struct err err = { 0 };
		uint32_t all[N + 1];

		c.whole = whole;
		assert_int_equal(schedule_open(&c, &s, &err), 0);
		assert_int_equal(schedule_fill(&s, 0, &err), 0);
		assert_int_equal(schedule_all(&s, 0, all, &err), 0);
		assert_int_equal(schedule_all(&s, 1, all, &err), -EINVAL);
		err.text[0] = 0;
		assert_int_equal(schedule_fill(&s, 1, &err), -EINVAL);
		assert_string_equal(err.text,
				    "the order liar: epoch 1 has sample 1009 "
				    "at position 1008, which the dataset "
				    "does not have");
		schedule_close(&s);
	}
}

int main(int argc, char **argv)
{
	/* the first two are those of every order */
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_sample_once_an_epoch),
		cmocka_unit_test(the_same_seed_gives_the_same_order),
		cmocka_unit_test(a_sample_outside_the_dataset_is_an_error),
		cmocka_unit_test(random_orders_depend_on_seed_and_epoch),
		cmocka_unit_test(weighted_draws_in_proportion_to_the_weights),
		cmocka_unit_test(weighted_gives_each_label_the_same_share),
		cmocka_unit_test(weighted_draws_the_share_of_distinct_samples),
		cmocka_unit_test(a_file_of_weights_is_checked),
		cmocka_unit_test(an_order_that_does_not_say_so_may_not_repeat),
		cmocka_unit_test(frozen_is_the_same_every_epoch),
		cmocka_unit_test(sequential_is_in_order),
		cmocka_unit_test(torch_is_that_of_torch),
		cmocka_unit_test(group_keeps_a_window_of_groups_open),
		cmocka_unit_test(quasi_random_keeps_a_window_of_pages_open),
		cmocka_unit_test(webdataset_reads_whole_shards),
		cmocka_unit_test(webdataset_shares_what_is_too_little),
		cmocka_unit_test(locality_moves_what_the_balance_needs),
		cmocka_unit_test(locality_keeps_global_batches),
		cmocka_unit_test(locality_knows_what_fits_into_the_caches),
		cmocka_unit_test(locality_follows_the_caches_of_the_mounts),
	};

	tested = tested_parts(argc, argv, order_table);
	return _cmocka_run_group_tests(
		"orders", tests, tested == order_table ? ARRAY_SIZE(tests) : 2,
		make_file, remove_file);
}

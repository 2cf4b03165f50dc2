/* SPDX-License-Identifier: MIT */
/*
 * Simulated epochs against closed forms: bound by the GPU, by storage, by the
 * transforms, by the network; hits against a replay of the same order through
 * the same cache.
 */
#include "tests/unit/test.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/json.h"
#include "common/util.h"
#include "fs/cache/cache.h"
#include "loader/sim/simulate.h"

/* Files of one folder, of SIZE bytes each. */
enum { N = 256, SIZE = 100000, BATCH = 16, EPOCHS = 3 };
/* Of another folder: files of three objects. */
enum { N_LARGE = 8, LARGE = 9000000 };

static char dir[] = "/tmp/gpemu-sim-XXXXXX";

static void put(const char *name, const char *text)
{
	char path[64];
	FILE *f;

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	f = fopen(path, "w");
	assert_non_null(f);
	fputs(text, f);
	assert_int_equal(fclose(f), 0);
}

#define S "{source: test, verified: true"
#define STORAGE(channels, link, read)                                      \
	"name: t\nsource: test\nchannels: " S channels "}\nlink: " S link  \
	"}\niops: " S "}\nopen: " S "}\nlookup: " S "}\nreaddir: " S "}\n" \
	"read: " S read "}\n"

#define CARD(rate)                                                    \
	"name: t\nsource: test\nverified: true\ngpus: 1\ngpu: v100\n" \
	"cores: 4\nmemory: 1G\npcie: {source: test}\n"                \
	"nic: {gb_per_s: " rate ", source: test}\n"

static void put_file(const char *path, off_t bytes)
{
	int fd = open(path, O_CREAT | O_WRONLY, 0600);

	assert_true(fd >= 0);
	assert_int_equal(ftruncate(fd, bytes), 0);
	close(fd);
}

static int make_data(void **state)
{
	char path[64];

	(void)state;
	assert_non_null(mkdtemp(dir));
	snprintf(path, sizeof(path), "%s/data", dir);
	assert_int_equal(mkdir(path, 0700), 0);
	for (int i = 0; i < N; i++) {
		snprintf(path, sizeof(path), "%s/data/%03d", dir, i);
		put_file(path, SIZE);
	}
	snprintf(path, sizeof(path), "%s/large", dir);
	assert_int_equal(mkdir(path, 0700), 0);
	for (int i = 0; i < N_LARGE; i++) {
		snprintf(path, sizeof(path), "%s/large/%d", dir, i);
		put_file(path, LARGE);
	}
	put("seek.yaml", STORAGE(", count: 1", "",
				 ", occupancy: {kind: const, value: 5ms}"));
	put("four.yaml", STORAGE(", count: 4", "",
				 ", occupancy: {kind: const, value: 20ms}"));
	put("link.yaml", STORAGE("", ", mb_per_s: 20", ""));
	put("node.yaml", CARD("0.01"));
	put("card.yaml", CARD("0.1"));
	put("other.yaml", CARD("0.1000001"));
	return 0;
}

static int remove_data(void **state)
{
	char command[64];

	(void)state;
	snprintf(command, sizeof(command), "rm -r %s", dir);
	return system(command);
}

static void set(struct session *s, const char *text)
{
	const char *value = strchr(text, '=') + 1;
	size_t n = (size_t)(value - text - 1);
	char full[128];
	struct err err = { 0 };

	/* %: the folder of the test */
	snprintf(full, sizeof(full), "%s", value);
	if (strchr(value, '%') && strchr(value, '%')[1] == '/')
		snprintf(full, sizeof(full), "%.*s%s%s",
			 (int)(strchr(value, '%') - value), value, dir,
			 strchr(value, '%') + 1);
	for (const struct conf_field *f = train_fields; f->key; f++)
		if (strlen(f->key) == n && !strncmp(f->key, text, n)) {
			if (conf_set(f, &s->options, full, &err) < 0)
				fail_msg("%s: %s", text, err.text);
			return;
		}
	fail_msg("no option %s", text);
}

/* A run with these options, ended by NULL. */
struct run {
	struct session s;
	struct simulate m;
	json_t *record;
};

static void run(struct run *r, const char *const options[])
{
	static const char *const common[] = { "simulate=on",   "data=%/data",
					      "model=alexnet", "gpu=v100",
					      "batch=16",      "prep=none",
					      "loader=sync",   "workers=4",
					      "epochs=1",      NULL };
	struct err err = { 0 };

	memset(r, 0, sizeof(*r));
	session_init(&r->s);
	for (int i = 0; common[i]; i++)
		set(&r->s, common[i]);
	for (int i = 0; options[i]; i++)
		set(&r->s, options[i]);
	if (simulate_options(&r->s.options, &err) < 0 ||
	    train_options_resolve(&r->s.options, &r->s.choice, &err) < 0 ||
	    simulate_open(&r->m, &r->s, &err) < 0)
		fail_msg("%s", err.text);
	while (session_more(&r->s))
		if (simulate_epoch(&r->m, &err) < 0)
			fail_msg("%s", err.text);
	assert_int_equal(simulate_report(&r->m, &err), 0);
	r->record = report_json(session_report(&r->s));
	assert_non_null(r->record);
}

static void done(struct run *r)
{
	json_decref(r->record);
	simulate_close(&r->m);
	session_close(&r->s);
}

static double epoch(const struct run *r, size_t i, const char *key)
{
	return json_number_value(json_object_get(
		json_array_get(json_object_get(r->record, "epochs"), i), key));
}

static double fs(const struct run *r, size_t i, const char *key)
{
	return json_number_value(json_object_get(
		json_array_get(json_object_get(json_object_get(r->record, "fs"),
					       "epochs"),
			       i),
		key));
}

/* A number of the record, by its keys and indexes. */
static double number(const struct run *r, const char *path)
{
	const json_t *j = r->record;
	char key[32];
	int n;

	for (; sscanf(path, "%31[^/]%n", key, &n) == 1; path += n) {
		n += path[n] == '/';
		j = json_is_array(j)
			    ? json_array_get(j, (size_t)strtoul(key, NULL, 10))
			    : json_object_get(j, key);
	}
	return json_number_value(j);
}

static double ahead(const struct run *r, size_t i, const char *key)
{
	return json_number_value(json_object_get(
		json_object_get(
			json_array_get(json_object_get(
					       json_object_get(r->record, "fs"),
					       "epochs"),
				       i),
			"prefetch"),
		key));
}

static double mean(const struct run *r, size_t i, const char *key)
{
	return json_number_value(json_object_get(
		json_object_get(
			json_array_get(json_object_get(r->record, "epochs"), i),
			key),
		"mean"));
}

#define NEAR(value, want, part)                                           \
	do {                                                              \
		double value_ = (value), want_ = (want);                  \
                                                                          \
		if (!(value_ >= want_ * (1 - (part)) &&                   \
		      value_ <= want_ * (1 + (part))))                    \
			fail_msg(#value " is %g, not %g", value_, want_); \
	} while (0)

/* Bound by its data, an epoch takes `want` seconds, and the GPU the time of
 * the batches that come last: one of each worker. */
static void check_bound(const struct run *r, double want)
{
	double got = epoch(r, 0, "seconds");
	double step = (double)device_local_ns(&r->s.job, BATCH * SIZE) / 1e9;
	double last = (double)r->s.options.workers * step;

	if (got < want || got > want * 1.01 + last + step)
		fail_msg("%g s, not %g and at most %g", got, want, last);
	NEAR(epoch(r, 0, "samples"), N, 0);
}

/* --- what bounds an epoch ------------------------------------------------- */

static void the_gpu_bounds_an_epoch(void **state)
{
	struct run r;
	uint64_t bytes = (uint64_t)BATCH * SIZE, copy, step, pin;

	(void)state;
	run(&r, (const char *[]){ "model=resnet50", NULL });
	copy = gpu_copy_ns(&r.s.gpu, r.s.model, GPU_COPY_PINNED, bytes);
	pin = gpu_copy_ns(&r.s.gpu, NULL, GPU_COPY_TO_PINNED, bytes);
	step = device_local_ns(&r.s.job, bytes) - copy;
	NEAR(epoch(&r, 0, "seconds") * 1e9,
	     (double)(pin + copy + N / BATCH * step), 1e-6);
	NEAR(epoch(&r, 0, "samples"), N, 0);
	NEAR(epoch(&r, 0, "distinct_samples"), N, 0);
	done(&r);
	/* without data that must be read the first batch is there at once */
	run(&r, (const char *[]){ "model=resnet50", "loader=null",
				  "samples=256", NULL });
	copy = gpu_copy_ns(&r.s.gpu, r.s.model, GPU_COPY_PINNED,
			   BATCH * r.s.node.beside.sample_bytes);
	step = device_local_ns(&r.s.job, 0) -
	       gpu_copy_ns(&r.s.gpu, r.s.model, GPU_COPY_PINNED, 0);
	NEAR(epoch(&r, 0, "seconds") * 1e9, (double)(copy + N / BATCH * step),
	     1e-3);
	done(&r);
}

static void storage_bounds_an_epoch(void **state)
{
	static const struct {
		const char *loader, *storage;
		double seconds;
	} cases[] = {
		{ "loader=sync", "fs=storage=%/seek.yaml", N * 5e-3 },
		{ "loader=async", "fs=storage=%/seek.yaml", N * 5e-3 },
		{ "loader=threads", "fs=storage=%/seek.yaml", N * 5e-3 },
		/* as many readers as channels, then more */
		{ "loader=sync", "fs=storage=%/four.yaml", N * 5e-3 },
		{ "loader=async", "fs=storage=%/four.yaml", N * 5e-3 },
		{ "loader=sync", "fs=storage=%/link.yaml", N * SIZE / 20e6 },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct run r;

		run(&r, (const char *[]){ cases[i].loader, cases[i].storage,
					  NULL });
		check_bound(&r, cases[i].seconds);
		NEAR(epoch(&r, 0, "fetch_stall_s"), epoch(&r, 0, "data_wait_s"),
		     .1);
		NEAR(fs(&r, 0, "backend_reads"), N, 0);
		NEAR(fs(&r, 0, "backend_bytes"), N * SIZE, 0);
		done(&r);
	}
}

static void transforms_bound_an_epoch(void **state)
{
	static const char *const loaders[] = { "loader=sync", "loader=async" };

	(void)state;
	for (int i = 0; i < 2; i++) {
		struct run r;

		run(&r, (const char *[]){ loaders[i], "prep=emulated",
					  "workers=0", "cores=4", NULL });
		check_bound(&r, N * mean(&r, 0, "prep_ms") / 4e3);
		/* the rest is the pin stage, of batches that come together */
		NEAR(epoch(&r, 0, "prep_stall_s"),
		     .8 * epoch(&r, 0, "data_wait_s"), .25);
		NEAR(epoch(&r, 0, "fetch_stall_s"), 0, 0);
		done(&r);
	}
}

static void the_network_bounds_an_epoch(void **state)
{
	struct run r;
	double bytes;

	(void)state;
	run(&r, (const char *[]){ "nodes=2", "caches=partitioned",
				  "fs=cache_policy=minio", "fs=cache_size=50%",
				  "fs=nic=%/node.yaml", "workers=8", "epochs=2",
				  NULL });
	for (size_t i = 0; i < 2; i++) {
		bytes = json_number_value(json_object_get(
			json_object_get(
				json_array_get(
					json_object_get(
						json_object_get(r.record, "fs"),
						"epochs"),
					i),
				"peer"),
			"hit_bytes"));
		/* a card of 10 MB/s in each node; each gets about half, and
		 * ends with the one that gets more */
		NEAR(bytes, N * SIZE / 2., .1);
		NEAR(epoch(&r, i, "seconds"), 1.1 * bytes / 2 / 10e6, .1);
	}
	NEAR(fs(&r, 0, "backend_reads"), N, 0);
	NEAR(fs(&r, 1, "backend_reads"), 0, 0);
	done(&r);
}

/* Where gradients share a card with files, an epoch takes the time of the sum:
 * of 4 steps, and of half of the files that pass, each way. */
static void gradients_share_the_card(void **state)
{
	static const char *const nodes[] = { "node=%/other.yaml",
					     "node=%/card.yaml" };
	double seconds[2], card[2], sum = 0;

	(void)state;
	for (int i = 0; i < 2; i++) {
		struct run r;

		run(&r, (const char *[]){
				"nodes=2", "caches=partitioned", "data=%/large",
				"fs=cache_size=60%", "batch=1",
				"fs=nic=%/card.yaml", "workers=2", "epochs=2",
				"model=squeezenet1_1", nodes[i], NULL });
		seconds[i] = epoch(&r, 1, "seconds");
		card[i] = number(&r, "nodes/0/straggler/card_s");
		sum = (4 * 4. * (double)r.s.model->parameters +
		       number(&r, "fs/epochs/1/peer/hit_bytes") / 2) /
		      100e6;
		done(&r);
	}
	NEAR(seconds[1], sum, .15);
	assert_true(seconds[0] < .8 * sum);
	assert_true(card[0] == 0 && card[1] > .1);
}

/* --- caches --------------------------------------------------------------- */

/* The hits of the same order, one access after the other. */
static void replay(const struct run *r, const char *policy, double fraction,
		   uint64_t ret[EPOCHS])
{
	struct plugin_choice choice = { 0 };
	struct policy_params p = {
		.capacity_bytes = (uint64_t)(fraction * N * SIZE),
		.seed = r->s.options.common.seed,
	};
	struct cache *c;

	assert_int_equal(plugin_choose(policy_table, "policy", policy, &choice,
				       NULL),
			 0);
	assert_int_equal(cache_new(container_of(choice.plugin,
						const struct policy_ops,
						plugin),
				   &p, NULL, NULL, &c, NULL),
			 0);
	for (uint64_t e = 0; e < EPOCHS; e++) {
		struct rng rng =
			rng_stream(r->s.options.common.seed, "order", e);
		uint32_t order[N];

		for (uint32_t i = 0; i < N; i++)
			order[i] = i;
		rng_shuffle_u32(&rng, order, N);
		for (uint32_t i = 0; i < N; i++) {
			struct cache_object o = { .key = 1 + order[i],
						  .bytes = SIZE,
						  .file_bytes = SIZE };
			struct cache_entry *entry;

			cache_access(c, &o, &entry);
		}
		ret[e] = cache_counts(c)->hits;
		cache_reset_counts(c);
	}
	cache_free(c);
	plugin_choice_fini(&choice);
}

static void hits_are_those_of_a_replay(void **state)
{
	static const char *const policies[] = { "lru", "minio", "fifo",
						"sieve" };

	(void)state;
	for (size_t i = 0; i < 4; i++) {
		char policy[64];
		uint64_t want[EPOCHS];
		struct run r;

		snprintf(policy, sizeof(policy), "fs=cache_policy=%s",
			 policies[i]);
		run(&r, (const char *[]){ policy, "fs=cache_size=50%",
					  "workers=1", "epochs=3",
					  "fs=storage=%/seek.yaml", NULL });
		replay(&r, policies[i], .5, want);
		for (size_t e = 0; e < EPOCHS; e++) {
			NEAR(epoch(&r, e, "hits"), (double)want[e], 0);
			NEAR(epoch(&r, e, "misses"), (double)(N - want[e]), 0);
			NEAR(fs(&r, e, "backend_reads"), N - (double)want[e],
			     0);
			NEAR(epoch(&r, e, "seconds"),
			     (N - (double)want[e]) * 5e-3, .05);
		}
		done(&r);
	}
}

static void each_tier_costs_its_reads(void **state)
{
	struct run r;

	(void)state;
	run(&r, (const char *[]){ "epochs=2", "fs=storage=%/four.yaml",
				  "fs=tier=%/seek.yaml:minio:100%", NULL });
	NEAR(fs(&r, 1, "hits"), N, 0);
	NEAR(epoch(&r, 1, "seconds"), N * 5e-3, .03);
	done(&r);
}

/* --- the dataset ---------------------------------------------------------- */

static void samples_have_the_numbers_of_the_loader(void **state)
{
	static const char *const names[] = {
		"b/2", "a/z/1", "a-b/3", "a/4", "a/.x/5", ".c/6", "7", "a/.8"
	};
	struct dataset by_loader = { 0 }, sizes = { 0 };
	char path[256], root[64];
	struct sim_data d = { 0 };

	(void)state;
	snprintf(root, sizeof(root), "%s/tree", dir);
	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		snprintf(path, sizeof(path),
			 "mkdir -p $(dirname %s/%s); echo %zu >%s/%s", root,
			 names[i], i, root, names[i]);
		assert_int_equal(system(path), 0);
	}
	assert_int_equal(dataset_open(root, &by_loader, NULL), 0);
	assert_int_equal(sim_data_open(root, &d, &sizes, NULL), 0);
	assert_int_equal(by_loader.n, 4);
	assert_int_equal(d.n, by_loader.n);
	for (size_t i = 0; i < d.n; i++) {
		assert_int_equal(
			tree_path(&d.tree, d.file[i], path, sizeof(path)), 0);
		assert_string_equal(path, dataset_path(&by_loader, i));
		assert_int_equal(sizes.size[i], by_loader.size[i]);
	}
	dataset_close(&by_loader);
	dataset_close(&sizes);
	sim_data_close(&d);
}

/* --- many nodes ----------------------------------------------------------- */

static void nodes_divide_an_epoch(void **state)
{
	static const char *const nodes[] = { "nodes=1", "nodes=4",
					     "nodes=256" };
	double alone = 0;

	(void)state;
	for (int i = 0; i < 3; i++) {
		struct run r;

		run(&r, (const char *[]){ nodes[i], "batch=4",
					  "fs=storage=%/seek.yaml", "workers=1",
					  NULL });
		NEAR(epoch(&r, 0, "samples"), N, 0);
		NEAR(epoch(&r, 0, "distinct_samples"), N, 0);
		if (i == 0)
			alone = epoch(&r, 0, "seconds");
		else if (i == 1)
			NEAR(epoch(&r, 0, "seconds"), alone / 4, .05);
		NEAR((double)json_array_size(
			     json_object_get(r.record, "nodes")),
		     i ? (double)r.s.options.nodes : 0, 0);
		assert_string_equal(
			json_string_value(json_object_get(r.record, "kind")),
			"SIMULATED");
		done(&r);
		/* one device for all: as long as alone */
		run(&r, (const char *[]){
				nodes[i], "batch=4", "shared_storage=on",
				"fs=storage=%/seek.yaml", "workers=1", NULL });
		NEAR(epoch(&r, 0, "seconds"), N * 5e-3, .03);
		done(&r);
	}
}

static void locality_reads_only_what_moves(void **state)
{
	static const char *const orders[] = { "order=shuffle",
					      "order=locality" };
	double reads[2];

	(void)state;
	for (int i = 0; i < 2; i++) {
		struct run r;

		run(&r, (const char *[]){ orders[i], "nodes=4", "epochs=2",
					  "fs=cache_policy=minio",
					  "fs=cache_size=25%", NULL });
		reads[i] = fs(&r, 1, "backend_reads");
		done(&r);
	}
	/* b = 16 samples: sqrt((1 - 1/p) / (2 pi b)) = 8.6 % */
	NEAR(reads[0], .75 * N, .1);
	NEAR(reads[1], .086 * N, .5);
}

/* --- fetches ahead -------------------------------------------------------- */

static void what_is_fetched_ahead_hits_as_it_would_have(void **state)
{
	static const char *const loaders[] = { "loader=sync", "loader=async" };

	(void)state;
	for (int i = 0; i < 2; i++) {
		uint64_t want[EPOCHS];
		double used = 0, prefetched = 0;
		struct run r;

		run(&r, (const char *[]){ loaders[i], "fs=prefetch=8M",
					  "fs=cache_size=50%", "epochs=3",
					  "fs=storage=%/seek.yaml", NULL });
		replay(&r, "minio", .5, want);
		for (size_t e = 0; e < EPOCHS; e++) {
			NEAR(epoch(&r, e, "hits"), (double)want[e], 0);
			NEAR(epoch(&r, e, "misses"), (double)(N - want[e]), 0);
			NEAR(epoch(&r, e, "samples"), N, 0);
			NEAR(ahead(&r, e, "used") + ahead(&r, e, "missed"), N,
			     0);
			used += ahead(&r, e, "used");
			prefetched += ahead(&r, e, "prefetched");
		}
		/* all that was fetched was used */
		NEAR(prefetched, used, 0);
		assert_true(used > N / 2.);
		done(&r);
	}
}

static void fetches_ahead_hide_the_latency(void **state)
{
	static const struct {
		const char *depth;
		double seconds;
	} cases[] = {
		{ "fs=prefetch_depth=1", N * 20e-3 },
		{ "fs=prefetch_depth=2", N * 10e-3 },
		{ "fs=prefetch_depth=16", N * 5e-3 },
	};

	(void)state;
	/* one reader, of four channels */
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct run r;

		run(&r, (const char *[]){ "workers=1", cases[i].depth,
					  "fs=cache_policy=none",
					  "fs=storage=%/four.yaml",
					  "fs=prefetch=2M", NULL });
		NEAR(epoch(&r, 0, "seconds"), cases[i].seconds, .03);
		NEAR(fs(&r, 0, "backend_reads"), N, 0);
		assert_true(ahead(&r, 0, "late") > 0);
		done(&r);
	}
}

/* No more than the staging buffer is ahead of the reads. */
static void an_epoch_begins_with_what_the_last_one_staged(void **state)
{
	const char *const options[] = {
		"model=resnet50",	"epochs=2",
		"fs=cache_policy=none", "fs=storage=%/link.yaml",
		"fs=prefetch=1000000",	NULL
	};
	struct run r;

	(void)state;
	run(&r, options);
	NEAR(fs(&r, 0, "backend_reads"), N + 10, 0);
	NEAR(fs(&r, 1, "backend_reads"), N - 10, 0);
	done(&r);
}

static void large_files_are_fetched_object_by_object(void **state)
{
	struct run r;

	(void)state;
	run(&r, (const char *[]){ "data=%/large", "batch=2", "workers=1",
				  "fs=cache_policy=none", "fs=prefetch=16M",
				  "fs=storage=%/link.yaml", NULL });
	NEAR(fs(&r, 0, "backend_reads"), 3 * N_LARGE, 0);
	NEAR(fs(&r, 0, "backend_bytes"), (double)N_LARGE * LARGE, 0);
	NEAR(fs(&r, 0, "misses"), 3 * N_LARGE, 0);
	NEAR(ahead(&r, 0, "used") + ahead(&r, 0, "missed"), 3 * N_LARGE, 0);
	NEAR(epoch(&r, 0, "seconds"), (double)N_LARGE * LARGE / 20e6, .03);
	done(&r);
}

/* Of two nodes, each accesses a sample k of 6 times with probability
 * C(6, k) / 64, and keeps the 40 % with the largest k. */
static void a_node_keeps_what_it_accesses_most(void **state)
{
	double hits = 0, all = 0;
	struct run r;

	(void)state;
	run(&r, (const char *[]){ "nodes=2", "caches=partitioned", "epochs=6",
				  "fs=prefetch=1000000", "fs=cache_size=40%",
				  "batch=4", NULL });
	for (size_t e = 1; e < 6; e++) {
		hits += epoch(&r, e, "hits");
		all += N;
	}
	NEAR(hits / all, ((6 + 30 + 60) / 64. + 3 * (.4 - 22 / 64.)) / 3, .08);
	done(&r);
}

/* More nodes than a mount has peers. Each caches more than its first epoch, and
 * so all samples of it. */
static void many_nodes_read_each_sample_once(void **state)
{
	struct run r;

	(void)state;
	run(&r, (const char *[]){ "nodes=128", "caches=partitioned", "batch=1",
				  "epochs=3", "fs=prefetch=300000",
				  "fs=cache_size=2%", "fs=storage=%/seek.yaml",
				  "shared_storage=on", NULL });
	NEAR(fs(&r, 0, "backend_reads") + fs(&r, 1, "backend_reads"), N, 0);
	NEAR(fs(&r, 2, "backend_reads"), 0, 0);
	NEAR(epoch(&r, 2, "samples"), N, 0);
	done(&r);
}

static void the_same_seed_gives_the_same_times(void **state)
{
	static const char *const seeds[] = { "seed=5", "seed=5", "seed=6" };
	double seconds[3];

	(void)state;
	for (int i = 0; i < 3; i++) {
		struct run r;

		run(&r,
		    (const char *[]){ seeds[i], "nodes=3", "epochs=2",
				      "fs=storage=hdd", "loader=async",
				      "prep=emulated", "jitter=0.1", NULL });
		seconds[i] = epoch(&r, 1, "seconds");
		done(&r);
	}
	assert_true(seconds[0] == seconds[1]);
	assert_true(seconds[0] != seconds[2]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_gpu_bounds_an_epoch),
		cmocka_unit_test(storage_bounds_an_epoch),
		cmocka_unit_test(transforms_bound_an_epoch),
		cmocka_unit_test(the_network_bounds_an_epoch),
		cmocka_unit_test(gradients_share_the_card),
		cmocka_unit_test(hits_are_those_of_a_replay),
		cmocka_unit_test(each_tier_costs_its_reads),
		cmocka_unit_test(what_is_fetched_ahead_hits_as_it_would_have),
		cmocka_unit_test(fetches_ahead_hide_the_latency),
		cmocka_unit_test(an_epoch_begins_with_what_the_last_one_staged),
		cmocka_unit_test(large_files_are_fetched_object_by_object),
		cmocka_unit_test(a_node_keeps_what_it_accesses_most),
		cmocka_unit_test(many_nodes_read_each_sample_once),
		cmocka_unit_test(samples_have_the_numbers_of_the_loader),
		cmocka_unit_test(nodes_divide_an_epoch),
		cmocka_unit_test(locality_reads_only_what_moves),
		cmocka_unit_test(the_same_seed_gives_the_same_times),
	};

	return cmocka_run_group_tests(tests, make_data, remove_data);
}

/* SPDX-License-Identifier: MIT */
/* Simulated nodes, and what their mounts fetch ahead, against closed forms. */
#include "tests/unit/test.h"

#include <stdio.h>
#include <string.h>

#include "common/util.h"
#include "tests/contract/sim_rig.h"

/* --- many nodes ----------------------------------------------------------- */

static void nodes_divide_an_epoch(void **state)
{
	static const char *const nodes[] = { "nodes=1", "nodes=4",
					     "nodes=256" };
	double alone = 0;

	(void)state;
	for (int i = 0; i < 3; i++) {
		struct sim_rig r;

		sim_rig_run(&r, (const char *[]){ nodes[i], "batch=4",
						  "fs=storage=%/seek.yaml",
						  "workers=1", NULL });
		NEAR(sim_rig_epoch(&r, 0, "samples"), N, 0);
		NEAR(sim_rig_epoch(&r, 0, "distinct_samples"), N, 0);
		if (i == 0)
			alone = sim_rig_epoch(&r, 0, "seconds");
		else if (i == 1)
			NEAR(sim_rig_epoch(&r, 0, "seconds"), alone / 4, .05);
		NEAR((double)json_array_size(
			     json_object_get(r.record, "nodes")),
		     i ? (double)r.s.options.nodes : 0, 0);
		assert_string_equal(
			json_string_value(json_object_get(r.record, "kind")),
			"SIMULATED");
		sim_rig_done(&r);
		/* one device for all: as long as alone */
		sim_rig_run(&r, (const char *[]){ nodes[i], "batch=4",
						  "shared_storage=on",
						  "fs=storage=%/seek.yaml",
						  "workers=1", NULL });
		NEAR(sim_rig_epoch(&r, 0, "seconds"), N * 5e-3, .03);
		sim_rig_done(&r);
	}
}

static void locality_reads_only_what_moves(void **state)
{
	static const char *const orders[] = { "order=shuffle",
					      "order=locality" };
	double reads[2];

	(void)state;
	for (int i = 0; i < 2; i++) {
		struct sim_rig r;

		sim_rig_run(&r,
			    (const char *[]){ orders[i], "nodes=4", "epochs=2",
					      "fs=cache_policy=minio",
					      "fs=cache_size=25%", NULL });
		reads[i] = sim_rig_fs(&r, 1, "backend_reads");
		sim_rig_done(&r);
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
		struct sim_rig r;

		sim_rig_run(&r,
			    (const char *[]){ loaders[i], "fs=prefetch=8M",
					      "fs=cache_size=50%", "epochs=3",
					      "fs=storage=%/seek.yaml", NULL });
		sim_rig_replay(&r, "minio", .5, want);
		for (size_t e = 0; e < EPOCHS; e++) {
			NEAR(sim_rig_epoch(&r, e, "hits"), (double)want[e], 0);
			NEAR(sim_rig_epoch(&r, e, "misses"),
			     (double)(N - want[e]), 0);
			NEAR(sim_rig_epoch(&r, e, "samples"), N, 0);
			NEAR(sim_rig_ahead(&r, e, "used") +
				     sim_rig_ahead(&r, e, "missed"),
			     N, 0);
			used += sim_rig_ahead(&r, e, "used");
			prefetched += sim_rig_ahead(&r, e, "prefetched");
		}
		/* all that was fetched was used */
		NEAR(prefetched, used, 0);
		assert_true(used > N / 2.);
		sim_rig_done(&r);
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
		struct sim_rig r;

		sim_rig_run(&r, (const char *[]){ "workers=1", cases[i].depth,
						  "fs=cache_policy=none",
						  "fs=storage=%/four.yaml",
						  "fs=prefetch=2M", NULL });
		NEAR(sim_rig_epoch(&r, 0, "seconds"), cases[i].seconds, .03);
		NEAR(sim_rig_fs(&r, 0, "backend_reads"), N, 0);
		assert_true(sim_rig_ahead(&r, 0, "late") > 0);
		sim_rig_done(&r);
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
	struct sim_rig r;

	(void)state;
	sim_rig_run(&r, options);
	NEAR(sim_rig_fs(&r, 0, "backend_reads"), N + 10, 0);
	NEAR(sim_rig_fs(&r, 1, "backend_reads"), N - 10, 0);
	sim_rig_done(&r);
}

static void large_files_are_fetched_object_by_object(void **state)
{
	struct sim_rig r;

	(void)state;
	sim_rig_run(&r,
		    (const char *[]){ "data=%/large", "batch=2", "workers=1",
				      "fs=cache_policy=none", "fs=prefetch=16M",
				      "fs=storage=%/link.yaml", NULL });
	NEAR(sim_rig_fs(&r, 0, "backend_reads"), 3 * N_LARGE, 0);
	NEAR(sim_rig_fs(&r, 0, "backend_bytes"), (double)N_LARGE * LARGE, 0);
	NEAR(sim_rig_fs(&r, 0, "misses"), 3 * N_LARGE, 0);
	NEAR(sim_rig_ahead(&r, 0, "used") + sim_rig_ahead(&r, 0, "missed"),
	     3 * N_LARGE, 0);
	NEAR(sim_rig_epoch(&r, 0, "seconds"), (double)N_LARGE * LARGE / 20e6,
	     .03);
	sim_rig_done(&r);
}

/* Of two nodes, each accesses a sample k of 6 times with probability
 * C(6, k) / 64, and keeps the 40 % with the largest k. */
static void a_node_keeps_what_it_accesses_most(void **state)
{
	double hits = 0, all = 0;
	struct sim_rig r;

	(void)state;
	sim_rig_run(&r,
		    (const char *[]){ "nodes=2", "caches=partitioned",
				      "epochs=6", "fs=prefetch=1000000",
				      "fs=cache_size=40%", "batch=4", NULL });
	for (size_t e = 1; e < 6; e++) {
		hits += sim_rig_epoch(&r, e, "hits");
		all += N;
	}
	NEAR(hits / all, ((6 + 30 + 60) / 64. + 3 * (.4 - 22 / 64.)) / 3, .08);
	sim_rig_done(&r);
}

/* More nodes than a mount has peers. Each caches more than its first epoch, and
 * so all samples of it. */
static void many_nodes_read_each_sample_once(void **state)
{
	struct sim_rig r;

	(void)state;
	sim_rig_run(&r, (const char *[]){
				"nodes=128", "caches=partitioned", "batch=1",
				"epochs=3", "fs=prefetch=300000",
				"fs=cache_size=2%", "fs=storage=%/seek.yaml",
				"shared_storage=on", NULL });
	NEAR(sim_rig_fs(&r, 0, "backend_reads") +
		     sim_rig_fs(&r, 1, "backend_reads"),
	     N, 0);
	NEAR(sim_rig_fs(&r, 2, "backend_reads"), 0, 0);
	NEAR(sim_rig_epoch(&r, 2, "samples"), N, 0);
	sim_rig_done(&r);
}

static void the_same_seed_gives_the_same_times(void **state)
{
	static const char *const seeds[] = { "seed=5", "seed=5", "seed=6" };
	double seconds[3];

	(void)state;
	for (int i = 0; i < 3; i++) {
		struct sim_rig r;

		sim_rig_run(&r, (const char *[]){
					seeds[i], "nodes=3", "epochs=2",
					"fs=storage=hdd", "loader=async",
					"prep=emulated", "jitter=0.1", NULL });
		seconds[i] = sim_rig_epoch(&r, 1, "seconds");
		sim_rig_done(&r);
	}
	assert_true(seconds[0] == seconds[1]);
	assert_true(seconds[0] != seconds[2]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_is_fetched_ahead_hits_as_it_would_have),
		cmocka_unit_test(fetches_ahead_hide_the_latency),
		cmocka_unit_test(an_epoch_begins_with_what_the_last_one_staged),
		cmocka_unit_test(large_files_are_fetched_object_by_object),
		cmocka_unit_test(a_node_keeps_what_it_accesses_most),
		cmocka_unit_test(many_nodes_read_each_sample_once),
		cmocka_unit_test(nodes_divide_an_epoch),
		cmocka_unit_test(locality_reads_only_what_moves),
		cmocka_unit_test(the_same_seed_gives_the_same_times),
	};

	return cmocka_run_group_tests(tests, sim_rig_make_data,
				      sim_rig_remove_data);
}

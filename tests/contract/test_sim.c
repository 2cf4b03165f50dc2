/* SPDX-License-Identifier: MIT */
/*
 * Simulated epochs against closed forms: bound by the GPU, by storage, by the
 * transforms, by the network; hits against a replay of the same order through
 * the same cache.
 */
#include "tests/contract/list_files.h"
#include "tests/unit/test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "common/util.h"
#include "tests/contract/sim_rig.h"

/* Bound by its data, an epoch takes `want` seconds, and the GPU the time of
 * the batches that come last: one of each worker. */
static void check_bound(const struct sim_rig *r, double want)
{
	double got = sim_rig_epoch(r, 0, "seconds");
	double step = (double)device_local_ns(&r->s.job, BATCH * SIZE) / 1e9;
	double last = (double)r->s.options.workers * step;

	if (got < want || got > want * 1.01 + last + step)
		fail_msg("%g s, not %g and at most %g", got, want, last);
	NEAR(sim_rig_epoch(r, 0, "samples"), N, 0);
}

/* --- what bounds an epoch ------------------------------------------------- */

static void the_gpu_bounds_an_epoch(void **state)
{
	struct sim_rig r;
	uint64_t bytes = (uint64_t)BATCH * SIZE, copy, step, pin;

	(void)state;
	sim_rig_run(&r, (const char *[]){ "model=resnet50", NULL });
	copy = gpu_copy_ns(&r.s.gpu, r.s.model, GPU_COPY_PINNED, bytes);
	pin = gpu_copy_ns(&r.s.gpu, NULL, GPU_COPY_TO_PINNED, bytes);
	step = device_local_ns(&r.s.job, bytes) - copy;
	NEAR(sim_rig_epoch(&r, 0, "seconds") * 1e9,
	     (double)(pin + copy + N / BATCH * step), 1e-6);
	NEAR(sim_rig_epoch(&r, 0, "samples"), N, 0);
	NEAR(sim_rig_epoch(&r, 0, "distinct_samples"), N, 0);
	sim_rig_done(&r);
	/* without data that must be read the first batch is there at once */
	sim_rig_run(&r, (const char *[]){ "model=resnet50", "loader=null",
					  "samples=256", NULL });
	copy = gpu_copy_ns(&r.s.gpu, r.s.model, GPU_COPY_PINNED,
			   BATCH * r.s.node.beside.sample_bytes);
	step = device_local_ns(&r.s.job, 0) -
	       gpu_copy_ns(&r.s.gpu, r.s.model, GPU_COPY_PINNED, 0);
	NEAR(sim_rig_epoch(&r, 0, "seconds") * 1e9,
	     (double)(copy + N / BATCH * step), 1e-3);
	sim_rig_done(&r);
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
		struct sim_rig r;

		sim_rig_run(&r, (const char *[]){ cases[i].loader,
						  cases[i].storage, NULL });
		check_bound(&r, cases[i].seconds);
		NEAR(sim_rig_epoch(&r, 0, "fetch_stall_s"),
		     sim_rig_epoch(&r, 0, "data_wait_s"), .1);
		NEAR(sim_rig_fs(&r, 0, "backend_reads"), N, 0);
		NEAR(sim_rig_fs(&r, 0, "backend_bytes"), N * SIZE, 0);
		sim_rig_done(&r);
	}
}

static void transforms_bound_an_epoch(void **state)
{
	static const char *const loaders[] = { "loader=sync", "loader=async" };

	(void)state;
	for (int i = 0; i < 2; i++) {
		struct sim_rig r;

		sim_rig_run(&r,
			    (const char *[]){ loaders[i], "prep=emulated",
					      "workers=0", "cores=4", NULL });
		check_bound(&r, N * sim_rig_mean(&r, 0, "prep_ms") / 4e3);
		/* the rest is the pin stage, of batches that come together */
		NEAR(sim_rig_epoch(&r, 0, "prep_stall_s"),
		     .8 * sim_rig_epoch(&r, 0, "data_wait_s"), .25);
		NEAR(sim_rig_epoch(&r, 0, "fetch_stall_s"), 0, 0);
		sim_rig_done(&r);
	}
}

static void the_network_bounds_an_epoch(void **state)
{
	struct sim_rig r;
	double bytes;

	(void)state;
	sim_rig_run(&r,
		    (const char *[]){ "nodes=2", "caches=partitioned",
				      "fs=cache_policy=minio",
				      "fs=cache_size=50%", "fs=nic=%/node.yaml",
				      "workers=8", "epochs=2", NULL });
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
		NEAR(sim_rig_epoch(&r, i, "seconds"), 1.1 * bytes / 2 / 10e6,
		     .1);
	}
	NEAR(sim_rig_fs(&r, 0, "backend_reads"), N, 0);
	NEAR(sim_rig_fs(&r, 1, "backend_reads"), 0, 0);
	sim_rig_done(&r);
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
		struct sim_rig r;

		sim_rig_run(&r,
			    (const char *[]){ "nodes=2", "caches=partitioned",
					      "data=%/large",
					      "fs=cache_size=60%", "batch=1",
					      "fs=nic=%/card.yaml", "workers=2",
					      "epochs=2", "model=squeezenet1_1",
					      nodes[i], NULL });
		seconds[i] = sim_rig_epoch(&r, 1, "seconds");
		card[i] = sim_rig_number(&r, "nodes/0/straggler/card_s");
		sum = (4 * 4. * (double)r.s.model->parameters +
		       sim_rig_number(&r, "fs/epochs/1/peer/hit_bytes") / 2) /
		      100e6;
		sim_rig_done(&r);
	}
	NEAR(seconds[1], sum, .15);
	assert_true(seconds[0] < .8 * sum);
	assert_true(card[0] == 0 && card[1] > .1);
}

/* --- caches --------------------------------------------------------------- */

static void hits_are_those_of_a_replay(void **state)
{
	static const char *const policies[] = { "lru", "minio", "fifo",
						"sieve" };

	(void)state;
	for (size_t i = 0; i < 4; i++) {
		char policy[64];
		uint64_t want[EPOCHS];
		struct sim_rig r;

		snprintf(policy, sizeof(policy), "fs=cache_policy=%s",
			 policies[i]);
		sim_rig_run(&r,
			    (const char *[]){ policy, "fs=cache_size=50%",
					      "workers=1", "epochs=3",
					      "fs=storage=%/seek.yaml", NULL });
		sim_rig_replay(&r, policies[i], .5, want);
		for (size_t e = 0; e < EPOCHS; e++) {
			NEAR(sim_rig_epoch(&r, e, "hits"), (double)want[e], 0);
			NEAR(sim_rig_epoch(&r, e, "misses"),
			     (double)(N - want[e]), 0);
			NEAR(sim_rig_fs(&r, e, "backend_reads"),
			     N - (double)want[e], 0);
			NEAR(sim_rig_epoch(&r, e, "seconds"),
			     (N - (double)want[e]) * 5e-3, .05);
		}
		sim_rig_done(&r);
	}
}

static void each_tier_costs_its_reads(void **state)
{
	struct sim_rig r;

	(void)state;
	sim_rig_run(&r,
		    (const char *[]){ "epochs=2", "fs=storage=%/four.yaml",
				      "fs=tier=%/seek.yaml:minio:100%", NULL });
	NEAR(sim_rig_fs(&r, 1, "hits"), N, 0);
	NEAR(sim_rig_epoch(&r, 1, "seconds"), N * 5e-3, .03);
	sim_rig_done(&r);
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
	snprintf(root, sizeof(root), "%s/tree", sim_rig_dir);
	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		snprintf(path, sizeof(path),
			 "mkdir -p $(dirname %s/%s); echo %zu >%s/%s", root,
			 names[i], i, root, names[i]);
		assert_int_equal(system(path), 0);
	}
	assert_int_equal(list_files(root, &by_loader, NULL), 0);
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
		cmocka_unit_test(samples_have_the_numbers_of_the_loader),
	};

	return cmocka_run_group_tests(tests, sim_rig_make_data,
				      sim_rig_remove_data);
}

/* SPDX-License-Identifier: MIT */
/* Jobs that share a GPU: the memory that they need, and their speed there. */
#include "tests/unit/test.h"

#include <errno.h>
#include <math.h>
#include <string.h>

#include "common/units.h"
#include "common/util.h"
#include "common/rng.h"
#include "sched/core/contend.h"
#include "sched/core/storage.h"
#include "sched/trace/gnn.h"
#include "sched/trace/workload.h"

#define assert_near(a, b, d) assert_true(fabs((a) - (b)) < (d))

/* Source: a second program for the formulas of CoGNN's repository. */
static void memory_of_gnns(void **state)
{
	static const struct {
		enum gnn_model model;
		const char *graph;
		uint32_t layers;
		double gib;
	} cases[] = {
		{ GNN_GCN, "OVCAR-8H", 10, 14.294 },
		{ GNN_GCN, "cora", 4, .030 },
		{ GNN_SAGE, "Yeast", 10, 14.855 },
		{ GNN_SAGE, "citeseer", 8, .256 },
		{ GNN_GAT, "amazon0601", 8, 16.834 },
		{ GNN_GAT, "DD", 10, 11.516 },
		{ GNN_GIN, "OVCAR-8H", 8, 20.887 },
		{ GNN_GIN, "TWITTER-Real-Graph-Partial", 10, 14.747 },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		const struct gnn_graph *g = gnn_graph(cases[i].graph);

		assert_non_null(g);
		/* parameters, which that program does not have, are 1 MB */
		assert_near(gnn_memory(cases[i].model, g, cases[i].layers) /
				    GIB,
			    cases[i].gib, .0016);
	}
	assert_null(gnn_graph("karate"));
	/* layers add up */
	assert_true(gnn_memory(GNN_GCN, gnn_graph("DD"), 11) >
		    gnn_memory(GNN_GCN, gnn_graph("DD"), 10));
}

static int parse(const char *text, struct sched_workload *w, struct err *err)
{
	struct cluster c = { 0 };

	*err = (struct err){ 0 };
	return workload_parse(text, strlen(text), "f", &c, w, err);
}

static void refuses(const char *text, const char *message)
{
	struct sched_workload w;
	struct err err;

	assert_true(parse(text, &w, &err) < 0);
	assert_string_equal(err.text, message);
	workload_fini(&w);
}

static void lists_of_gnns_are_read(void **state)
{
	static const char speeds[] =
		"model,iteration_s,start_s,cold_s,busy_half_mib\n"
		"GCN,5,2,26,307\nGAT,6,2,26,0\n";
	struct sched_workload w;
	struct err err;

	(void)state;
	assert_int_equal(parse("# two\nGCN_training  OVCAR-8H 10\r\n"
			       "GAT_training cora 4",
			       &w, &err),
			 0);
	assert_string_equal(w.format, "cognn");
	assert_int_equal(w.n, 2);
	assert_string_equal(w.jobs[0].name, "GCN-OVCAR-8H-10");
	assert_int_equal(
		speeds_parse_csv(speeds, strlen(speeds), "s", &w, &err), 0);
	assert_int_equal(workload_bind(&w, &err), 0);
	assert_null(w.jobs[0].speed);
	assert_near(w.jobs[0].work_ns / NS_PER_S, 2 + 5 * 14.294, .01);
	assert_near(w.jobs[0].cold_ns / NS_PER_S, 26, 1e-9);
	assert_near(w.jobs[0].gpu_busy, 14637. / (14637 + 307), 1e-3);
	assert_near(w.jobs[1].gpu_busy, 0, 1e-9);
	workload_fini(&w);
	refuses("GCN_training cora 4\nGCN_training cora\n",
		"f:2:1: not 'MODEL_training GRAPH LAYERS'");
	refuses("GCN_training cora 4\nMLP_training cora 4\n",
		"f:2:1: 'MLP_training' is none of GCN_training, "
		"GraphSAGE_training, GAT_training, GIN_training");
	refuses("GCN_training karate 4\n", "f:1:14: unknown graph 'karate'");
	refuses("GCN_training cora 1\n", "f:1:19: layers: less than 2");
	refuses("GCN_training cora 1001\n",
		"f:1:19: layers: '1001' is not a whole number up to 1000");
}

static void speeds_need_all_columns_of_a_point_or_none(void **state)
{
	static const char half[] = "model,iteration_s,cpus\na,1,2\n";
	static const char twice[] = "model,iteration_s\na,1\na,2\n";
	struct sched_workload w = { 0 };
	struct err err = { 0 };

	(void)state;
	assert_int_equal(speeds_parse_csv(half, strlen(half), "s", &w, &err),
			 -EINVAL);
	assert_non_null(strstr(err.text, "s:1:1: of the columns 'cpus'"));
	err = (struct err){ 0 };
	assert_int_equal(speeds_parse_csv(twice, strlen(twice), "s", &w, &err),
			 -EINVAL);
	assert_string_equal(err.text, "s:3:1: 'a' for the second time");
	workload_fini(&w);
}

/* --- speed beside others -------------------------------------------------- */

enum { N_JOBS = 3 };

struct rig {
	struct cluster cluster;
	struct sched_job jobs[N_JOBS];
	struct sched_part parts[N_JOBS];
	struct contention c;
};

/* All on GPU 1 of node 1 of 10 GiB. */
static void begin(struct rig *rig, const double *busy, const uint64_t *memory)
{
	static const uint32_t active[] = { 0, 1, 2 };
	struct err err = { 0 };

	*rig = (struct rig){ 0 };
	assert_int_equal(
		nodes_parse("2*gpus=2,gpu_memory=10G", &rig->cluster, &err), 0);
	for (size_t i = 0; i < N_JOBS; i++) {
		rig->jobs[i] = workload_job();
		rig->jobs[i].work_ns = 100;
		rig->jobs[i].gpu_busy = busy[i];
		rig->jobs[i].gpu_memory_mib = memory[i];
		rig->jobs[i].state = JOB_RUNNING;
		rig->parts[i] = (struct sched_part){ .node = 1,
						     .gpus = 2,
						     .gpu_milli = 300 };
		rig->jobs[i].parts = &rig->parts[i];
		rig->jobs[i].n_parts = 1;
	}
	assert_int_equal(
		contention_init(&rig->c, &rig->cluster, rig->jobs, N_JOBS), 0);
	contention_see(&rig->c, &rig->cluster, rig->jobs, active, N_JOBS);
}

static double rate(const struct rig *rig, size_t i)
{
	return contention_rate(&rig->c, &rig->cluster, &rig->jobs[i]) * 100;
}

static void end(struct rig *rig)
{
	contention_fini(&rig->c);
	cluster_fini(&rig->cluster);
}

static void a_gpu_is_shared(void **state)
{
	struct rig rig;

	(void)state;
	/* room for all */
	begin(&rig, (double[]){ .2, .3, .5 }, (uint64_t[]){ 1, 1, 1 });
	assert_near(rate(&rig, 0), 1, 1e-9);
	end(&rig);
	/* twice as much as there is; who has no known load is not slowed */
	begin(&rig, (double[]){ 1, 1, 0 }, (uint64_t[]){ 1, 1, 1 });
	assert_near(rate(&rig, 0), .5, 1e-9);
	assert_near(rate(&rig, 1), .5, 1e-9);
	assert_near(rate(&rig, 2), 1, 1e-9);
	assert_int_equal(rig.c.n_over, 0);
	end(&rig);
	/* exactly all of the memory, and one MiB more */
	begin(&rig, (double[]){ .5, .5, 1 }, (uint64_t[]){ 5000, 5000, 240 });
	assert_near(rate(&rig, 2), .5, 1e-9);
	assert_int_equal(rig.c.n_over, 0);
	end(&rig);
	begin(&rig, (double[]){ .5, .5, 1 }, (uint64_t[]){ 5000, 5000, 241 });
	assert_near(rate(&rig, 2), .05, 1e-9);
	assert_int_equal(rig.c.n_over, 1);
	end(&rig);
}

/* --- storage -------------------------------------------------------------- */

enum { N_READERS = 8 };

/* What all need of the remote storage, after checks of what they got. */
static double split(const struct cluster *c, enum storage_rule rule,
		    struct sched_job *jobs)
{
	static const uint32_t active[] = { 0, 1, 2, 3, 4, 5, 6, 7 };
	double cache = 0, remote = 0, demand = 0, most = 0;

	assert_int_equal(storage_split_cache(c, rule, jobs, active, N_READERS),
			 0);
	assert_int_equal(storage_split_bandwidth(c, jobs, active, N_READERS),
			 0);
	for (size_t i = 0; i < N_READERS; i++) {
		assert_true(jobs[i].cache_mib <= jobs[i].dataset_mib);
		cache += jobs[i].cache_mib;
		remote += jobs[i].remote_mib_s;
		demand += storage_demand(&jobs[i]);
		most = MAX(most, jobs[i].remote_mib_s);
	}
	assert_true(cache <= c->cache_mib + 1e-6);
	assert_near(remote, MIN(demand, c->remote_mib_s), 1e-6);
	/* max-min fair: nobody who needs more has less than another one */
	for (size_t i = 0; i < N_READERS; i++)
		assert_true(jobs[i].remote_mib_s > most - 1e-6 ||
			    storage_speed(c, &jobs[i]) > 1 - 1e-9);
	return demand;
}

static void cache_goes_where_it_saves_most(void **state)
{
	struct rng rng = rng_stream(1, "storage", 0);
	struct cluster c = { 0 };
	struct err err = { 0 };
	bool differs = false;

	(void)state;
	assert_int_equal(
		nodes_parse("2*gpus=4,cache=1000M,remote=100M", &c, &err), 0);
	for (size_t k = 0; k < 100; k++) {
		struct sched_part part = { .gpus = 1, .gpu_milli = GPU_MILLI };
		struct sched_job jobs[N_READERS];
		double by_gpus, by_saving;

		for (size_t i = 0; i < N_READERS; i++) {
			jobs[i] = workload_job();
			jobs[i].state = JOB_RUNNING;
			jobs[i].parts = &part;
			jobs[i].n_parts = 1;
			jobs[i].dataset_mib = 1 + (double)rng_below(&rng, 2000);
			jobs[i].read_mib_s = 1 + (double)rng_below(&rng, 99);
		}
		by_gpus = split(&c, STORAGE_BY_GPUS, jobs);
		by_saving = split(&c, STORAGE_BY_SAVING, jobs);
		assert_true(by_saving <= by_gpus + 1e-6);
		differs = differs || by_saving < .9 * by_gpus;
	}
	assert_true(differs);
	cluster_fini(&c);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(memory_of_gnns),
		cmocka_unit_test(lists_of_gnns_are_read),
		cmocka_unit_test(speeds_need_all_columns_of_a_point_or_none),
		cmocka_unit_test(a_gpu_is_shared),
		cmocka_unit_test(cache_goes_where_it_saves_most),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: MIT */
/* What single policies do, by hand: orders, turns, groups, both kinds of
 * machines, caches. */
#include "tests/unit/test.h"

#include <math.h>
#include <string.h>

#include "common/rng.h"
#include "common/units.h"
#include "common/util.h"
#include "tests/contract/sched_rig.h"

/* When the first jobs of the only cell end. */
static void check_ends(const struct sched_sim *sim, const double *ends_s,
		       size_t n)
{
	for (size_t i = 0; i < n; i++)
		assert_int_equal(sim->cells->jobs[i].end_ns,
				 (uint64_t)(ends_s[i] * NS_PER_S));
}

/* With all jobs at once and one GPU each order has a known mean. */
static void known_orders(void **state)
{
	static const struct {
		const char *policy;
		double ends_s[3];
	} cases[] = {
		{ "fifo", { 30, 40, 60 } }, { "srtf", { 60, 10, 30 } },
		{ "srsf", { 60, 10, 30 } }, { "srpt", { 60, 10, 30 } },
		{ "sjf", { 60, 10, 30 } },
	};

	(void)state;
	for (size_t k = 0; k < ARRAY_SIZE(cases); k++) {
		struct rig rig = { 0 };
		struct sched_sim sim;

		rig_nodes(&rig, "gpus=1,cpus=2,memory=1000M");
		rig_job(&rig, 0, 30, 1, GPU_MILLI, "a");
		rig_job(&rig, 0, 10, 1, GPU_MILLI, "a");
		rig_job(&rig, 0, 20, 1, GPU_MILLI, "a");
		assert_int_equal(workload_settle(&rig.workload), 0);
		rig_run(&rig, cases[k].policy, "proportional", 0, &sim);
		check_ends(&sim, cases[k].ends_s, 3);
		sim_fini(&sim);
		rig_end(&rig);
	}
}

/* Two jobs of unequal length share one GPU by turns: least attained first. */
static void las_takes_turns(void **state)
{
	struct rig rig = { 0 };
	struct sched_sim sim;

	(void)state;
	rig_nodes(&rig, "gpus=1,cpus=2,memory=1000M");
	rig_job(&rig, 0, 100, 1, GPU_MILLI, "a");
	rig_job(&rig, 0, 50, 1, GPU_MILLI, "a");
	assert_int_equal(workload_settle(&rig.workload), 0);
	rig_run(&rig, "las", "proportional", 10, &sim);
	/* turns of 10 s until the shorter one has had its 50 */
	assert_int_equal(sim.cells->jobs[1].end_ns, 100 * NS_PER_S);
	assert_int_equal(sim.cells->jobs[0].end_ns, 150 * NS_PER_S);
	sim_fini(&sim);
	rig_end(&rig);
}

/* A share of a GPU that is free only in pieces holds up a smaller one, with
 * each placement. */
static void fifo_is_in_order(void **state)
{
	static const uint32_t milli[] = { 600, 600, 600, 200 };

	(void)state;
	for (size_t k = 0; placement_table[k]; k++) {
		struct rig rig = { 0 };
		struct sched_sim sim;

		rig_nodes(&rig, "gpus=2,cpus=2,memory=1000M");
		for (size_t i = 0; i < ARRAY_SIZE(milli); i++)
			rig_job(&rig, 0, 10 + (double)i, 1, milli[i], "a");
		assert_int_equal(workload_settle(&rig.workload), 0);
		rig_run(&rig, "fifo", placement_table[k]->name, 0, &sim);
		assert_int_equal(sim.cells->jobs[2].start_ns, 10 * NS_PER_S);
		assert_int_equal(sim.cells->jobs[3].start_ns, 10 * NS_PER_S);
		sim_fini(&sim);
		rig_end(&rig);
	}
}

/* A GPU and a node without: the job that the GPU speeds up most has it. */
static void srpt_uses_both_kinds(void **state)
{
	static const double cpu_s[] = { 24, 40, 16 };
	struct rig rig = { 0 };
	struct sched_sim sim;

	(void)state;
	rig_nodes(&rig, "gpus=1,cpus=2,memory=1000M");
	rig_nodes(&rig, "cpus=2");
	rig_job(&rig, 0, 12, 1, GPU_MILLI, "a");
	rig_job(&rig, 0, 10, 1, GPU_MILLI, "a");
	rig_job(&rig, 4, 2, 1, GPU_MILLI, "a");
	for (size_t i = 0; i < ARRAY_SIZE(cpu_s); i++)
		rig.workload.jobs[i].cpu_work_ns = cpu_s[i] * NS_PER_S;
	assert_int_equal(workload_settle(&rig.workload), 0);
	rig_run(&rig, "srpt", "proportional", 0, &sim);
	/* from 4 to 6 s it is job 2; job 1 goes on without */
	assert_int_equal(sim.cells->jobs[2].end_ns, 6 * NS_PER_S);
	/* then job 1 again, of which 10 - 4 - 2 / 4 s are left */
	assert_int_equal(sim.cells->jobs[1].end_ns / 1000, 11500000);
	/* job 0 runs without until 4 s and from 6 to 11.5, then with */
	assert_int_equal(sim.cells->jobs[0].end_ns / 1000, 18750000);
	assert_int_equal(sim.cells->jobs[0].n_preempted, 1);
	sim_fini(&sim);
	rig_end(&rig);
}

/* With nodes without GPUs as machines: all jobs are done, and some of those
 * that ask for a GPU ran there, where they take four times as long. */
static void cpu_nodes_are_machines(void **state)
{
	static const char *const policies[] = { "drf:cpus=on", "es:cpus=on",
						"sjf", "srpt", "allox" };

	(void)state;
	for (size_t k = 0; k < ARRAY_SIZE(policies); k++) {
		struct rig rig;
		struct sched_sim sim;
		size_t n_slow = 0;

		rig_begin(&rig, k);
		rig_run(&rig, policies[k], "proportional", 0, &sim);
		for (size_t i = 0; i < rig.workload.n; i++) {
			const struct sched_job *job = &sim.cells->jobs[i];

			assert_int_equal(job->state, JOB_DONE);
			n_slow += job->n_gpus && !job->gpu_busy &&
				  (double)job->run_ns > 3.9 * job->work_ns;
		}
		assert_true(n_slow > 0);
		sim_fini(&sim);
		rig_end(&rig);
	}
}

/* Each of two users has one of two GPUs and one of two CPU nodes: the second
 * job of a user waits though nobody uses the rest. */
static void equal_shares_are_of_both_kinds(void **state)
{
	static const struct {
		const char *policy;
		double ends_s[3];
	} cases[] = {
		{ "es", { 10, 20, 10 } },
		/* on a GPU and, four times as long, on a node without */
		{ "es:cpus=on", { 10, 40, 10 } },
	};

	(void)state;
	for (size_t k = 0; k < ARRAY_SIZE(cases); k++) {
		struct rig rig = { 0 };
		struct sched_sim sim;

		rig_nodes(&rig, "2*gpus=1,cpus=2");
		rig_nodes(&rig, "2*cpus=2");
		rig_job(&rig, 0, 10, 1, GPU_MILLI, "a");
		rig_job(&rig, 0, 10, 1, GPU_MILLI, "a");
		rig_job(&rig, 0, 10, 1, GPU_MILLI, "b");
		assert_int_equal(workload_settle(&rig.workload), 0);
		rig_run(&rig, cases[k].policy, "proportional", 0, &sim);
		check_ends(&sim, cases[k].ends_s, 3);
		sim_fini(&sim);
		rig_end(&rig);
	}
}

/* Two jobs of 100 s on two GPUs, with a cache of 1000 MiB; one reads that much,
 * the other ten times as much, both with 100 MiB/s at full speed. */
static void silod_caches_where_it_saves_most(void **state)
{
	static const struct {
		const char *policy;
		int remote_mib_s;
		double ends_s[2];
	} cases[] = {
		/* half of the cache each: 50 MiB/s are enough for the first,
		 * of 95 the second has 50 until it is alone */
		{ "srtf", 100, { 100, 200 - 100 * 50. / 95 } },
		{ "srtf", 50, { 200, 290 } },
		/* all of it to the first, which then needs no bandwidth */
		{ "silod", 100, { 100, 100 } },
		/* half the speed, then 50 of 90 MiB/s */
		{ "silod", 50, { 100, 190 } },
	};

	(void)state;
	for (size_t k = 0; k < ARRAY_SIZE(cases); k++) {
		struct rig rig = { 0 };
		struct sched_sim sim;
		char nodes[64];

		snprintf(nodes, sizeof(nodes), "gpus=2,cache=1000M,remote=%dM",
			 cases[k].remote_mib_s);
		rig_nodes(&rig, nodes);
		for (size_t i = 0; i < 2; i++) {
			rig_job(&rig, 0, 100, 1, GPU_MILLI, "a");
			rig.workload.jobs[i].dataset_mib = i ? 10000 : 1000;
			rig.workload.jobs[i].read_mib_s = 100;
		}
		assert_int_equal(workload_settle(&rig.workload), 0);
		rig_run(&rig, cases[k].policy, "proportional", 0, &sim);
		for (size_t i = 0; i < 2; i++)
			assert_true(fabs((double)sim.cells->jobs[i].end_ns /
						 NS_PER_S -
					 cases[k].ends_s[i]) < 1e-6);
		sim_fini(&sim);
		rig_end(&rig);
	}
}

/* One GPU of 10 GiB, which each of four jobs keeps half busy. */
static void groups_by_policy(void **state)
{
	static const uint64_t memory_mib[] = { 6000, 5000, 4000, 1000 };
	static const struct {
		const char *policy;
		double ends_s[4], over_s;
	} cases[] = {
		{ "exclusive", { 13, 26, 39, 52 }, 0 },
		{ "pipeswitch", { 10, 20, 30, 40 }, 0 },
		/* 11000 MiB are too much: ten times as slow */
		{ "mps", { 130, 130, 143, 143 }, 130 },
		{ "cognn:order=base", { 10, 20, 20, 30 }, 0 },
		{ "cognn:order=lmcf", { 30, 20, 10, 10 }, 0 },
		{ "cognn:order=bmc", { 10, 20, 20, 10 }, 0 },
		{ "cognn:order=bmc,budget=9000M", { 10, 30, 20, 10 }, 0 },
		{ "cognn:order=base,workers=3", { 10, 20, 20, 20 }, 0 },
	};

	(void)state;
	for (size_t k = 0; k < ARRAY_SIZE(cases); k++) {
		struct rig rig = { 0 };
		struct sched_sim sim;

		rig_nodes(&rig, "gpus=1,gpu_memory=10G");
		for (size_t i = 0; i < ARRAY_SIZE(memory_mib); i++) {
			rig_job(&rig, 0, 10, 1, GPU_MILLI, "a");
			rig_load(&rig, 1. / 3, memory_mib[i], 3);
		}
		assert_int_equal(workload_settle(&rig.workload), 0);
		rig_run(&rig, cases[k].policy, "proportional", 0, &sim);
		check_ends(&sim, cases[k].ends_s, ARRAY_SIZE(memory_mib));
		assert_true(sim.cells->result.over_s == cases[k].over_s);
		sim_fini(&sim);
		rig_end(&rig);
	}
}

/* In all that the contract runs: no group exceeds the memory of its GPU. */
static void cognn_never_exceeds_the_memory(void **state)
{
	static const char *const orders[] = { "base", "lmcf", "bmc" };
	double over_s = 0;

	(void)state;
	for (uint64_t seed = 0; seed < 10; seed++) {
		struct rig rig;
		struct sched_sim sim;

		rig_begin(&rig, seed);
		for (size_t i = 0; i < ARRAY_SIZE(orders); i++) {
			char policy[32];

			snprintf(policy, sizeof(policy), "cognn:order=%s",
				 orders[i]);
			rig_run(&rig, policy, "proportional", 0, &sim);
			assert_true(sim.cells->result.over_s == 0);
			sim_fini(&sim);
		}
		rig_run(&rig, "mps", "proportional", 0, &sim);
		over_s += sim.cells->result.over_s;
		sim_fini(&sim);
		rig_end(&rig);
	}
	/* it could have */
	assert_true(over_s > 0);
}

/* Jobs of one GPU that arrive at given times: when the last of them
 * ends. */
static uint64_t ends_of(const char *policy, const double (*jobs)[2], size_t n,
			uint64_t *ret_ends_s)
{
	struct rig rig = { 0 };
	struct sched_sim sim;
	uint64_t last_s = 0;

	rig_nodes(&rig, "gpus=1,cpus=2,memory=1000M");
	for (size_t i = 0; i < n; i++)
		rig_job(&rig, jobs[i][0], jobs[i][1], 1, GPU_MILLI, "a");
	assert_int_equal(workload_settle(&rig.workload), 0);
	rig_run(&rig, policy, "proportional", 0, &sim);
	for (size_t i = 0; i < n; i++) {
		ret_ends_s[i] =
			(sim.cells->jobs[i].end_ns + NS_PER_MS) / NS_PER_S;
		last_s = MAX(last_s, ret_ends_s[i]);
	}
	sim_fini(&sim);
	rig_end(&rig);
	return last_s;
}

/* A job sinks after 3250 s of GPU time, though nothing else happens:
 * the second one, still above, gets its GPU. */
static void tiresias_demotes(void **state)
{
	static const double jobs[][2] = { { 0, 5000 }, { 10, 1000 } };
	uint64_t ends_s[2];

	(void)state;
	assert_int_equal(ends_of("tiresias", jobs, 2, ends_s), 6000);
	assert_int_equal(ends_s[1], 4250);
}

/* Those that came later have had nothing, and are served first. */
static void themis_serves_who_had_least(void **state)
{
	static const double jobs[][2] = { { 0, 100 },
					  { 50, 100 },
					  { 60, 100 } };
	uint64_t ends_s[3];

	(void)state;
	assert_int_equal(ends_of("themis", jobs, 3, ends_s), 300);
	assert_int_equal(ends_s[0], 300);
	assert_int_equal(ends_s[2], 160);
}

/* --- Synergy -------------------------------------------------------------- */

static const char synergy_speeds[] =
	"model,iteration_s,memory_mib,reference_memory_mib,cpus,speed\n"
	"a,1,128000,64000,1,.3\na,1,128000,64000,3,1\n"
	"a,1,128000,64000,12,2.9\n"
	"wide,1,64000,64000,1,.37\nwide,1,64000,64000,3,1\n"
	"wide,1,64000,64000,9,2.4\n"
	"light,1,21000,21000,1,1\n";

/* Jobs for all GPUs, one in three of which needs little else. */
static void begin_full(struct rig *rig, struct rng *rng)
{
	struct sched_workload *w = &rig->workload;
	struct err err = { 0 };
	uint32_t gpus;

	*rig = (struct rig){ 0 };
	rig_nodes(rig, "4*gpus=8,cpus=24,memory=512000M");
	for (uint32_t left = 32; left; left -= gpus) {
		gpus = 1u << rng_below(rng, 5);
		gpus = MIN(gpus, left);
		rig_job(rig, 0, 10, gpus, GPU_MILLI, "a");
		if (rng_below(rng, 3) == 0)
			assert_int_equal(
				workload_class(w, "light",
					       &w->jobs[w->n - 1].class),
				0);
	}
	assert_int_equal(speeds_parse_csv(synergy_speeds,
					  strlen(synergy_speeds), "s", w, &err),
			 0);
	assert_int_equal(workload_bind(w, &err), 0);
}

/* The same GPUs, with their shares of the nodes. */
static double fair_rate(const struct rig *rig, const struct sched_job *job,
			const struct sched_part *parts, size_t n)
{
	struct sched_part fair[32];

	for (size_t i = 0; i < n; i++) {
		fair[i] = placement_part(
			parts[i].node, job, part_gpus(&parts[i]),
			placement_share(&rig->cluster.nodes[parts[i].node]));
		fair[i].gpus = parts[i].gpus;
	}
	return job_rate(&rig->cluster, job, fair, n);
}

/* Whatever the jobs: all find a place, and none is slower than with its share
 * of the nodes. Some are faster. */
static void tune_takes_from_nobody(void **state)
{
	const struct placement_ops *ops = container_of(
		plugin_find(placement_table, "placement", "tune", NULL),
		struct placement_ops, plugin);
	struct rng rng = rng_stream(1, "tune", 0);
	double gain = 0;

	(void)state;
	for (int round = 0; round < 200; round++) {
		struct sched_plan plan = { 0 };
		struct placement p;
		uint32_t which[32];
		struct rig rig;

		begin_full(&rig, &rng);
		for (uint32_t i = 0; i < rig.workload.n; i++)
			which[i] = i;
		assert_int_equal(placement_init(&p, ops, NULL, 1, &rig.cluster,
						rig.workload.jobs,
						rig.workload.n),
				 0);
		assert_int_equal(ops->place_all(&p, &rig.cluster,
						rig.workload.jobs, which,
						rig.workload.n, &plan),
				 0);
		assert_int_equal(plan.n, rig.workload.n);
		for (size_t i = 0; i < plan.n; i++) {
			const struct action *a = &plan.actions[i];
			const struct sched_job *job =
				&rig.workload.jobs[a->job];
			const struct sched_part *parts = &plan.parts[a->first];
			double rate =
				job_rate(&rig.cluster, job, parts, a->n_parts);
			double fair = fair_rate(&rig, job, parts, a->n_parts);

			assert_true(rate >= fair * (1 - 1e-9));
			gain += rate / fair - 1;
		}
		placement_fini(&p);
		plan_fini(&plan);
		rig_end(&rig);
	}
	assert_true(gain > 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(known_orders),
		cmocka_unit_test(las_takes_turns),
		cmocka_unit_test(fifo_is_in_order),
		cmocka_unit_test(srpt_uses_both_kinds),
		cmocka_unit_test(cpu_nodes_are_machines),
		cmocka_unit_test(equal_shares_are_of_both_kinds),
		cmocka_unit_test(groups_by_policy),
		cmocka_unit_test(silod_caches_where_it_saves_most),
		cmocka_unit_test(cognn_never_exceeds_the_memory),
		cmocka_unit_test(tiresias_demotes),
		cmocka_unit_test(themis_serves_who_had_least),
		cmocka_unit_test(tune_takes_from_nobody),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: MIT */
/* Groups that take turns: their time against a simulation of their slots, what
 * becomes of them when jobs come and go, and the policies that form them. */
#include "tests/unit/test.h"

#include <errno.h>
#include <math.h>
#include <string.h>

#include "common/rng.h"
#include "common/units.h"
#include "common/util.h"
#include "sched/core/interleave.h"
#include "sched/sim.h"

static void assert_near(double a, double b)
{
	if (fabs(a - b) > 1e-6 * fabs(b) + 1e-9)
		fail_msg("%.9g, not %.9g", a, b);
}

/* --- the time of an iteration --------------------------------------------- */

enum { SLOTS = 40 * STAGES };

/* The start of each slot, for jobs with these offsets. */
static double simulated_ns(const struct sched_job *const *jobs,
			   const size_t *offset, size_t n)
{
	double start[SLOTS + 1] = { 0 }, longest = 0;

	for (size_t i = 0; i < SLOTS; i++)
		for (size_t k = 0; k < n; k++) {
			size_t stage = (i + STAGES - offset[k]) % STAGES;
			const double *ns = jobs[k]->stage_ns;
			bool one = ns[STAGE_STORAGE] + ns[STAGE_CPU] > 0 ||
				   stage > STAGE_CPU;

			if (one)
				start[i + 1] =
					MAX(start[i + 1], start[i] + ns[stage]);
			else if (stage == STAGE_CPU && i)
				start[i + 1] = MAX(
					start[i + 1],
					start[i - 1] + jobs[k]->read_prep_ns);
		}
	/* the last iterations: it has settled; two, where it takes turns. No
	 * job may use one of the four starts */
	for (size_t i = 0; i < STAGES; i++)
		longest = MAX(longest, start[SLOTS - i] -
					       start[SLOTS - i - 12 * STAGES]);
	return longest / 12;
}

/* With all ways of giving the jobs from `k` on an offset of their own. */
static double least_ns(const struct sched_job *const *jobs, size_t *offset,
		       size_t n, size_t k, unsigned used)
{
	double best = INFINITY;

	if (k == n)
		return simulated_ns(jobs, offset, n);
	for (size_t o = 0; o < STAGES; o++) {
		if (used >> o & 1)
			continue;
		offset[k] = o;
		best = MIN(best,
			   least_ns(jobs, offset, n, k + 1, used | 1u << o));
	}
	return best;
}

static void an_iteration_is_the_shortest(void **state)
{
	struct rng rng = rng_stream(1, "muri", 0);

	(void)state;
	for (int round = 0; round < 400; round++) {
		struct sched_job job[GROUP_MAX] = { 0 };
		const struct sched_job *jobs[GROUP_MAX];
		size_t n = 1 + rng_below(&rng, GROUP_MAX), offset[GROUP_MAX];

		for (size_t i = 0; i < n; i++) {
			jobs[i] = &job[i];
			for (size_t k = 0; k < STAGES; k++)
				job[i].stage_ns[k] =
					(double)rng_below(&rng, 20);
			if (rng_below(&rng, 2)) {
				job[i].read_prep_ns =
					job[i].stage_ns[STAGE_STORAGE] +
					job[i].stage_ns[STAGE_CPU];
				job[i].stage_ns[STAGE_STORAGE] =
					job[i].stage_ns[STAGE_CPU] = 0;
			}
		}
		assert_near(interleave_ns(jobs, n),
			    least_ns(jobs, offset, n, 0, 0));
	}
}

static struct sched_job staged(double storage, double cpu, double gpu,
			       double net)
{
	struct sched_job job = workload_job();

	job.name = (char *)"j";
	job.state = JOB_WAITING;
	job.stage_ns[STAGE_STORAGE] = storage;
	job.stage_ns[STAGE_CPU] = cpu;
	job.stage_ns[STAGE_GPU] = gpu;
	job.stage_ns[STAGE_NETWORK] = net;
	job.iteration_ns = storage + cpu + gpu + net;
	job.work_ns = 10 * job.iteration_ns;
	return job;
}

/* Of two jobs whose storage and CPU are known together, none waits for the end
 * of a slot that neither uses. Source: the authors' simulator/matching.py. */
static void a_slot_without_a_user(void **state)
{
	struct sched_job a = staged(0, 0, 5, 300), b = staged(0, 0, 150, 20);
	const struct sched_job *jobs[] = { &a, &b };

	(void)state;
	a.read_prep_ns = 5;
	b.read_prep_ns = 150;
	assert_near(interleave_ns(jobs, 2), 325);
}

/* Four jobs with a bottleneck each run as if they were alone; of four with the
 * same one, each waits for three. */
static void bottlenecks(void **state)
{
	struct sched_job a = staged(9, 0, 0, 0), b = staged(0, 9, 0, 0);
	struct sched_job c = staged(0, 0, 9, 0), d = staged(0, 0, 0, 9);
	const struct sched_job *different[] = { &a, &b, &c, &d };
	const struct sched_job *same[] = { &c, &c, &c, &c };
	struct cluster cluster = { .interference = { [4] = .5 } };

	(void)state;
	assert_near(interleave_ns(different, 4), 9);
	assert_near(interleave_ns(same, 4), 36);
	assert_near(interleave_on(&cluster, different, 4), 13.5);
	/* alone it takes longer than its stages, and is no faster in company */
	a.iteration_ns = 20;
	assert_near(interleave_on(&cluster, different, 4), 20);
}

/* --- groups of a plan ----------------------------------------------------- */

struct rig {
	struct cluster cluster;
	struct sched_job jobs[3];
	struct sched_plan plan;
	struct err err;
};

static const struct sched_part whole = { .gpus = 1, .gpu_milli = GPU_MILLI };

static void begin(struct rig *rig)
{
	*rig = (struct rig){ 0 };
	assert_int_equal(nodes_parse("2*gpus=1", &rig->cluster, &rig->err), 0);
	rig->jobs[0] = staged(0, 30, 10, 0);
	rig->jobs[1] = staged(0, 10, 30, 0);
	rig->jobs[2] = staged(0, 0, 60, 0);
}

static void end(struct rig *rig)
{
	for (size_t i = 0; i < ARRAY_SIZE(rig->jobs); i++)
		if (rig->jobs[i].state == JOB_RUNNING)
			plan_release(&rig->cluster, &rig->jobs[i], 1000,
				     JOB_DONE);
	assert_int_equal(rig->cluster.free.gpu_milli,
			 rig->cluster.whole.gpu_milli);
	plan_fini(&rig->plan);
	cluster_fini(&rig->cluster);
}

static int apply(struct rig *rig, uint64_t now_ns)
{
	int r = plan_apply(&rig->plan, &rig->cluster, rig->jobs,
			   ARRAY_SIZE(rig->jobs), now_ns, &rig->err);

	plan_reset(&rig->plan);
	return r;
}

/* Two take turns, a third joins, the first leaves; its parts stay with them. */
static void a_group_changes(void **state)
{
	struct rig rig;

	(void)state;
	begin(&rig);
	plan_add(&rig.plan, ACTION_START, 0, &whole, 1);
	plan_group(&rig.plan, 1, 0);
	assert_int_equal(apply(&rig, 0), 0);
	assert_int_equal(rig.cluster.free.gpu_milli, 1000);
	/* 10, then 30 on the CPU beside 30 on the GPU, then 10 */
	assert_near(rig.jobs[0].rate, 1. / 500);
	assert_near(rig.jobs[1].rate, 1. / 500);
	plan_group(&rig.plan, 2, 1);
	assert_int_equal(apply(&rig, 100), 0);
	assert_near(rig.jobs[0].done, .2);
	/* on the GPU 60, 30 and 10 */
	assert_near(rig.jobs[0].rate, 1. / 1000);
	assert_near(rig.jobs[2].rate, 1. / 1000);
	plan_add(&rig.plan, ACTION_STOP, 0, NULL, 0);
	assert_int_equal(apply(&rig, 300), 0);
	assert_near(rig.jobs[0].done, .4);
	assert_near(rig.jobs[1].done, .4);
	assert_near(rig.jobs[1].rate, 1. / 900);
	assert_int_equal(rig.cluster.free.gpu_milli, 1000);
	plan_release(&rig.cluster, &rig.jobs[2], 400, JOB_DONE);
	assert_near(rig.jobs[1].rate, 1. / 400);
	assert_null(rig.jobs[1].mate);
	/* the time on GPUs is what each holds */
	assert_near(job_attained(&rig.jobs[1], 400), 400);
	end(&rig);
}

static void groups_are_checked(void **state)
{
	struct rig rig;

	(void)state;
	begin(&rig);
	plan_group(&rig.plan, 1, 0);
	assert_int_equal(apply(&rig, 0), -EINVAL);
	assert_non_null(strstr(rig.err.text, "a job that does not run"));
	rig.err.text[0] = 0;
	plan_group(&rig.plan, 1, 3);
	assert_int_equal(apply(&rig, 0), -EINVAL);
	assert_non_null(strstr(rig.err.text, "a job that is not there"));
	rig.err.text[0] = 0;
	plan_add(&rig.plan, ACTION_START, 0, &whole, 1);
	assert_int_equal(apply(&rig, 0), 0);
	rig.jobs[1].memory_mib = 1;
	plan_group(&rig.plan, 1, 0);
	assert_int_equal(apply(&rig, 0), -EINVAL);
	assert_non_null(strstr(rig.err.text, "asks for other resources"));
	rig.err.text[0] = 0;
	rig.jobs[2].iteration_ns = 0;
	plan_group(&rig.plan, 2, 0);
	assert_int_equal(apply(&rig, 0), -EINVAL);
	assert_non_null(strstr(rig.err.text, "cannot take turns"));
	rig.err.text[0] = 0;
	/* itself */
	plan_group(&rig.plan, 0, 0);
	assert_int_equal(apply(&rig, 0), -EINVAL);
	end(&rig);
}

/* --- policies ------------------------------------------------------------- */

/* Rows of the format "jobs": the ends of the jobs, in s. */
static void simulate(const char *rows, const char *nodes, const char *policy,
		     double *ret_ends_s)
{
	struct cluster c = { 0 };
	struct sched_workload w;
	struct err err = { 0 };
	struct sched_sim sim = { .cluster = &c, .workload = &w, .n_cells = 1 };

	assert_int_equal(nodes_parse(nodes, &c, &err), 0);
	if (workload_parse(rows, strlen(rows), "rows", &c, &w, &err) < 0)
		fail_msg("%s", err.text);
	sim.cells = calloc(1, sizeof(*sim.cells));
	assert_non_null(sim.cells);
	assert_int_equal(plugin_choose(schedule_table, "policy", policy,
				       &sim.cells->policy, &err),
			 0);
	assert_int_equal(plugin_choose(placement_table, "placement",
				       "proportional", &sim.cells->placement,
				       &err),
			 0);
	sim.cells->name = strdup(policy);
	if (sim_run(&sim, sim.cells, &err) < 0)
		fail_msg("%s: %s", policy, err.text);
	for (size_t i = 0; i < w.n; i++)
		ret_ends_s[i] = (double)sim.cells->jobs[i].end_ns / NS_PER_S;
	sim_fini(&sim);
	workload_fini(&w);
	cluster_fini(&c);
}

static const char mixed[] = "work_s,storage_s,prep_s,gpu_s,network_s\n"
			    "100,1,0,0,0\n100,0,0,1,0\n"
			    "100,0,0,0,1\n100,0,1,0,0\n"
			    "200,1,0,0,0\n200,0,0,1,0\n";

/* The four short ones together; then the two long ones, with each other. */
static void muri_groups_what_differs(void **state)
{
	static const char *const policies[] = { "muri_s", "muri_l" };
	double ends_s[6];

	(void)state;
	simulate(mixed, "gpus=1", "muri_s", ends_s);
	for (size_t i = 0; i < 4; i++)
		assert_near(ends_s[i], 100);
	assert_near(ends_s[4], 300);
	assert_near(ends_s[5], 300);
	/* jobs that use the same resource gain nothing: one after the other */
	for (size_t i = 0; i < ARRAY_SIZE(policies); i++) {
		simulate("work_s,gpu_s\n100,1\n100,1\n", "gpus=1", policies[i],
			 ends_s);
		assert_true(ends_s[0] <= 200 + 1e-6 && ends_s[1] <= 200 + 1e-6);
	}
	/* nor do those whose stages nobody knows */
	simulate("work_s\n100\n50\n", "gpus=1", "muri_s", ends_s);
	assert_near(ends_s[1], 50);
	assert_near(ends_s[0], 150);
}

/* The pairs that fit best make an iteration in 11 s, neighbours in 19. */
static void matching_finds_the_best_pairs(void **state)
{
	static const char rows[] = "work_s,storage_s,prep_s,gpu_s\n"
				   "100,0,9,1\n101,0,9,1\n"
				   "102,0,1,9\n103,0,1,9\n";
	double ends_s[4];

	(void)state;
	simulate(rows, "gpus=2", "muri_s:group=2", ends_s);
	assert_near(ends_s[0], 110);
	simulate(rows, "gpus=2", "muri_s:group=2,matching=off", ends_s);
	assert_near(ends_s[0], 190);
}

/* What is known of their load on a GPU does not count where they take turns;
 * where one waits for the storage, all do. */
static void groups_share_storage_alone(void **state)
{
	static const char rows[] =
		"work_s,storage_s,gpu_s,gpu_busy,gpu_memory_mib,dataset_mib,"
		"read_mib_s\n"
		"100,1,0,.9,9000,1000,100\n100,0,1,.9,9000,0,0\n";
	static const char *const nodes[] = { "gpus=1,gpu_memory=10G",
					     "gpus=1,remote=50M" };
	double ends_s[2];

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(nodes); i++) {
		simulate(rows, nodes[i], "muri_s", ends_s);
		assert_near(ends_s[0], i ? 200 : 100);
		assert_near(ends_s[1], i ? 200 : 100);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_iteration_is_the_shortest),
		cmocka_unit_test(a_slot_without_a_user),
		cmocka_unit_test(bottlenecks),
		cmocka_unit_test(a_group_changes),
		cmocka_unit_test(groups_are_checked),
		cmocka_unit_test(muri_groups_what_differs),
		cmocka_unit_test(matching_finds_the_best_pairs),
		cmocka_unit_test(groups_share_storage_alone),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

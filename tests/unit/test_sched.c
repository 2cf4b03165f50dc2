/* SPDX-License-Identifier: MIT */
/* Clusters, speeds, plans, fragmentation, placements and decisions by hand. */
#include "tests/unit/test.h"

#include <errno.h>
#include <math.h>
#include <string.h>

#include "common/units.h"
#include "common/util.h"
#include "sched/core/frag.h"
#include "sched/core/schedule.h"
#include "sched/place/synergy.h"
#include "sched/core/timeline.h"
#include "sched/trace/workload.h"

#define assert_near(a, b) assert_true(fabs((a) - (b)) < 1e-9)

static struct cluster make(const char *nodes)
{
	struct cluster c = { 0 };
	struct err err = { 0 };

	if (nodes_parse(nodes, &c, &err) < 0)
		fail_msg("%s", err.text);
	return c;
}

/* --- clusters and plans --------------------------------------------------- */

static void what_is_taken_comes_back(void **state)
{
	struct cluster c = make("2*gpus=4,cpus=8,memory=8G");
	struct sched_part p = { .node = 1,
				.gpus = 5,
				.gpu_milli = 400,
				.cpu_milli = 3000,
				.memory_mib = 100 };

	(void)state;
	assert_int_equal(c.whole.gpu_milli, 8000);
	assert_true(cluster_has(&c, &p));
	cluster_take(&c, &p);
	assert_int_equal(c.free.gpu_milli, 7200);
	assert_int_equal(c.nodes[1].gpu_free[2], 600);
	assert_int_equal(node_gpus(&c.nodes[1], 1000), 2);
	cluster_take(&c, &p);
	/* each has 200 left, and 2 CPUs are */
	assert_false(cluster_has(&c, &p));
	cluster_give(&c, &p);
	cluster_give(&c, &p);
	assert_int_equal(c.free.gpu_milli, c.whole.gpu_milli);
	assert_int_equal(c.nodes[1].held[PART_SHARE], 0);
	p.gpus = 1 << 4; /* there is no such GPU */
	assert_false(cluster_has(&c, &p));
	cluster_fini(&c);
}

static void a_plan_is_checked(void **state)
{
	struct cluster c = make("gpus=2,model=x");
	struct sched_job jobs[2] = { workload_job(), workload_job() };
	struct sched_part p = { .gpus = 1, .gpu_milli = GPU_MILLI };
	struct sched_part both = { .gpus = 3, .gpu_milli = GPU_MILLI };
	struct sched_plan plan = { 0 };
	struct err err = { 0 };

	(void)state;
	for (size_t i = 0; i < 2; i++) {
		jobs[i].name = (char *)(i ? "b" : "a");
		jobs[i].state = JOB_WAITING;
		jobs[i].work_ns = 100;
	}
	/* the same GPU twice */
	plan_add(&plan, ACTION_START, 0, &p, 1);
	plan_add(&plan, ACTION_START, 1, &p, 1);
	assert_int_equal(plan_apply(&plan, &c, jobs, 2, 0, &err), -EINVAL);
	assert_non_null(strstr(err.text, "job b gets what is not free"));
	plan_release(&c, &jobs[0], 0, JOB_WAITING);
	free(jobs[1].parts);
	jobs[1].parts = NULL;
	/* more GPUs than asked for */
	plan_reset(&plan);
	err = (struct err){ 0 };
	plan_add(&plan, ACTION_START, 0, &both, 1);
	assert_int_equal(plan_apply(&plan, &c, jobs, 2, 0, &err), -EINVAL);
	assert_non_null(strstr(err.text, "another number of GPUs"));
	/* a job that does not run */
	plan_reset(&plan);
	err = (struct err){ 0 };
	plan_add(&plan, ACTION_STOP, 1, NULL, 0);
	assert_int_equal(plan_apply(&plan, &c, jobs, 2, 0, &err), -EINVAL);
	/* two change places: all is given back before any is taken */
	plan_reset(&plan);
	plan_add(&plan, ACTION_START, 0, &p, 1);
	p.gpus = 2;
	plan_add(&plan, ACTION_START, 1, &p, 1);
	assert_int_equal(plan_apply(&plan, &c, jobs, 2, 10, &err), 0);
	plan_reset(&plan);
	plan_add(&plan, ACTION_CHANGE, 0, &p, 1);
	p.gpus = 1;
	plan_add(&plan, ACTION_CHANGE, 1, &p, 1);
	assert_int_equal(plan_apply(&plan, &c, jobs, 2, 30, &err), 0);
	assert_near(jobs[0].done, .2);
	assert_int_equal(job_due(&jobs[0]), 110);
	assert_near(job_left(&jobs[0], 60), 50);
	assert_near(job_attained(&jobs[0], 60), 50);
	plan_release(&c, &jobs[0], 110, JOB_DONE);
	plan_release(&c, &jobs[1], 110, JOB_DONE);
	assert_int_equal(jobs[1].run_ns, 100);
	assert_int_equal(c.free.gpu_milli, 2000);
	plan_fini(&plan);
	cluster_fini(&c);
}

static void speeds_follow_cpus_and_memory(void **state)
{
	struct speed s = { .memory_mib = 2000,
			   .reference_memory_mib = 1000,
			   .n = 3,
			   .cpus = { 1, 3, 9 },
			   .speed = { .4, 1, 2.4 } };

	(void)state;
	assert_near(speed_of(&s, .5, 2000), .2);
	assert_near(speed_of(&s, 1, 2000), .4);
	assert_near(speed_of(&s, 2, 2000), .7);
	assert_near(speed_of(&s, 6, 2000), 1.7);
	assert_near(speed_of(&s, 90, 2000), 2.4);
	/* the reference allocation, whatever more memory would do */
	assert_near(speed_of(&s, 3, 1000), 1);
	assert_near(speed_of(&s, 9, 1999), 1);
	assert_near(speed_of(&s, 9, 500), .5);
}

/* Without a bound, the first of each pair is above the point by a rounding. */
static void speeds_never_fall_with_more_cpus(void **state)
{
	struct speed line = { .n = 3,
			      .cpus = { 1.5, 2.5, 4 },
			      .speed = { .183, .886, .886 } };
	struct speed first = { .n = 1, .cpus = { 1.3 }, .speed = { 1.846 } };

	(void)state;
	assert_true(speed_of(&line, 2.5, 0) <= speed_of(&line, 3, 0));
	assert_true(speed_of(&first, 1.3, 0) <= speed_of(&first, 2, 0));
}

/* Half a GPU with half of its CPUs is as fast as all of both. */
static void a_share_has_the_speed_of_the_whole(void **state)
{
	struct speed s = { .n = 2,
			   .cpus = { 1, 4 },
			   .speed = { .25, 1 },
			   .reference_memory_mib = 1 };
	struct sched_job job = workload_job();
	struct sched_part p = { .gpus = 1,
				.gpu_milli = 500,
				.cpu_milli = 1000 };
	struct cluster c = { 0 };

	(void)state;
	job.speed = &s;
	job.work_ns = 1;
	job.gpu_milli = 500;
	assert_near(job_rate(&c, &job, &p, 1), .5);
	p.cpu_milli = 2000;
	assert_near(job_rate(&c, &job, &p, 1), 1);
	/* without a GPU its speed is not known, and is 1 */
	job.n_gpus = 0;
	p.gpus = 0;
	assert_near(job_rate(&c, &job, &p, 1), 1);
}

/* 1 s of forward and backward pass, 2/3 s of which hides what is reduced. */
static void gradients_cross_the_slowest_link(void **state)
{
	struct sched_node nodes[] = { { .link_mib_s = 100 },
				      { .link_mib_s = 50 },
				      { 0 } };
	struct cluster c = { .nodes = nodes, .n = 3 };
	struct sched_part parts[] = { { 0, 1, GPU_MILLI, 0, 0 },
				      { 0, 2, GPU_MILLI, 0, 0 },
				      { 1, 1, GPU_MILLI, 0, 0 },
				      { 2, 1, GPU_MILLI, 0, 0 } };
	struct sched_job job = workload_job();

	(void)state;
	job.n_gpus = 2;
	job.work_ns = 1;
	job.iteration_ns = NS_PER_S;
	job.gradient_mib = 100;
	/* on a node */
	assert_near(job_rate(&c, &job, parts, 2), 1);
	/* two nodes: 2 (2 - 1) / 2 x 100 MiB at 50 MiB/s, 2 s */
	assert_near(job_rate(&c, &job, parts + 1, 2), 1 / (1 + 2 - 2 / 3.));
	/* three: 4/3 of them */
	assert_near(job_rate(&c, &job, parts, 4), 1 / (1 + 8 / 3. - 2 / 3.));
	nodes[1].link_mib_s = 0;
	assert_near(job_rate(&c, &job, parts + 2, 2), 1);
	nodes[1].link_mib_s = 200; /* hidden */
	assert_near(job_rate(&c, &job, parts + 2, 2), 1);
	/* of an iteration that is half GPU time, 1/3 s hides it */
	nodes[1].link_mib_s = 50;
	job.stage_ns[STAGE_GPU] = NS_PER_S / 2;
	assert_near(job_rate(&c, &job, parts + 1, 2), 1 / (1 + 2 - 1 / 3.));
}

static void profiling_needs_few_points(void **state)
{
	struct speed s = { .n = 3,
			   .cpus = { 1, 8, 24 },
			   .speed = { .2, 1.6, 1.7 } };
	unsigned n;

	(void)state;
	/* 8 CPUs give all but 6 %; 7.74 are within 10 % */
	assert_int_equal(synergy_profile(&s, 24, &n), 8);
	assert_true(n <= 6);
	s = (struct speed){ .n = 1, .cpus = { 1 }, .speed = { 1 } };
	assert_int_equal(synergy_profile(&s, 24, &n), 1);
}

/* --- fragmentation -------------------------------------------------------- */

/* The cases of the paper: what each typical job leaves of a node. */
static void fragmentation_by_cases(void **state)
{
	struct cluster c = make("gpus=4,cpus=16,model=x");
	struct sched_node *n = &c.nodes[0];
	struct frag_job j = { .n_gpus = 1, .gpu_milli = 500, .share = 1 };
	struct frag f = { &j, 1 };

	(void)state;
	n->gpu_free[0] = 300;
	n->gpu_free[1] = 500;
	n->gpu_free[2] = 0;
	/* 300 are too few for a share of 500 */
	assert_near(frag_node(&f, n), 300);
	/* a whole GPU: the rests of two are lost, one is not */
	j.gpu_milli = 1000;
	assert_near(frag_node(&f, n), 800);
	/* two: none is of use */
	j.n_gpus = 2;
	assert_near(frag_node(&f, n), 1800);
	/* too few CPUs; a model that it may not use; no GPU at all */
	j = (struct frag_job){
		.n_gpus = 1, .gpu_milli = 100, .cpu_milli = 16001, .share = 1
	};
	assert_near(frag_node(&f, n), 1800);
	j.cpu_milli = 16000;
	assert_near(frag_node(&f, n), 0);
	j.models = 2;
	assert_near(frag_node(&f, n), 1800);
	j = (struct frag_job){ .share = 1 };
	assert_near(frag_node(&f, n), 1800);
	/* by their share */
	j = (struct frag_job){ .n_gpus = 1, .gpu_milli = 1000, .share = .25 };
	assert_near(frag_node(&f, n), 200);
	cluster_fini(&c);
}

static void typical_jobs_are_the_most_frequent(void **state)
{
	struct sched_job jobs[100];
	struct frag f;

	(void)state;
	for (size_t i = 0; i < 100; i++) {
		jobs[i] = workload_job();
		jobs[i].cpu_milli = i < 60 ? 1 : i < 96 ? 2 : (uint32_t)i;
	}
	assert_int_equal(frag_init(&f, jobs, 100), 0);
	assert_int_equal(f.n, 2);
	assert_near(f.typical[0].share, 60. / 96);
	assert_int_equal(f.typical[1].cpu_milli, 2);
	frag_fini(&f);
}

/* --- placements ----------------------------------------------------------- */

static const struct placement_ops *placement_of(const char *name)
{
	const struct plugin *p =
		plugin_find(placement_table, "placement", name, NULL);

	assert_non_null(p);
	return container_of(p, struct placement_ops, plugin);
}

static void jobs_are_packed(void **state)
{
	struct cluster c = make("3*gpus=4,cpus=8,memory=4000M");
	struct sched_job job = workload_job();
	struct placement p;
	struct sched_part parts[16],
		used = { .node = 1, .gpus = 1, .gpu_milli = GPU_MILLI };

	(void)state;
	assert_int_equal(placement_init(&p, placement_of("proportional"), NULL,
					1, &c, &job, 1),
			 0);
	cluster_take(&c, &used);
	/* the fullest, with a quarter of it */
	assert_int_equal(placement_place(&p, &c, &job, parts), 1);
	assert_int_equal(parts[0].node, 1);
	assert_int_equal(parts[0].cpu_milli, 2000);
	assert_int_equal(parts[0].memory_mib, 1000);
	job.n_gpus = 4;
	assert_int_equal(placement_place(&p, &c, &job, parts), 1);
	assert_int_equal(parts[0].node, 0);
	/* over as few as possible */
	job.n_gpus = 10;
	assert_int_equal(placement_place(&p, &c, &job, parts), 3);
	assert_int_equal(part_gpus(&parts[0]) + part_gpus(&parts[1]) +
				 part_gpus(&parts[2]),
			 10);
	job.n_gpus = 12;
	assert_int_equal(placement_place(&p, &c, &job, parts), 0);
	placement_fini(&p);
	cluster_fini(&c);
}

/* Of a whole GPU and one that is half used, a share goes to the second. */
static void fgd_keeps_whole_gpus_whole(void **state)
{
	struct cluster c = make("2*gpus=1,cpus=8,memory=4000M");
	struct sched_job jobs[2] = { workload_job(), workload_job() };
	struct sched_part used = { .node = 1, .gpus = 1, .gpu_milli = 500 },
			  part;
	struct placement p;

	(void)state;
	jobs[1].gpu_milli = 500;
	jobs[1].cpu_milli = 1000;
	jobs[1].shape = 1;
	assert_int_equal(placement_init(&p, placement_of("fgd"), NULL, 1, &c,
					jobs, 2),
			 0);
	/* remembered, and forgotten when the node changes */
	assert_int_equal(placement_place(&p, &c, &jobs[1], &part), 1);
	assert_int_equal(part.node, 0);
	cluster_take(&c, &used);
	assert_int_equal(placement_place(&p, &c, &jobs[1], &part), 1);
	assert_int_equal(part.node, 1);
	assert_int_equal(placement_place(&p, &c, &jobs[0], &part), 1);
	assert_int_equal(part.node, 0);
	placement_fini(&p);
	cluster_fini(&c);
}

/* --- timelines ------------------------------------------------------------ */

static void a_timeline_keeps_means_and_sums(void **state)
{
	struct sched_timeline t;
	double sum = 0;

	(void)state;
	timeline_init(&t, 5 * NS_PER_S);
	timeline_add(&t, 6 * NS_PER_S, 4);
	timeline_add(&t, 6 * NS_PER_S, 9);
	timeline_add(&t, 8 * NS_PER_S, 1);
	timeline_add(&t, 1005 * NS_PER_S, 0);
	assert_true(timeline_n(&t) > TIMELINE_BINS / 2);
	assert_true(timeline_n(&t) <= TIMELINE_BINS);
	for (size_t i = 0; i < timeline_n(&t); i++)
		sum += t.sum[i];
	assert_near(sum / NS_PER_S, 6);
	/* a last bin in part: the mean is of that part */
	timeline_init(&t, 0);
	for (uint64_t i = 1; i <= 777; i++)
		timeline_add(&t, i * NS_PER_S, 3);
	for (size_t i = 0; i < timeline_n(&t); i++)
		assert_near(timeline_mean(&t, i), 3);
	timeline_init(&t, 7);
	assert_int_equal(timeline_n(&t), 0);
}

/* --- decisions ------------------------------------------------------------ */

struct rig {
	struct cluster c;
	struct sched_workload w;
	struct sched_schedule s;
	struct sched_plan plan;
	struct view v;
	uint32_t active[4];
};

static const struct schedule_ops *policy_of(const char *name)
{
	const struct plugin *p =
		plugin_find(schedule_table, "policy", name, NULL);

	assert_non_null(p);
	return container_of(p, struct schedule_ops, plugin);
}

/* Four jobs, all waiting. */
static void rig_init(struct rig *r, const char *policy, const char *placement,
		     const char *nodes)
{
	static const char text[] = "work_s\n9\n8\n7\n6\n";
	struct err err = { 0 };

	*r = (struct rig){ .c = make(nodes) };
	assert_int_equal(
		workload_parse(text, strlen(text), "f", &r->c, &r->w, &err), 0);
	for (uint32_t i = 0; i < 4; i++) {
		r->active[i] = i;
		r->w.jobs[i].state = JOB_WAITING;
	}
	r->v = (struct view){ .cluster = &r->c,
			      .jobs = r->w.jobs,
			      .n_jobs = 4,
			      .active = r->active,
			      .n_active = 4,
			      .n_users = r->w.n_users };
	assert_int_equal(schedule_init(&r->s, policy_of(policy), NULL,
				       placement_of(placement), NULL, 1, &r->v,
				       &err),
			 0);
}

/* Returns how many actions there were. */
static size_t decide(struct rig *r)
{
	struct err err = { 0 };

	assert_int_equal(schedule_decide(&r->s, &r->v, &r->plan), 0);
	if (plan_apply(&r->plan, &r->c, r->w.jobs, 4, r->v.now_ns, &err) < 0)
		fail_msg("%s", err.text);
	return r->plan.n;
}

static void rig_fini(struct rig *r)
{
	for (uint32_t i = 0; i < 4; i++)
		if (r->w.jobs[i].state == JOB_RUNNING)
			plan_release(&r->c, &r->w.jobs[i], 0, JOB_WAITING);
	schedule_fini(&r->s);
	plan_fini(&r->plan);
	workload_fini(&r->w);
	cluster_fini(&r->c);
}

/* Who runs on a node that is down stays there, whoever comes, and whatever is
 * placed anew. */
static void jobs_on_a_node_that_is_down_stay(void **state)
{
	static const char *const policies[] = { "fifo",	    "srtf",   "las",
						"tiresias", "themis", "srpt",
						"muri_s",   "muri_l" };
	static const char *const placements[] = { "proportional", "greedy",
						  "tune" };

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(policies) * ARRAY_SIZE(placements);
	     i++) {
		struct rig r;

		rig_init(&r, policies[i % ARRAY_SIZE(policies)],
			 placements[i / ARRAY_SIZE(policies)],
			 "2*gpus=1,cpus=3,memory=3G");
		r.w.jobs[3].state = JOB_ABSENT;
		r.v.n_active = 3;
		decide(&r);
		assert_int_equal(r.c.free.gpu_milli, 0);
		for (uint32_t k = 0; k < 2; k++)
			cluster_set_down(&r.c, k, true);
		r.w.jobs[3].state = JOB_WAITING; /* the shortest */
		r.v.n_active = 4;
		if (decide(&r))
			fail_msg("%s", policies[i % ARRAY_SIZE(policies)]);
		/* they are up: some of the policies stop one for it */
		for (uint32_t k = 0; k < 2; k++)
			cluster_set_down(&r.c, k, false);
		decide(&r);
		if (!strcmp(policies[i % ARRAY_SIZE(policies)], "srtf"))
			assert_int_equal(r.w.jobs[3].state, JOB_RUNNING);
		rig_fini(&r);
	}
}

/* The GPUs of a node are alike: nobody moves to that of a job that is done. */
static void a_job_that_stays_keeps_its_gpus(void **state)
{
	struct rig r;

	(void)state;
	rig_init(&r, "fifo", "tune", "gpus=3,cpus=3,memory=3G");
	assert_int_equal(decide(&r), 3);
	plan_release(&r.c, &r.w.jobs[0], 0, JOB_DONE);
	r.v.active++;
	r.v.n_active--;
	assert_int_equal(decide(&r), 1);
	assert_int_equal(r.plan.actions[0].job, 3);
	assert_int_equal(r.w.jobs[3].parts[0].gpus, 1);
	assert_int_equal(r.w.jobs[1].n_moved + r.w.jobs[2].n_moved, 0);
	rig_fini(&r);
}

/* A kept queue learns of a job that failed, and of what is left of it. */
static void a_job_that_failed_waits_again(void **state)
{
	static const char *const policies[] = { "fifo", "srtf", "las" };

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(policies); i++) {
		struct rig r;

		rig_init(&r, policies[i], "proportional", "gpus=4,cpus=4");
		assert_int_equal(decide(&r), 4);
		for (uint32_t k = 0; k < 4; k++)
			plan_release(&r.c, &r.w.jobs[k], 0, JOB_WAITING);
		schedule_refresh(&r.s);
		assert_int_equal(decide(&r), 4);
		rig_fini(&r);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_is_taken_comes_back),
		cmocka_unit_test(a_plan_is_checked),
		cmocka_unit_test(speeds_follow_cpus_and_memory),
		cmocka_unit_test(speeds_never_fall_with_more_cpus),
		cmocka_unit_test(a_share_has_the_speed_of_the_whole),
		cmocka_unit_test(gradients_cross_the_slowest_link),
		cmocka_unit_test(profiling_needs_few_points),
		cmocka_unit_test(fragmentation_by_cases),
		cmocka_unit_test(typical_jobs_are_the_most_frequent),
		cmocka_unit_test(jobs_on_a_node_that_is_down_stay),
		cmocka_unit_test(a_job_that_stays_keeps_its_gpus),
		cmocka_unit_test(a_job_that_failed_waits_again),
		cmocka_unit_test(jobs_are_packed),
		cmocka_unit_test(fgd_keeps_whole_gpus_whole),
		cmocka_unit_test(a_timeline_keeps_means_and_sums),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

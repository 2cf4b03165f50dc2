/* SPDX-License-Identifier: MIT */
/*
 * Every policy with every placement: nothing is given twice (the driver checks
 * each plan), no job is lost, runs repeat, and what a policy promises holds.
 */
#include "tests/unit/test.h"

#include <string.h>

#include "common/rng.h"
#include "common/units.h"
#include "common/util.h"
#include "tests/contract/sched_rig.h"
#include "tests/contract/tested.h"

static const struct plugin *const *tested;

static const struct schedule_ops *policy_of(const struct sched_sim_cell *c)
{
	return container_of(c->policy.plugin, struct schedule_ops, plugin);
}

static void check_jobs(const struct sched_sim *sim)
{
	const struct sched_sim_cell *c = sim->cells;
	const struct schedule_ops *ops = policy_of(c);

	for (size_t i = 0; i < sim->workload->n; i++) {
		const struct sched_job *job = &c->jobs[i];
		double fastest = 1.8;

		assert_int_equal(job->state, JOB_DONE);
		assert_null(job->parts);
		assert_true(job->start_ns >= job->arrival_ns);
		assert_true(job->end_ns - job->start_ns >= job->run_ns);
		assert_true((double)job->run_ns >= job->work_ns / fastest - 1);
		if (!ops->preempts)
			assert_int_equal(job->n_preempted, 0);
		/* in order: nobody starts before those ahead of him */
		if (ops->in_order && i)
			assert_true(job->start_ns >= c->jobs[i - 1].start_ns);
	}
	assert_true(c->result.utilisation > 0 && c->result.utilisation <= 1);
	assert_true(c->result.all.jain > 0 && c->result.all.jain <= 1.0001);
}

/* Greedy may leave a running job out of a round. */
static bool keeps_promises(const char *placement)
{
	return strcmp(placement, "greedy") != 0;
}

static void each_pair(void (*fn)(struct rig *, const char *, const char *))
{
	struct rig rig;

	for (size_t i = 0; tested[i]; i++)
		for (size_t k = 0; placement_table[k]; k++) {
			rig_begin(&rig, i);
			fn(&rig, tested[i]->name, placement_table[k]->name);
			rig_end(&rig);
		}
}

static void all_complete(struct rig *rig, const char *policy,
			 const char *placement)
{
	struct sched_sim sim;

	rig_run(rig, policy, placement, 0, &sim);
	if (keeps_promises(placement))
		check_jobs(&sim);
	sim_fini(&sim);
	rig_run(rig, policy, placement, 20, &sim);
	if (keeps_promises(placement))
		check_jobs(&sim);
	sim_fini(&sim);
}

static void every_job_completes(void **state)
{
	(void)state;
	each_pair(all_complete);
}

static void same_twice(struct rig *rig, const char *policy,
		       const char *placement)
{
	struct sched_sim a, b;

	rig_run(rig, policy, placement, 0, &a);
	rig_run(rig, policy, placement, 0, &b);
	for (size_t i = 0; i < rig->workload.n; i++)
		assert_int_equal(a.cells->jobs[i].end_ns,
				 b.cells->jobs[i].end_ns);
	sim_fini(&a);
	sim_fini(&b);
}

static void runs_repeat(void **state)
{
	(void)state;
	each_pair(same_twice);
}

/* A job of the whole cluster, in a stream that leaves a tenth of it. */
static uint64_t end_of_wide_job(const char *policy, uint64_t *ret_last)
{
	struct rig rig = { 0 };
	struct sched_sim sim;
	uint64_t end_ns = 0;

	rig_nodes(&rig, "2*gpus=4,cpus=8,memory=8000M");
	for (size_t i = 0; i < 1000; i++)
		rig_job(&rig, 14. * (double)i, 100, 1, GPU_MILLI, "a");
	rig_job(&rig, 500, 1000, 8, GPU_MILLI, "b");
	assert_int_equal(workload_settle(&rig.workload), 0);
	rig_run(&rig, policy, "proportional", 0, &sim);
	for (size_t i = 0; i < rig.workload.n; i++)
		if (rig.workload.jobs[i].n_gpus == 8)
			end_ns = sim.cells->jobs[i].end_ns;
	*ret_last = rig.workload.jobs[rig.workload.n - 1].arrival_ns;
	sim_fini(&sim);
	rig_end(&rig);
	return end_ns;
}

static void no_job_starves_where_promised(void **state)
{
	uint64_t last;

	(void)state;
	for (size_t i = 0; tested[i]; i++) {
		const struct schedule_ops *ops =
			container_of(tested[i], struct schedule_ops, plugin);

		if (ops->no_starvation && !ops->places)
			assert_true(end_of_wide_job(ops->plugin.name, &last) <
				    last);
	}
	/* the stream is one in which a job can starve */
	assert_true(end_of_wide_job("srsf", &last) > last);
}

/* --- the queue is kept from one decision to the next ---------------------- */

/* A queue that is kept decides as one that is made anew each time. */
static void kept_as_anew(struct rig *rig, const char *policy,
			 const char *placement)
{
	const struct plugin *p =
		plugin_find(schedule_table, "policy", policy, NULL);
	struct schedule_ops anew =
		*container_of(p, struct schedule_ops, plugin);

	anew.key_motion = KEY_MOVES;
	for (uint64_t round_s = 0; round_s <= 20; round_s += 20) {
		struct sched_sim a, b;

		rig_run(rig, policy, placement, round_s, &a);
		rig_run_ops(rig, &anew, placement, round_s, &b);
		for (size_t i = 0; i < rig->workload.n; i++) {
			const struct sched_job *x = &a.cells->jobs[i];
			const struct sched_job *y = &b.cells->jobs[i];

			assert_int_equal(x->start_ns, y->start_ns);
			assert_int_equal(x->end_ns, y->end_ns);
			assert_int_equal(x->n_preempted, y->n_preempted);
		}
		sim_fini(&a);
		sim_fini(&b);
	}
}

static void the_kept_queue_decides_the_same(void **state)
{
	(void)state;
	each_pair(kept_as_anew);
}

/* What the policy says of its key holds, to the last bit. */
static void keys_move_as_declared(void **state)
{
	(void)state;
	for (size_t i = 0; tested[i]; i++) {
		const struct schedule_ops *ops =
			container_of(tested[i], struct schedule_ops, plugin);
		struct sched_part part = { .gpus = 3, .gpu_milli = GPU_MILLI };
		struct sched_job job = workload_job();
		double last;

		if (!ops->key || ops->key_motion == KEY_MOVES)
			continue;
		job.n_gpus = 2;
		job.work_ns = 1e9 / 3;
		job.arrival_ns = 1;
		job.state = JOB_WAITING;
		assert_true(ops->key(&job, 2) == ops->key(&job, 123456789));
		job.state = JOB_RUNNING;
		job.since_ns = 5;
		job.rate = 1 / job.work_ns;
		job.parts = &part;
		job.n_parts = 1;
		last = ops->key(&job, 5);
		for (uint64_t now = 5; now < 300000000; now += 7777777) {
			double key = ops->key(&job, now);

			if (ops->key_motion == KEY_FALLS)
				assert_true(key <= last);
			last = key;
		}
		/* stopped: where it was when it ran */
		last = ops->key(&job, 300000000);
		job_advance(&job, 300000000);
		job.state = JOB_WAITING;
		assert_true(ops->key(&job, 400000000) == last);
	}
}

static uint64_t n_keys;

static double counted_key(const struct sched_job *job, uint64_t now_ns)
{
	n_keys++;
	return job_left(job, now_ns);
}

/* A decision looks at few jobs, however many wait. */
static void long_queues_cost_little(void **state)
{
	enum { JOBS = 3000 };
	const struct plugin *p =
		plugin_find(schedule_table, "policy", "srtf", NULL);
	struct schedule_ops ops = *container_of(p, struct schedule_ops, plugin);
	struct rng rng = rng_stream(1, "sched", 0);
	struct rig rig = { 0 };
	struct sched_sim sim;

	(void)state;
	rig_nodes(&rig, "2*gpus=8");
	for (size_t i = 0; i < JOBS; i++)
		rig_job(&rig, (double)rng_below(&rng, 1000),
			1 + (double)rng_below(&rng, 900),
			1 + (uint32_t)rng_below(&rng, 4), GPU_MILLI, "a");
	assert_int_equal(workload_settle(&rig.workload), 0);
	ops.key = counted_key;
	n_keys = 0;
	rig_run_ops(&rig, &ops, "proportional", 0, &sim);
	assert_true(sim.cells->result.n_decisions > JOBS);
	assert_true(n_keys < 10 * sim.cells->result.n_decisions);
	sim_fini(&sim);
	rig_end(&rig);
}

/* All jobs run, and none on the GPUs of the first node, which are down. */
static void run_beside(const struct schedule_ops *ops, const char *placement)
{
	struct rig rig = { 0 };
	struct history *h;
	struct sched_sim sim;

	rig_nodes(&rig, "2*gpus=4,cpus=8,memory=4000M,gpu_memory=9000M");
	rig_nodes(&rig, "cpus=4,memory=4000M");
	for (uint32_t i = 0; i < 24; i++) {
		struct sched_job *job;

		rig_job(&rig, i / 3, 5 + i % 7, i % 4 == 3 ? 2 : 1,
			i % 4 == 2 ? 300 : GPU_MILLI, i % 2 ? "a" : "b");
		job = &rig.workload.jobs[i];
		job->stage_ns[i % STAGES] = NS_PER_S;
		job->iteration_ns = i % 3 ? NS_PER_S : 0;
		if (i % 8 == 0)
			rig_load(&rig, .6, 1000, 1);
	}
	assert_int_equal(workload_settle(&rig.workload), 0);
	cluster_set_down(&rig.cluster, 0, true);
	rig_run_ops(&rig, ops, placement, 0, &sim);
	h = &sim.cells->history;
	assert_true(h->n >= 24);
	for (size_t i = 0; i < h->n_parts; i++)
		if (h->parts[i].gpus && !h->parts[i].node)
			fail_msg("%s %s starts jobs on a node that is down",
				 ops->plugin.name, placement);
	sim_fini(&sim);
	rig_end(&rig);
}

static void nodes_that_are_down_get_nothing(void **state)
{
	(void)state;
	for (size_t i = 0; tested[i]; i++) {
		const struct schedule_ops *ops =
			container_of(tested[i], struct schedule_ops, plugin);

		for (size_t k = 0; placement_table[k]; k++) {
			run_beside(ops, placement_table[k]->name);
			if (ops->places)
				break;
		}
	}
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_job_completes),
		cmocka_unit_test(runs_repeat),
		cmocka_unit_test(no_job_starves_where_promised),
		cmocka_unit_test(the_kept_queue_decides_the_same),
		cmocka_unit_test(keys_move_as_declared),
		cmocka_unit_test(long_queues_cost_little),
		cmocka_unit_test(nodes_that_are_down_get_nothing),
	};

	tested = tested_parts(argc, argv, schedule_table);
	return cmocka_run_group_tests(tests, NULL, NULL);
}

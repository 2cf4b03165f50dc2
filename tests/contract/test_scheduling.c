/* SPDX-License-Identifier: MIT */
/*
 * Every policy with every placement: nothing is given twice (the driver checks
 * each plan), no job is lost, runs repeat, and what a policy promises holds.
 */
#include "tests/unit/test.h"

#include <math.h>
#include <string.h>

#include "common/rng.h"
#include "common/units.h"
#include "common/util.h"
#include "sched/sim.h"

enum { N_JOBS = 60 };

struct rig {
	struct cluster cluster;
	struct workload workload;
};

static void add_nodes(struct rig *rig, const char *text)
{
	struct err err = { 0 };

	assert_int_equal(nodes_parse(text, &rig->cluster, &err), 0);
}

static void add_job(struct rig *rig, double arrival_s, double work_s,
		    uint32_t gpus, uint32_t milli, const char *user)
{
	struct job job = workload_job();

	job.arrival_ns = (uint64_t)(arrival_s * NS_PER_S);
	job.work_ns = work_s * NS_PER_S;
	job.cpu_work_ns = 4 * job.work_ns;
	job.alone_cpu_milli = 2000;
	job.n_gpus = gpus;
	job.gpu_milli = milli;
	assert_int_equal(workload_user(&rig->workload, user, &job.user), 0);
	assert_int_equal(workload_class(&rig->workload, gpus > 1 ? "wide" : "a",
					&job.class),
			 0);
	assert_int_equal(workload_add(&rig->workload, &job, 1), 0);
}

/* The last one that was added: what it needs of a GPU is known. */
static void set_load(struct rig *rig, double busy, uint64_t memory_mib,
		     double cold_s)
{
	struct job *job = &rig->workload.jobs[rig->workload.n - 1];

	job->gpu_busy = busy;
	job->gpu_memory_mib = memory_mib;
	job->cold_ns = cold_s * NS_PER_S;
}

static const char speeds[] =
	"model,iteration_s,memory_mib,reference_memory_mib,cpus,speed\n"
	"a,1,2000,1000,1,.5\n"
	"a,1,2000,1000,2,1\n"
	"a,1,2000,1000,4,1.8\n"
	"wide,1,500,1000,1,1\n";

/* Jobs of all kinds, which all placements and policies can serve. */
static void begin(struct rig *rig, uint64_t seed)
{
	struct rng rng = rng_stream(seed, "sched", 0);
	struct err err = { 0 };

	*rig = (struct rig){ 0 };
	add_nodes(rig, "3*gpus=4,cpus=8,memory=4000M,gpu_memory=9000M,model=x");
	add_nodes(rig,
		  "2*gpus=2,cpus=8,memory=4000M,model=y,cache=2G,remote=50M");
	add_nodes(rig, "2*cpus=4,memory=4000M");
	for (size_t i = 0; i < N_JOBS; i++) {
		/* no GPU, a share of one, one, several */
		uint64_t kind = rng_below(&rng, 8);
		uint32_t gpus = kind == 0  ? 0
				: kind < 5 ? 1
					   : 2 + (uint32_t)rng_below(&rng, 5);
		struct job *job;
		char user[] = { 'a' + (char)rng_below(&rng, 3), 0 };

		add_job(rig, (double)rng_below(&rng, 400),
			1 + (double)rng_below(&rng, 100), gpus,
			kind == 0  ? 0
			: kind < 3 ? 100 * (1 + (uint32_t)rng_below(&rng, 9))
				   : GPU_MILLI,
			user);
		job = &rig->workload.jobs[rig->workload.n - 1];
		job->dataset_mib = (double)rng_below(&rng, 3000);
		job->read_mib_s = (double)rng_below(&rng, 100);
		if (kind == 3)
			set_load(rig, .6, 1000 * (1 + rng_below(&rng, 9)), 5);
	}
	assert_int_equal(speeds_parse_csv(speeds, strlen(speeds), "speeds",
					  &rig->workload, &err),
			 0);
	assert_int_equal(workload_bind(&rig->workload, &err), 0);
	/* half of them may take turns with others */
	for (size_t i = 0; i < N_JOBS; i++) {
		struct job *job = &rig->workload.jobs[i];

		job->stage_ns[rng_below(&rng, STAGES)] = NS_PER_S;
		job->stage_ns[STAGE_GPU] += NS_PER_MS;
		job->iteration_ns = rng_below(&rng, 2) * 1.5 * NS_PER_S;
	}
}

static void end(struct rig *rig)
{
	workload_fini(&rig->workload);
	cluster_fini(&rig->cluster);
}

static const struct schedule_ops *policy_of(const struct sim_cell *c)
{
	return container_of(c->policy.plugin, struct schedule_ops, plugin);
}

/* Runs a policy, and leaves the jobs in the cell. */
/* Takes the choice over. */
static void run_choice(struct rig *rig, struct plugin_choice policy,
		       const char *placement, uint64_t round_s, struct sim *sim)
{
	const char *name = policy.plugin->name;
	struct err err = { 0 };

	*sim = (struct sim){ .cluster = &rig->cluster,
			     .workload = &rig->workload,
			     .seed = 7,
			     .round_ns = round_s * NS_PER_S,
			     .n_cells = 1 };
	sim->cells = calloc(1, sizeof(*sim->cells));
	assert_non_null(sim->cells);
	sim->cells->policy = policy;
	assert_int_equal(plugin_choose(placement_table, "placement", placement,
				       &sim->cells->placement, &err),
			 0);
	sim->cells->name = strdup(name);
	if (sim_run(sim, sim->cells, &err) < 0)
		fail_msg("%s %s: %s", name, placement, err.text);
}

static void run_ops(struct rig *rig, const struct schedule_ops *ops,
		    const char *placement, uint64_t round_s, struct sim *sim)
{
	run_choice(rig, (struct plugin_choice){ .plugin = &ops->plugin },
		   placement, round_s, sim);
}

static void run(struct rig *rig, const char *policy, const char *placement,
		uint64_t round_s, struct sim *sim)
{
	struct plugin_choice choice = { 0 };
	struct err err = { 0 };

	if (plugin_choose(schedule_table, "policy", policy, &choice, &err) < 0)
		fail_msg("%s: %s", policy, err.text);
	run_choice(rig, choice, placement, round_s, sim);
}

static void check_jobs(const struct sim *sim)
{
	const struct sim_cell *c = sim->cells;
	const struct schedule_ops *ops = policy_of(c);

	for (size_t i = 0; i < sim->workload->n; i++) {
		const struct job *job = &c->jobs[i];
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
	assert_true(c->result.jain > 0 && c->result.jain <= 1.0001);
}

/* Greedy may leave a running job out of a round. */
static bool keeps_promises(const char *placement)
{
	return strcmp(placement, "greedy") != 0;
}

static void each_pair(void (*fn)(struct rig *, const char *, const char *))
{
	struct rig rig;

	for (size_t i = 0; schedule_table[i]; i++)
		for (size_t k = 0; placement_table[k]; k++) {
			begin(&rig, i);
			fn(&rig, schedule_table[i]->name,
			   placement_table[k]->name);
			end(&rig);
		}
}

static void all_complete(struct rig *rig, const char *policy,
			 const char *placement)
{
	struct sim sim;

	run(rig, policy, placement, 0, &sim);
	if (keeps_promises(placement))
		check_jobs(&sim);
	sim_fini(&sim);
	run(rig, policy, placement, 20, &sim);
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
	struct sim a, b;

	run(rig, policy, placement, 0, &a);
	run(rig, policy, placement, 0, &b);
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
	struct sim sim;
	uint64_t end_ns = 0;

	add_nodes(&rig, "2*gpus=4,cpus=8,memory=8000M");
	for (size_t i = 0; i < 1000; i++)
		add_job(&rig, 14. * (double)i, 100, 1, GPU_MILLI, "a");
	add_job(&rig, 500, 1000, 8, GPU_MILLI, "b");
	assert_int_equal(workload_settle(&rig.workload), 0);
	run(&rig, policy, "proportional", 0, &sim);
	for (size_t i = 0; i < rig.workload.n; i++)
		if (rig.workload.jobs[i].n_gpus == 8)
			end_ns = sim.cells->jobs[i].end_ns;
	*ret_last = rig.workload.jobs[rig.workload.n - 1].arrival_ns;
	sim_fini(&sim);
	end(&rig);
	return end_ns;
}

static void no_job_starves_where_promised(void **state)
{
	uint64_t last;

	(void)state;
	for (size_t i = 0; schedule_table[i]; i++) {
		const struct schedule_ops *ops = container_of(
			schedule_table[i], struct schedule_ops, plugin);

		if (ops->no_starvation && !ops->places)
			assert_true(end_of_wide_job(ops->plugin.name, &last) <
				    last);
	}
	/* the stream is one in which a job can starve */
	assert_true(end_of_wide_job("srsf", &last) > last);
}

/* With all jobs at once and one GPU each order has a known mean. */
static void known_orders(void **state)
{
	static const struct {
		const char *policy;
		double ends_s[3];
	} cases[] = {
		{ "fifo", { 30, 40, 60 } },
		{ "srtf", { 60, 10, 30 } },
		{ "srsf", { 60, 10, 30 } },
		{ "srpt", { 60, 10, 30 } },
	};

	(void)state;
	for (size_t k = 0; k < ARRAY_SIZE(cases); k++) {
		struct rig rig = { 0 };
		struct sim sim;

		add_nodes(&rig, "gpus=1,cpus=2,memory=1000M");
		add_job(&rig, 0, 30, 1, GPU_MILLI, "a");
		add_job(&rig, 0, 10, 1, GPU_MILLI, "a");
		add_job(&rig, 0, 20, 1, GPU_MILLI, "a");
		assert_int_equal(workload_settle(&rig.workload), 0);
		run(&rig, cases[k].policy, "proportional", 0, &sim);
		for (size_t i = 0; i < 3; i++)
			assert_int_equal(
				sim.cells->jobs[i].end_ns,
				(uint64_t)(cases[k].ends_s[i] * NS_PER_S));
		sim_fini(&sim);
		end(&rig);
	}
}

/* Two jobs of unequal length share one GPU by turns: least attained first. */
static void las_takes_turns(void **state)
{
	struct rig rig = { 0 };
	struct sim sim;

	(void)state;
	add_nodes(&rig, "gpus=1,cpus=2,memory=1000M");
	add_job(&rig, 0, 100, 1, GPU_MILLI, "a");
	add_job(&rig, 0, 50, 1, GPU_MILLI, "a");
	assert_int_equal(workload_settle(&rig.workload), 0);
	run(&rig, "las", "proportional", 10, &sim);
	/* turns of 10 s until the shorter one has had its 50 */
	assert_int_equal(sim.cells->jobs[1].end_ns, 100 * NS_PER_S);
	assert_int_equal(sim.cells->jobs[0].end_ns, 150 * NS_PER_S);
	sim_fini(&sim);
	end(&rig);
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
		struct sim a, b;

		run(rig, policy, placement, round_s, &a);
		run_ops(rig, &anew, placement, round_s, &b);
		for (size_t i = 0; i < rig->workload.n; i++) {
			const struct job *x = &a.cells->jobs[i];
			const struct job *y = &b.cells->jobs[i];

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
	for (size_t i = 0; schedule_table[i]; i++) {
		const struct schedule_ops *ops = container_of(
			schedule_table[i], struct schedule_ops, plugin);
		struct part part = { .gpus = 3, .gpu_milli = GPU_MILLI };
		struct job job = workload_job();
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

static double counted_key(const struct job *job, uint64_t now_ns)
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
	struct sim sim;

	(void)state;
	add_nodes(&rig, "2*gpus=8");
	for (size_t i = 0; i < JOBS; i++)
		add_job(&rig, (double)rng_below(&rng, 1000),
			1 + (double)rng_below(&rng, 900),
			1 + (uint32_t)rng_below(&rng, 4), GPU_MILLI, "a");
	assert_int_equal(workload_settle(&rig.workload), 0);
	ops.key = counted_key;
	n_keys = 0;
	run_ops(&rig, &ops, "proportional", 0, &sim);
	assert_true(sim.cells->result.n_decisions > JOBS);
	assert_true(n_keys < 10 * sim.cells->result.n_decisions);
	sim_fini(&sim);
	end(&rig);
}

/* A share of a GPU that is free only in pieces holds up a smaller one, with
 * each placement. */
static void fifo_is_in_order(void **state)
{
	static const uint32_t milli[] = { 600, 600, 600, 200 };

	(void)state;
	for (size_t k = 0; placement_table[k]; k++) {
		struct rig rig = { 0 };
		struct sim sim;

		add_nodes(&rig, "gpus=2,cpus=2,memory=1000M");
		for (size_t i = 0; i < ARRAY_SIZE(milli); i++)
			add_job(&rig, 0, 10 + (double)i, 1, milli[i], "a");
		assert_int_equal(workload_settle(&rig.workload), 0);
		run(&rig, "fifo", placement_table[k]->name, 0, &sim);
		assert_int_equal(sim.cells->jobs[2].start_ns, 10 * NS_PER_S);
		assert_int_equal(sim.cells->jobs[3].start_ns, 10 * NS_PER_S);
		sim_fini(&sim);
		end(&rig);
	}
}

/* A GPU and a node without: the job that the GPU speeds up most has it. */
static void srpt_uses_both_kinds(void **state)
{
	static const double cpu_s[] = { 24, 40, 16 };
	struct rig rig = { 0 };
	struct sim sim;

	(void)state;
	add_nodes(&rig, "gpus=1,cpus=2,memory=1000M");
	add_nodes(&rig, "cpus=2");
	add_job(&rig, 0, 12, 1, GPU_MILLI, "a");
	add_job(&rig, 0, 10, 1, GPU_MILLI, "a");
	add_job(&rig, 4, 2, 1, GPU_MILLI, "a");
	for (size_t i = 0; i < ARRAY_SIZE(cpu_s); i++)
		rig.workload.jobs[i].cpu_work_ns = cpu_s[i] * NS_PER_S;
	assert_int_equal(workload_settle(&rig.workload), 0);
	run(&rig, "srpt", "proportional", 0, &sim);
	/* from 4 to 6 s it is job 2; job 1 goes on without */
	assert_int_equal(sim.cells->jobs[2].end_ns, 6 * NS_PER_S);
	/* then job 1 again, of which 10 - 4 - 2 / 4 s are left */
	assert_int_equal(sim.cells->jobs[1].end_ns / 1000, 11500000);
	/* job 0 runs without until 4 s and from 6 to 11.5, then with */
	assert_int_equal(sim.cells->jobs[0].end_ns / 1000, 18750000);
	assert_int_equal(sim.cells->jobs[0].n_preempted, 1);
	sim_fini(&sim);
	end(&rig);
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
		struct sim sim;
		char nodes[64];

		snprintf(nodes, sizeof(nodes), "gpus=2,cache=1000M,remote=%dM",
			 cases[k].remote_mib_s);
		add_nodes(&rig, nodes);
		for (size_t i = 0; i < 2; i++) {
			add_job(&rig, 0, 100, 1, GPU_MILLI, "a");
			rig.workload.jobs[i].dataset_mib = i ? 10000 : 1000;
			rig.workload.jobs[i].read_mib_s = 100;
		}
		assert_int_equal(workload_settle(&rig.workload), 0);
		run(&rig, cases[k].policy, "proportional", 0, &sim);
		for (size_t i = 0; i < 2; i++)
			assert_true(fabs((double)sim.cells->jobs[i].end_ns /
						 NS_PER_S -
					 cases[k].ends_s[i]) < 1e-6);
		sim_fini(&sim);
		end(&rig);
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
		struct sim sim;

		add_nodes(&rig, "gpus=1,gpu_memory=10G");
		for (size_t i = 0; i < ARRAY_SIZE(memory_mib); i++) {
			add_job(&rig, 0, 10, 1, GPU_MILLI, "a");
			set_load(&rig, 1. / 3, memory_mib[i], 3);
		}
		assert_int_equal(workload_settle(&rig.workload), 0);
		run(&rig, cases[k].policy, "proportional", 0, &sim);
		for (size_t i = 0; i < ARRAY_SIZE(memory_mib); i++)
			assert_int_equal(
				sim.cells->jobs[i].end_ns,
				(uint64_t)(cases[k].ends_s[i] * NS_PER_S));
		assert_true(sim.cells->result.over_s == cases[k].over_s);
		sim_fini(&sim);
		end(&rig);
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
		struct sim sim;

		begin(&rig, seed);
		for (size_t i = 0; i < ARRAY_SIZE(orders); i++) {
			char policy[32];

			snprintf(policy, sizeof(policy), "cognn:order=%s",
				 orders[i]);
			run(&rig, policy, "proportional", 0, &sim);
			assert_true(sim.cells->result.over_s == 0);
			sim_fini(&sim);
		}
		run(&rig, "mps", "proportional", 0, &sim);
		over_s += sim.cells->result.over_s;
		sim_fini(&sim);
		end(&rig);
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
	struct sim sim;
	uint64_t last_s = 0;

	add_nodes(&rig, "gpus=1,cpus=2,memory=1000M");
	for (size_t i = 0; i < n; i++)
		add_job(&rig, jobs[i][0], jobs[i][1], 1, GPU_MILLI, "a");
	assert_int_equal(workload_settle(&rig.workload), 0);
	run(&rig, policy, "proportional", 0, &sim);
	for (size_t i = 0; i < n; i++) {
		ret_ends_s[i] =
			(sim.cells->jobs[i].end_ns + NS_PER_MS) / NS_PER_S;
		last_s = MAX(last_s, ret_ends_s[i]);
	}
	sim_fini(&sim);
	end(&rig);
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

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_job_completes),
		cmocka_unit_test(runs_repeat),
		cmocka_unit_test(no_job_starves_where_promised),
		cmocka_unit_test(known_orders),
		cmocka_unit_test(las_takes_turns),
		cmocka_unit_test(the_kept_queue_decides_the_same),
		cmocka_unit_test(keys_move_as_declared),
		cmocka_unit_test(long_queues_cost_little),
		cmocka_unit_test(fifo_is_in_order),
		cmocka_unit_test(srpt_uses_both_kinds),
		cmocka_unit_test(groups_by_policy),
		cmocka_unit_test(silod_caches_where_it_saves_most),
		cmocka_unit_test(cognn_never_exceeds_the_memory),
		cmocka_unit_test(tiresias_demotes),
		cmocka_unit_test(themis_serves_who_had_least),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: MIT */
#include "tests/unit/test.h"

#include "tests/contract/sched_rig.h"

#include <string.h>

#include "common/rng.h"
#include "common/units.h"
#include "common/util.h"

void rig_nodes(struct rig *rig, const char *text)
{
	struct err err = { 0 };

	assert_int_equal(nodes_parse(text, &rig->cluster, &err), 0);
}

void rig_job(struct rig *rig, double arrival_s, double work_s, uint32_t gpus,
	     uint32_t milli, const char *user)
{
	struct sched_job job = workload_job();

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

void rig_load(struct rig *rig, double busy, uint64_t memory_mib, double cold_s)
{
	struct sched_job *job = &rig->workload.jobs[rig->workload.n - 1];

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

void rig_begin(struct rig *rig, uint64_t seed)
{
	struct rng rng = rng_stream(seed, "sched", 0);
	struct err err = { 0 };

	*rig = (struct rig){ 0 };
	rig_nodes(rig, "3*gpus=4,cpus=8,memory=4000M,gpu_memory=9000M,model=x");
	rig_nodes(rig,
		  "2*gpus=2,cpus=8,memory=4000M,model=y,cache=2G,remote=50M");
	rig_nodes(rig, "2*cpus=4,memory=4000M");
	for (size_t i = 0; i < N_JOBS; i++) {
		/* no GPU, a share of one, one, several */
		uint64_t kind = rng_below(&rng, 8);
		uint32_t gpus = kind == 0  ? 0
				: kind < 5 ? 1
					   : 2 + (uint32_t)rng_below(&rng, 5);
		struct sched_job *job;
		char user[] = { 'a' + (char)rng_below(&rng, 3), 0 };

		rig_job(rig, (double)rng_below(&rng, 400),
			1 + (double)rng_below(&rng, 100), gpus,
			kind == 0  ? 0
			: kind < 3 ? 100 * (1 + (uint32_t)rng_below(&rng, 9))
				   : GPU_MILLI,
			user);
		job = &rig->workload.jobs[rig->workload.n - 1];
		job->dataset_mib = (double)rng_below(&rng, 3000);
		job->read_mib_s = (double)rng_below(&rng, 100);
		if (kind == 3)
			rig_load(rig, .6, 1000 * (1 + rng_below(&rng, 9)), 5);
	}
	assert_int_equal(speeds_parse_csv(speeds, strlen(speeds), "speeds",
					  &rig->workload, &err),
			 0);
	assert_int_equal(workload_bind(&rig->workload, &err), 0);
	/* half of them may take turns with others */
	for (size_t i = 0; i < N_JOBS; i++) {
		struct sched_job *job = &rig->workload.jobs[i];

		job->stage_ns[rng_below(&rng, STAGES)] = NS_PER_S;
		job->stage_ns[STAGE_GPU] += NS_PER_MS;
		job->iteration_ns = rng_below(&rng, 2) * 1.5 * NS_PER_S;
	}
}

void rig_end(struct rig *rig)
{
	workload_fini(&rig->workload);
	cluster_fini(&rig->cluster);
}

/* Takes the choice over. */
static void run_choice(struct rig *rig, struct plugin_choice policy,
		       const char *placement, uint64_t round_s,
		       struct sched_sim *sim)
{
	const char *name = policy.plugin->name;
	struct err err = { 0 };

	*sim = (struct sched_sim){ .cluster = &rig->cluster,
				   .workload = &rig->workload,
				   .seed = 7,
				   .round_ns = round_s * NS_PER_S,
				   .keep_history = true,
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

void rig_run_ops(struct rig *rig, const struct schedule_ops *ops,
		 const char *placement, uint64_t round_s, struct sched_sim *sim)
{
	run_choice(rig, (struct plugin_choice){ .plugin = &ops->plugin },
		   placement, round_s, sim);
}

void rig_run(struct rig *rig, const char *policy, const char *placement,
	     uint64_t round_s, struct sched_sim *sim)
{
	struct plugin_choice choice = { 0 };
	struct err err = { 0 };

	if (plugin_choose(schedule_table, "policy", policy, &choice, &err) < 0)
		fail_msg("%s: %s", policy, err.text);
	run_choice(rig, choice, placement, round_s, sim);
}

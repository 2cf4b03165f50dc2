/* SPDX-License-Identifier: MIT */
/* The state of a live run: what is accepted holds together. */
#include <string.h>

#include "sched/live/state.h"
#include "tests/fuzz/fuzz.h"

static const char trace[] = "name,arrival_s,work_s,gpus\n"
			    "a,0,9,1\nb,0,9,2\nc,5,9,1\n";
static char *const command[] = { (char *)"true", NULL };

/* Jobs that take turns hold the same together. */
static bool is_first_of_group(const struct live *l, size_t i)
{
	for (size_t k = 0; l->live[i].group && k < i; k++)
		if (l->live[k].group == l->live[i].group && l->live[k].n_held)
			return false;
	return true;
}

/* No GPU is given twice, and the counts are those of the states. */
static void check(const struct live *l)
{
	uint64_t taken = 0, held = 0;
	size_t arrived = 0, done = 0;

	for (size_t i = 0; i < l->run.n; i++) {
		const struct sched_job *job = &l->run.jobs[i];

		for (size_t k = 0; k < job->n_parts; k++)
			taken += part_gpus(&job->parts[k]);
		for (size_t k = 0;
		     is_first_of_group(l, i) && k < l->live[i].n_held; k++)
			held += part_gpus(&l->live[i].held[k]) *
				l->live[i].held[k].gpu_milli;
		PROMISED((job->state == JOB_RUNNING) == (job->n_parts > 0));
		PROMISED(job->done >= 0 && job->done <= 1);
		arrived += job->state != JOB_ABSENT;
		done += job->state == JOB_DONE;
	}
	PROMISED(taken * GPU_MILLI == l->run.cluster.whole.gpu_milli -
					      l->run.cluster.free.gpu_milli);
	PROMISED(held == l->held.whole.gpu_milli - l->held.free.gpu_milli);
	PROMISED(arrived == l->run.n_arrived && done == l->run.n_done &&
		 l->run.n_active == arrived - done);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	struct cluster c = { 0 };
	struct sched_workload w = { 0 };
	struct plugin_choice policy = { 0 }, placement = { 0 };
	json_t *identity = json_object();
	struct live_config config = { .workload = &w,
				      .time_scale = 1,
				      .step_ns = 1000000000,
				      .dir = "/nowhere",
				      .command = command,
				      .identity = identity };
	struct err err = { 0 };
	struct live l;
	int r;

	PROMISED(nodes_parse("2*gpus=2,cpus=4,memory=1G", &c, &err) == 0);
	PROMISED(workload_parse(trace, sizeof(trace) - 1, "t", &c, &w, &err) ==
		 0);
	PROMISED(plugin_choose(schedule_table, "policy", "srtf", &policy,
			       &err) == 0);
	PROMISED(plugin_choose(placement_table, "placement", "proportional",
			       &placement, &err) == 0);
	config.of = (struct sched_run_config){ .cluster = &c,
					       .jobs = w.jobs,
					       .n_jobs = w.n,
					       .n_users = w.n_users,
					       .policy = &policy,
					       .placement = &placement };
	PROMISED(live_init(&l, &config, &err) == 0);
	r = state_parse(&l, (const char *)data, n, &err);
	PROMISED(r == 0 || (r < 0 && err.text[0]));
	if (r == 0)
		check(&l);
	live_fini(&l);
	plugin_choice_fini(&policy);
	plugin_choice_fini(&placement);
	workload_fini(&w);
	cluster_fini(&c);
	json_decref(identity);
	return 0;
}

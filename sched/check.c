/* SPDX-License-Identifier: MIT */
/* Why a job cannot run: before the simulation, or when it comes to a halt. */
#include <errno.h>
#include <inttypes.h>

#include "common/util.h"
#include "sched/sim.h"

enum { NEEDS_TEXT = 128 };

static const char *needs_of(const struct sched_job *job, char text[NEEDS_TEXT])
{
	int n = 0;

	if (job->n_gpus == 1 && job->gpu_milli < GPU_MILLI)
		n = snprintf(text, NEEDS_TEXT, "%g of a GPU",
			     (double)job->gpu_milli / GPU_MILLI);
	else if (job->n_gpus)
		n = snprintf(text, NEEDS_TEXT, "%u GPU%s", job->n_gpus,
			     job->n_gpus > 1 ? "s" : "");
	if (job->cpu_milli)
		n += snprintf(text + n, NEEDS_TEXT - (size_t)n, "%s%g CPUs",
			      n ? ", " : "", job->cpu_milli / 1e3);
	if (job->memory_mib)
		n += snprintf(text + n, NEEDS_TEXT - (size_t)n,
			      "%s%" PRIu64 " MiB", n ? ", " : "",
			      job->memory_mib);
	return n ? text : "nothing";
}

int sim_check(const struct sched_workload *w, const struct cluster *c,
	      struct err *err)
{
	uint64_t by_model[CLUSTER_MODELS_MAX] = { 0 };
	char needs[NEEDS_TEXT];

	for (size_t i = 0; i < c->n; i++)
		by_model[c->nodes[i].model] += c->nodes[i].n_gpus;
	for (size_t i = 0; i < w->n; i++) {
		const struct sched_job *job = &w->jobs[i];
		uint64_t gpus = 0;

		for (size_t m = 0; m < CLUSTER_MODELS_MAX; m++)
			if (!job->models || job->models >> m & 1)
				gpus += by_model[m];
		if (job->n_gpus > gpus)
			return err_set(err, -EINVAL,
				       "job %s asks for %s, and the cluster "
				       "has %" PRIu64 "%s: add nodes, or take "
				       "the job out of the trace",
				       job->name, needs_of(job, needs), gpus,
				       job->models ? " of the models that it "
						     "allows"
						   : "");
		if (job->cpu_milli > c->whole.cpu_milli ||
		    job->memory_mib > c->whole.memory_mib)
			return err_set(err, -EINVAL,
				       "job %s asks for %s, and the cluster "
				       "has %g CPUs and %" PRIu64 " MiB: add "
				       "nodes, or take the job out of the "
				       "trace",
				       job->name, needs_of(job, needs),
				       (double)c->whole.cpu_milli / 1e3,
				       c->whole.memory_mib);
	}
	return 0;
}

bool sim_cpus_idle(const struct sched_workload *w, const struct cluster *c,
		   struct err *ret)
{
	uint32_t most = 0, least = UINT32_MAX, largest = 0;
	size_t n_nodes = 0, n_jobs = 0;
	char to[32] = "";

	for (size_t i = 0; i < c->n; i++) {
		if (c->nodes[i].n_gpus)
			continue;
		most = MAX(most, c->nodes[i].cpu_milli);
		n_nodes++;
	}
	for (size_t i = 0; i < w->n; i++) {
		const struct sched_job *job = &w->jobs[i];

		/* the others have no choice */
		if (job->cpu_work_ns <= 0 || !job->n_gpus)
			continue;
		least = MIN(least, job->alone_cpu_milli);
		largest = MAX(largest, job->alone_cpu_milli);
		n_jobs++;
	}
	if (!n_nodes || !n_jobs || least <= most)
		return false;
	if (largest > least)
		snprintf(to, sizeof(to), " to %g", largest / 1e3);
	err_set(ret, -EINVAL,
		"%zu jobs can run on CPUs, and ask for %g%s of them; the %zu "
		"nodes without GPUs have up to %g, so that these jobs run on "
		"GPUs only: give larger nodes, as in --nodes cpus=%g",
		n_jobs, least / 1e3, to, n_nodes, most / 1e3, largest / 1e3);
	return true;
}

/* --- a simulation that has come to a halt --------------------------------- */

/* Is there room for what the job asks for, in a cluster that is free? */
static bool has_room(const struct cluster *c, const struct sched_job *job)
{
	uint32_t gpus = 0;

	for (uint32_t i = 0; i < c->n; i++) {
		const struct sched_node *node = &c->nodes[i];
		struct demand d = placement_demand(node, job);
		uint32_t n = MIN(job->n_gpus, node->n_gpus);
		struct sched_part part = placement_part(i, job, n, d);

		while (n && !placement_fits(c, job, &part, n))
			part = placement_part(i, job, --n, d);
		if (!job->n_gpus && placement_fits(c, job, &part, 0))
			return true;
		gpus += n;
	}
	return job->n_gpus && gpus >= job->n_gpus;
}

static int too_large(const struct sched_job *job, const struct cluster *c,
		     struct err *err)
{
	char needs[NEEDS_TEXT];
	struct sched_node most = { 0 };

	for (size_t i = 0; i < c->n; i++) {
		const struct sched_node *n = &c->nodes[i];

		most.n_gpus = MAX(most.n_gpus, n->n_gpus);
		most.cpu_milli = MAX(most.cpu_milli, n->cpu_milli);
		most.memory_mib = MAX(most.memory_mib, n->memory_mib);
	}
	return err_set(err, -EDEADLK,
		       "job %s can never start: it asks for %s, and no node "
		       "has room for it (nodes have up to %u GPUs, %g CPUs, "
		       "%" PRIu64 " MiB): give larger nodes, or take the job "
		       "out of the trace",
		       job->name, needs_of(job, needs), most.n_gpus,
		       most.cpu_milli / 1e3, most.memory_mib);
}

static int no_progress(const struct sched_job *job,
		       const struct sched_workload *w, struct err *err)
{
	double cpus = 0;
	uint64_t memory = 0;

	for (size_t i = 0; i < job->n_parts; i++) {
		cpus += job->parts[i].cpu_milli / 1e3;
		memory += job->parts[i].memory_mib;
	}
	return err_set(err, -EDEADLK,
		       "job %s makes no progress with %g CPUs and %" PRIu64
		       " MiB, because it has the speed of '%s', which needs "
		       "both: give nodes more, as in "
		       "4*gpus=8,cpus=24,memory=500G",
		       job->name, cpus, memory, w->classes[job->class]);
}

int sim_stuck(const struct sched_sim *sim, const struct sched_job *jobs,
	      struct err *err)
{
	const struct sched_workload *w = sim->workload;
	const struct sched_job *first = NULL;
	char needs[NEEDS_TEXT];
	size_t n_waiting = 0;

	for (size_t i = 0; i < w->n; i++) {
		const struct sched_job *job = &jobs[i];

		if (job->state == JOB_RUNNING)
			return no_progress(job, w, err);
		if (job->state != JOB_WAITING)
			continue;
		if (!has_room(sim->cluster, job))
			return too_large(job, sim->cluster, err);
		first = first ? first : job;
		n_waiting++;
	}
	return err_set(err, -EDEADLK,
		       "%zu jobs wait, and none is started; the first is %s, "
		       "which asks for %s: try another policy or placement",
		       n_waiting, first ? first->name : "-",
		       first ? needs_of(first, needs) : "-");
}

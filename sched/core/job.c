/* SPDX-License-Identifier: MIT */
#include "sched/core/job.h"

#include <math.h>
#include <string.h>

#include "common/units.h"
#include "common/util.h"

/* Share of an iteration that is the backward pass. Source: it has two of the
 * three matrix products of each layer (Goodfellow et al., Deep Learning, 2016,
 * section 6.5) */
#define BACKWARD (2. / 3)

double speed_of(const struct speed *s, double cpus, double memory_mib)
{
	double v;
	size_t i = 0;

	if (!s->n)
		return 1;
	v = s->speed[s->n - 1];
	while (i < s->n && s->cpus[i] < cpus)
		i++;
	if (i == 0)
		v = s->speed[0] * cpus / s->cpus[0];
	else if (i < s->n)
		v = s->speed[i - 1] + (s->speed[i] - s->speed[i - 1]) *
					      (cpus - s->cpus[i - 1]) /
					      (s->cpus[i] - s->cpus[i - 1]);
	/* above the point by a rounding, the next line would be below it */
	v = MIN(v, s->speed[MIN(i, s->n - 1)]);
	/* half a MiB: parts are whole ones */
	if (memory_mib + .5 < s->memory_mib) {
		double need = MIN(s->memory_mib, s->reference_memory_mib);

		v = MIN(v, MIN(1, memory_mib / need));
	}
	return v;
}

/* How many nodes the parts are on; those of a job come in any order. */
static size_t count_nodes(const struct sched_part *parts, size_t n)
{
	size_t nodes = 0;

	for (size_t i = 0; i < n; i++) {
		size_t k = 0;

		while (parts[k].node != parts[i].node)
			k++;
		nodes += k == i;
	}
	return nodes;
}

/* ns that an iteration waits for gradients: each node sends and receives
 * 2 (k - 1) / k of them, as in a ring of k nodes (emu/gpu/collective.h), its
 * GPUs having reduced their own before, which costs nothing here. */
static double reduced_ns(const struct cluster *c, const struct sched_job *job,
			 const struct sched_part *parts, size_t n)
{
	double link = INFINITY, k, busy = job->stage_ns[STAGE_GPU];

	if (job->gradient_mib <= 0)
		return 0;
	for (size_t i = 0; i < n; i++)
		if (c->nodes[parts[i].node].link_mib_s > 0)
			link = MIN(link, c->nodes[parts[i].node].link_mib_s);
	k = (double)count_nodes(parts, n);
	return MAX(0, 2 * (k - 1) / k * job->gradient_mib / link * NS_PER_S -
			      BACKWARD * (busy > 0 ? busy : job->iteration_ns));
}

double job_rate(const struct cluster *c, const struct sched_job *job,
		const struct sched_part *parts, size_t n)
{
	double gpus = 0, cpus = 0, memory = 0, speed = 1;

	for (size_t i = 0; i < n; i++) {
		gpus += part_gpus(&parts[i]) * parts[i].gpu_milli /
			(double)GPU_MILLI;
		cpus += parts[i].cpu_milli / 1e3;
		memory += (double)parts[i].memory_mib;
	}
	if (gpus == 0 && job->n_gpus)
		return job->cpu_work_ns > 0 && n ? 1 / job->cpu_work_ns : 0;
	if (job->speed && gpus > 0)
		speed = speed_of(job->speed, cpus / gpus, memory / gpus);
	if (n > 1 && gpus > 0)
		speed /= 1 + speed * reduced_ns(c, job, parts, n) /
				     MAX(job->iteration_ns, 1);
	return n ? speed / job->work_ns : 0;
}

size_t job_group(const struct sched_job *job,
		 const struct sched_job *ret[GROUP_MAX])
{
	size_t n = 0;

	ret[n++] = job;
	for (const struct sched_job *j = job->mate; j && j != job; j = j->mate)
		ret[n++] = j;
	return n;
}

bool job_is_stranded(const struct cluster *c, const struct sched_job *job)
{
	for (size_t i = 0; job->state == JOB_RUNNING && i < job->n_parts; i++)
		if (job->parts[i].gpus && c->nodes[job->parts[i].node].down)
			return true;
	return false;
}

bool job_holds(const struct sched_job *job, const struct sched_part *parts,
	       size_t n)
{
	return job->n_parts == n &&
	       !memcmp(job->parts, parts, n * sizeof(*parts));
}

/* Share of the work that is done at `now_ns`. */
static double done(const struct sched_job *job, uint64_t now_ns)
{
	if (job->state != JOB_RUNNING)
		return job->done;
	return MIN(1, job->done + (double)(now_ns - job->since_ns) * job->rate);
}

double job_gpus_held(const struct sched_job *job)
{
	double gpus = 0;

	for (size_t i = 0; i < job->n_parts; i++)
		gpus += part_gpus(&job->parts[i]) * job->parts[i].gpu_milli /
			(double)GPU_MILLI;
	return gpus;
}

double job_attained(const struct sched_job *job, uint64_t now_ns)
{
	if (job->state != JOB_RUNNING)
		return job->gpu_ns;
	return job->gpu_ns +
	       (double)(now_ns - job->since_ns) * job_gpus_held(job);
}

void job_advance(struct sched_job *job, uint64_t now_ns)
{
	if (job->state == JOB_RUNNING) {
		job->done = done(job, now_ns);
		job->gpu_ns = job_attained(job, now_ns);
		job->run_ns += now_ns - job->since_ns;
	}
	job->since_ns = now_ns;
}

double job_left(const struct sched_job *job, uint64_t now_ns)
{
	return (1 - done(job, now_ns)) * job->work_ns;
}

double job_service_left(const struct sched_job *job, uint64_t now_ns)
{
	return job_left(job, now_ns) * (double)job_gpu_milli(job);
}

/* A share of the work is a rounded sum: what is so close to all of it is. */
#define CLOSE 1e-12

uint64_t job_due(const struct sched_job *job)
{
	double ns;

	if (job->state != JOB_RUNNING || job->rate <= 0)
		return UINT64_MAX;
	ns = ceil(MAX(1 - job->done - CLOSE, 0) / job->rate);
	if ((double)job->since_ns + ns >= (double)JOB_TIME_END)
		return JOB_TIME_END;
	return job->since_ns + (uint64_t)ns;
}

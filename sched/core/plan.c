/* SPDX-License-Identifier: MIT */
#include "sched/core/plan.h"

#include <errno.h>
#include <string.h>

#include "common/util.h"
#include "sched/core/interleave.h"

int plan_add(struct sched_plan *p, enum action_kind kind, uint32_t job,
	     const struct sched_part *parts, size_t n_parts)
{
	int r = util_reserve(&p->actions, &p->allocated, p->n + 1,
			     sizeof(*p->actions));

	if (r == 0)
		r = util_reserve(&p->parts, &p->parts_allocated,
				 p->n_parts + n_parts + 1, sizeof(*p->parts));
	if (r < 0)
		return r;
	p->actions[p->n++] = (struct action){ .kind = kind,
					      .job = job,
					      .first = p->n_parts,
					      .n_parts = n_parts };
	if (n_parts)
		memcpy(&p->parts[p->n_parts], parts, n_parts * sizeof(*parts));
	p->n_parts += n_parts;
	return 0;
}

int plan_start(struct sched_plan *p, struct cluster *c, uint32_t job,
	       const struct sched_part *parts, size_t n_parts)
{
	for (size_t i = 0; i < n_parts; i++)
		cluster_take(c, &parts[i]);
	return n_parts ? plan_add(p, ACTION_START, job, parts, n_parts) : 0;
}

int plan_group(struct sched_plan *p, uint32_t job, uint32_t with)
{
	int r = plan_add(p, ACTION_GROUP, job, NULL, 0);

	if (r == 0)
		p->actions[p->n - 1].with = with;
	return r;
}

void plan_reset(struct sched_plan *p)
{
	p->n = p->n_parts = 0;
	p->wake_ns = UINT64_MAX;
}

void plan_fini(struct sched_plan *p)
{
	free(p->actions);
	free(p->parts);
	*p = (struct sched_plan){ 0 };
}

/* Those of a group make their iterations together. */
static void set_rates(const struct cluster *c, struct sched_job *job)
{
	const struct sched_job *group[GROUP_MAX];
	size_t n = job_group(job, group);

	for (size_t i = 0; i < n; i++, job = job->mate)
		job->rate = interleave_rate(c, job);
}

static void leave(const struct cluster *c, struct sched_job *job,
		  uint64_t now_ns)
{
	struct sched_job *last = job;

	while (last->mate != job) {
		last = last->mate;
		job_advance(last, now_ns);
	}
	last->mate = job->mate == last ? NULL : job->mate;
	job->mate = NULL;
	set_rates(c, last);
}

void plan_release(struct cluster *c, struct sched_job *job, uint64_t now_ns,
		  enum job_state state)
{
	job_advance(job, now_ns);
	if (job->mate)
		leave(c, job, now_ns);
	else
		for (size_t i = 0; i < job->n_parts; i++)
			cluster_give(c, &job->parts[i]);
	free(job->parts);
	job->parts = NULL;
	job->n_parts = 0;
	job->rate = 0;
	job->state = state;
}

/* What the job asked for, or CPUs only where it can do with these. One whose
 * speed on a shared GPU is known may get less of it. */
static const char *wrong_parts(const struct cluster *c,
			       const struct sched_job *job,
			       const struct sched_part *parts, size_t n)
{
	uint32_t gpus = 0;

	if (!n)
		return "gets no resources";
	for (size_t i = 0; i < n; i++) {
		if (parts[i].node >= c->n)
			return "gets a node that does not exist";
		if (parts[i].gpus && parts[i].gpu_milli != job->gpu_milli &&
		    !(job->gpu_busy > 0 && parts[i].gpu_milli < job->gpu_milli))
			return "gets another share of a GPU than requested";
		if (!job_allows(job, &c->nodes[parts[i].node]) && parts[i].gpus)
			return "gets GPUs of a model that it does not allow";
		gpus += part_gpus(&parts[i]);
	}
	if (gpus != job->n_gpus && (gpus || job->cpu_work_ns <= 0))
		return "gets another number of GPUs than requested";
	return NULL;
}

static int give_back(const struct sched_plan *p, const struct action *a,
		     struct cluster *c, struct sched_job *jobs, size_t n_jobs,
		     uint64_t now_ns, struct err *err)
{
	struct sched_job *job;
	bool runs;

	if (a->job >= n_jobs)
		return err_set(err, -EINVAL, "there is no job %u", a->job);
	job = &jobs[a->job];
	runs = job->state == JOB_RUNNING;
	if ((a->kind != ACTION_GROUP && runs != (a->kind != ACTION_START)) ||
	    (!runs && job->state != JOB_WAITING))
		return err_set(err, -EINVAL,
			       "job %s is %s, and decided upon as if not",
			       job->name, runs ? "running" : "not running");
	if (runs)
		plan_release(c, job, now_ns, JOB_WAITING);
	else if (p->cold)
		job->done -= job->cold_ns / job->work_ns;
	/* only the first run begins the job */
	if (!runs && job->start_ns == UINT64_MAX)
		job->start_ns = now_ns;
	job->n_preempted += a->kind == ACTION_STOP;
	job->n_moved += runs && a->kind != ACTION_STOP;
	return 0;
}

static int take_parts(const struct action *a, const struct sched_part *parts,
		      struct cluster *c, struct sched_job *job, uint64_t now_ns,
		      struct err *err)
{
	const char *wrong = wrong_parts(c, job, parts, a->n_parts);

	if (wrong || job->state != JOB_WAITING)
		return err_set(err, -EINVAL, "job %s %s", job->name,
			       wrong ? wrong : "is decided upon twice");
	job->parts = malloc(a->n_parts * sizeof(*parts));
	if (!job->parts)
		return -ENOMEM;
	for (size_t i = 0; i < a->n_parts; i++) {
		if (!cluster_has(c, &parts[i]))
			return err_set(
				err, -EINVAL,
				"job %s gets what is not free on node %u",
				job->name, parts[i].node);
		cluster_take(c, &parts[i]);
		job->parts[job->n_parts++] = parts[i];
	}
	job->since_ns = now_ns;
	job->state = JOB_RUNNING;
	set_rates(c, job);
	return 0;
}

static const char *wrong_group(const struct sched_job *job,
			       const struct sched_job *with)
{
	const struct sched_job *group[GROUP_MAX];

	if (job->state != JOB_WAITING)
		return "is decided upon twice";
	if (with->state != JOB_RUNNING)
		return "joins a job that does not run";
	if (!job_interleaves(job) || !job_interleaves(with))
		return "joins a job with which it cannot take turns";
	if (!job_alike(job, with))
		return "joins a job that asks for other resources";
	if (job_group(with, group) == GROUP_MAX)
		return "joins a group that is full";
	return NULL;
}

static int join(const struct action *a, const struct cluster *c,
		struct sched_job *jobs, size_t n_jobs, uint64_t now_ns,
		struct err *err)
{
	struct sched_job *job = &jobs[a->job], *with = &jobs[a->with];
	const char *wrong = a->with < n_jobs ? wrong_group(job, with)
					     : "joins a job that is not there";

	if (wrong)
		return err_set(err, -EINVAL, "job %s %s", job->name, wrong);
	job->parts = malloc(with->n_parts * sizeof(*job->parts));
	if (!job->parts)
		return -ENOMEM;
	memcpy(job->parts, with->parts, with->n_parts * sizeof(*job->parts));
	job->n_parts = with->n_parts;
	job->since_ns = now_ns;
	job->state = JOB_RUNNING;
	job->mate = with->mate ? with->mate : with;
	with->mate = job;
	for (struct sched_job *j = job->mate; j != job; j = j->mate)
		job_advance(j, now_ns);
	set_rates(c, job);
	return 0;
}

int plan_apply(const struct sched_plan *p, struct cluster *c,
	       struct sched_job *jobs, size_t n_jobs, uint64_t now_ns,
	       struct err *err)
{
	int r = 0;

	for (size_t i = 0; r == 0 && i < p->n; i++)
		r = give_back(p, &p->actions[i], c, jobs, n_jobs, now_ns, err);
	for (size_t i = 0; r == 0 && i < p->n; i++) {
		const struct action *a = &p->actions[i];

		if (a->kind == ACTION_START || a->kind == ACTION_CHANGE)
			r = take_parts(a, &p->parts[a->first], c, &jobs[a->job],
				       now_ns, err);
	}
	for (size_t i = 0; r == 0 && i < p->n; i++)
		if (p->actions[i].kind == ACTION_GROUP)
			r = join(&p->actions[i], c, jobs, n_jobs, now_ns, err);
	return r;
}

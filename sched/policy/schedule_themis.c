/* SPDX-License-Identifier: MIT */
/*
 * Themis: shares of time on the cluster so that the largest finish-time ratio
 * is least. The ratio is the time until completion over that which the job
 * would take with its share of the cluster. Source: Mahajan et al., "Themis",
 * NSDI 2020, as Gavel (Narayanan et al., OSDI 2020, section 4) states it and
 * the simulator of Muri runs it: not by auctions, but as one optimisation, and
 * those jobs are served first that have had least of their shares.
 *
 * A job that is served for a part x of the time ends after age + left / x. For
 * a given ratio x is known, and falls as the ratio rises; so the least ratio
 * with which all fit is found by halving.
 */
#include "common/util.h"
#include "sched/core/schedule.h"

struct progress {
	double alone_ns; /* that the work until now would have taken */
	double left_ns;	 /* then */
	double share;	 /* of its time on GPUs, in its part of the cluster */
};

struct themis {
	struct progress *of; /* each job */
	double *time_ns;     /* by place in `active`: alone, all of it */
};

static int themis_begin(struct sched_schedule *s, const struct view *v,
			struct err *err)
{
	struct themis *t = s->state;

	(void)err;
	t->of = schedule_array(s, v->n_jobs + 1, sizeof(*t->of));
	t->time_ns = schedule_array(s, v->n_jobs + 1, sizeof(*t->time_ns));
	return 0;
}

static double gpus_of(const struct sched_job *job)
{
	return (double)job_gpu_milli(job) / GPU_MILLI;
}

/* What the job would take alone: the past with the shares of then, the rest
 * with that of now. */
static double time_alone(struct progress *p, const struct view *v,
			 const struct sched_job *job)
{
	double gpus = (double)v->cluster->whole.gpu_milli / GPU_MILLI;
	double need = gpus_of(job) * (double)v->n_active;
	double left_ns = job_left(job, v->now_ns);

	if (p->share > 0)
		p->alone_ns += (p->left_ns - left_ns) / p->share;
	p->left_ns = left_ns;
	p->share = need > gpus ? gpus / need : 1;
	return p->alone_ns + left_ns / p->share;
}

/* The part of the time in which the job must run for that ratio. */
static double part_of(const struct themis *t, const struct view *v, size_t i,
		      double ratio)
{
	const struct sched_job *job = &v->jobs[v->active[i]];
	double age_ns = (double)(v->now_ns - job->arrival_ns);
	double left_ns = t->of[v->active[i]].left_ns;
	double until_ns = ratio * t->time_ns[i] - age_ns;

	return until_ns > left_ns ? left_ns / until_ns : 1;
}

static bool all_fit(const struct themis *t, const struct view *v, double ratio)
{
	double gpus = 0;

	for (size_t i = 0; i < v->n_active; i++)
		gpus += part_of(t, v, i, ratio) *
			gpus_of(&v->jobs[v->active[i]]);
	return gpus * GPU_MILLI <= (double)v->cluster->whole.gpu_milli;
}

/* With less than `low` a job would have to run more than all of the time. */
static double least_ratio(const struct themis *t, const struct view *v)
{
	double low = 0, high;

	for (size_t i = 0; i < v->n_active; i++) {
		uint32_t which = v->active[i];
		double age_ns = (double)(v->now_ns - v->jobs[which].arrival_ns);

		low = MAX(low, (age_ns + t->of[which].left_ns) / t->time_ns[i]);
	}
	high = low;
	while (high < 1e30 && !all_fit(t, v, high))
		high *= 2;
	/* as many bits as a double has */
	for (int i = 0; i < 53 && high > low; i++) {
		double middle = (low + high) / 2;

		if (all_fit(t, v, middle))
			high = middle;
		else
			low = middle;
	}
	return high;
}

static void themis_keys(struct sched_schedule *s, const struct view *v)
{
	struct themis *t = s->state;
	double ratio;

	for (size_t i = 0; i < v->n_active; i++) {
		uint32_t which = v->active[i];

		t->time_ns[i] = time_alone(&t->of[which], v, &v->jobs[which]);
	}
	ratio = least_ratio(t, v);
	for (size_t i = 0; i < v->n_active; i++) {
		const struct sched_job *job = &v->jobs[v->active[i]];
		double had_ns = (double)job->run_ns;

		if (job->state == JOB_RUNNING)
			had_ns += (double)(v->now_ns - job->since_ns);
		/* who has had nothing comes first */
		s->keys[v->active[i]] =
			-part_of(t, v, i, ratio) / MAX(had_ns, 1);
	}
}

const struct schedule_ops schedule_themis = {
	.plugin = { .name = "themis",
		    .summary = "Themis: time shares that minimise the largest "
			       "finish-time ratio, preemptive",
		    .state_size = sizeof(struct themis) },
	.preempts = true,
	.keys = themis_keys,
	.begin = themis_begin,
};

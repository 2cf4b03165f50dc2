/* SPDX-License-Identifier: MIT */
#include "share/pace.h"

#include <errno.h>
#include <math.h>

#include "common/util.h"
#include "share/utilisation.h"

/* Of the GPU's time, that of one job and of those with whom it shares. */
static double part_of(const struct share *s, const struct share_job *job,
		      uint32_t g, uint32_t *ret_running)
{
	const struct share_gpu *gpu = &s->gpus[g];
	const struct share_quota *q = pace_apart(&job->want, g);

	*ret_running = q ? q->n_running[g] : gpu->n_running - gpu->n_apart;
	return (q ? q->part_milli[g] : SHARE_WHOLE - gpu->part_milli) /
	       (double)SHARE_WHOLE;
}

/* Of those with whom the job shares the GPU, itself included, how many have an
 * iteration that runs or could. The driver switches between them. */
static uint32_t n_ready(const struct share *s, const struct share_job *job,
			uint32_t g)
{
	const struct share_quota *q = pace_apart(&job->want, g);
	uint32_t n = 0;

	for (uint32_t i = 0; i < s->n_jobs; i++) {
		const struct share_job *other = s->jobs[i];

		n += other->n && other->view.ready_ns <= s->now &&
		     share_on(other, g) && pace_apart(&other->want, g) == q;
	}
	return n;
}

/* The current pace of the job: emulated ns of work per ns. More than 0:
 * share_set_part leaves some time to every job. */
static double pace(const struct share *s, const struct share_job *job)
{
	double slowest = 1;

	for (uint32_t g = 0; g < s->config.n_gpus; g++) {
		uint32_t k;
		double part;

		if (!share_on(job, g))
			continue;
		part = part_of(s, job, g, &k) / k;
		if (s->config.speedup)
			part *= share_profile_speedup(s->config.speedup, k);
		if (s->config.slicing)
			part *= share_profile_speedup(s->config.slicing,
						      n_ready(s, job, g));
		slowest = MIN(slowest, part);
	}
	return slowest;
}

void pace_settle(struct share *s, uint64_t now)
{
	const struct scheduler_ops *ops = s->config.scheduler;

	if (now <= s->now)
		return;
	for (uint32_t i = 0; i < s->n_jobs; i++) {
		struct share_job *job = s->jobs[i];
		double ns;

		if (!job->running)
			continue;
		ns = (double)(now - s->now) * pace(s, job);
		job->left_ns -= ns;
		ns *= job->want.n_gpus;
		job->service_ns += ns;
		if (ops->ran)
			ops->ran(&job->view, ns);
	}
	utilisation_count(s, now);
	s->now = now;
}

uint64_t share_next(const struct share *s)
{
	uint64_t next = SHARE_NEVER;

	for (uint32_t i = 0; i < s->n_jobs; i++) {
		const struct share_job *job = s->jobs[i];

		if (job->running) {
			double ns = pace_ended(job) ? 0 : job->left_ns;

			next = MIN(
				next,
				util_plus(s->now,
					  util_whole(ceil(ns / pace(s, job)))));
		} else if (job->n && job->view.ready_ns > s->now) {
			next = MIN(next, job->view.ready_ns);
		}
	}
	return next;
}

void pace_count(struct share *s, const struct share_job *job, int by)
{
	for (uint32_t g = 0; g < s->config.n_gpus; g++) {
		struct share_quota *q = pace_apart(&job->want, g);

		if (!share_on(job, g))
			continue;
		s->gpus[g].n_running += (uint32_t)by;
		if (!q)
			continue;
		s->gpus[g].n_apart += (uint32_t)by;
		q->n_running[g] += (uint32_t)by;
	}
}

/* --- parts of the time ---------------------------------------------------- */

int share_set_part(struct share *s, struct share_quota *q, uint32_t gpu,
		   uint32_t milli, struct err *err)
{
	uint32_t *all = &s->gpus[gpu].part_milli, *own = &q->part_milli[gpu];

	if (milli == *own)
		return 0;
	if (*all - *own + milli > SHARE_WHOLE)
		return err_set(err, -ENOSPC,
			       "GPU %u: .%03u of its time requested, but .%03u "
			       "is left",
			       gpu, milli, SHARE_WHOLE - (*all - *own));
	for (uint32_t i = 0; i < s->n_jobs; i++) {
		const struct share_want *w = &s->jobs[i]->want;

		if (!share_on(s->jobs[i], gpu))
			continue;
		if (w->quota == q)
			return err_set(err, -EBUSY,
				       "GPU %u: its part of the time cannot "
				       "change while a job is there",
				       gpu);
		if (*all - *own + milli == SHARE_WHOLE && !pace_apart(w, gpu))
			return err_set(err, -EBUSY,
				       "GPU %u: a job without a part of its "
				       "time is there, and none would be left",
				       gpu);
	}
	*all += milli - *own;
	*own = milli;
	return 0;
}

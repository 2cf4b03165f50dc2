/* SPDX-License-Identifier: MIT */
/*
 * Equal share: each user has as many GPUs as any other, whether they are used
 * or not, and serves jobs there as they come. What AlloX calls ES. A user whose
 * share is less than what its next job needs may still run that job alone.
 */
#include <errno.h>

#include "common/util.h"
#include "sched/core/schedule.h"

struct es {
	uint64_t *held_milli; /* by each user, of GPUs */
	bool *stuck;
};

static int es_begin(struct schedule *s, const struct view *v, struct err *err)
{
	struct es *e = s->state;

	(void)err;
	e->held_milli = calloc(v->n_users + 1, sizeof(*e->held_milli));
	e->stuck = calloc(v->n_users + 1, sizeof(*e->stuck));
	return e->held_milli && e->stuck ? 0 : -ENOMEM;
}

static void es_end(struct schedule *s)
{
	struct es *e = s->state;

	if (!e)
		return;
	free(e->held_milli);
	free(e->stuck);
}

static int es_start(struct schedule *s, const struct view *v, uint32_t which,
		    struct plan *ret)
{
	const struct job *job = &v->jobs[which];
	uint64_t share = v->cluster->whole.gpu_milli / MAX(v->n_users, 1);
	struct es *e = s->state;
	size_t n = 0;

	if (e->stuck[job->user])
		return 0;
	if (!e->held_milli[job->user] ||
	    e->held_milli[job->user] + job_gpu_milli(job) <= share)
		n = placement_place(&s->placement, &s->scratch, job, s->parts);
	e->stuck[job->user] = n == 0;
	if (!n)
		return 0;
	e->held_milli[job->user] += job_gpu_milli(job);
	return plan_start(ret, &s->scratch, which, s->parts, n);
}

static int es_decide(struct schedule *s, const struct view *v, struct plan *ret)
{
	struct es *e = s->state;
	int r = 0;

	for (size_t u = 0; u < v->n_users; u++) {
		e->held_milli[u] = 0;
		e->stuck[u] = false;
	}
	for (size_t i = 0; i < v->n_active; i++)
		if (v->jobs[v->active[i]].state == JOB_RUNNING)
			e->held_milli[v->jobs[v->active[i]].user] +=
				job_gpu_milli(&v->jobs[v->active[i]]);
	cluster_sync(&s->scratch, v->cluster);
	for (size_t i = 0; r == 0 && i < v->n_active; i++)
		if (v->jobs[v->active[i]].state == JOB_WAITING)
			r = es_start(s, v, v->active[i], ret);
	return r;
}

const struct schedule_ops schedule_es = {
	.plugin = { .name = "es",
		    .summary = "equal share: a fixed number of GPUs for each "
			       "user",
		    .state_size = sizeof(struct es) },
	.decide = es_decide,
	.begin = es_begin,
	.end = es_end,
};

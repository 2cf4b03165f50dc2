/* SPDX-License-Identifier: MIT */
/*
 * Shortest job first on GPUs and CPUs, without preemption: a machine that is
 * free takes the job that is shortest there. Source: Le et al., "AlloX",
 * EuroSys 2020, section 6, which leaves open what is done about two kinds of
 * machines.
 */
#include <math.h>

#include "common/util.h"
#include "sched/policy/kinds.h"

struct sjf {
	struct queued *queue; /* those that wait and can run on a kind */
	bool *stuck;	      /* by shape: there is no place */
	bool *started;	      /* by job, in this decision */
};

static int sjf_begin(struct sched_schedule *s, const struct view *v,
		     struct err *err)
{
	struct sjf *p = s->state;

	(void)err;
	p->queue = schedule_array(s, v->n_jobs + 1, sizeof(*p->queue));
	p->stuck = schedule_array(s, v->n_jobs + 1, sizeof(*p->stuck));
	p->started = schedule_array(s, v->n_jobs + 1, sizeof(*p->started));
	return 0;
}

static size_t make_queue(struct sjf *p, const struct view *v, int kind)
{
	size_t n = 0;

	for (size_t i = 0; i < v->n_active; i++) {
		uint32_t job = v->active[i];
		double ns = kinds_work(&v->jobs[job], kind);

		p->stuck[v->jobs[job].shape] = false;
		if (kind == ON_GPU)
			p->started[job] = false;
		if (v->jobs[job].state == JOB_WAITING && !p->started[job] &&
		    ns < INFINITY)
			p->queue[n++] = (struct queued){ ns, job };
	}
	qsort(p->queue, n, sizeof(*p->queue), queued_compare);
	return n;
}

/* The copy only fills up: a shape without room once has none later. */
static int serve(struct sched_schedule *s, const struct view *v, int kind,
		 struct sched_plan *ret)
{
	struct sjf *p = s->state;
	size_t n_queue = make_queue(p, v, kind);
	int r = 0;

	for (size_t i = 0; r == 0 && i < n_queue; i++) {
		uint32_t which = p->queue[i].job;
		const struct sched_job *job = &v->jobs[which];
		size_t n;

		if (p->stuck[job->shape])
			continue;
		n = kinds_place(s, job, kind);
		p->started[which] = n > 0;
		/* what it asks for without GPU is no part of its shape */
		p->stuck[job->shape] = !n && kind == ON_GPU;
		r = plan_start(ret, &s->scratch, which, s->parts, n);
	}
	return r;
}

static int sjf_decide(struct sched_schedule *s, const struct view *v,
		      struct sched_plan *ret)
{
	int r;

	cluster_sync(&s->scratch, v->cluster);
	r = serve(s, v, ON_GPU, ret);
	return r < 0 ? r : serve(s, v, ON_CPU, ret);
}

const struct schedule_ops schedule_sjf = {
	.plugin = { .name = "sjf",
		    .summary = "shortest job first, on GPUs and on CPU nodes",
		    .state_size = sizeof(struct sjf) },
	.places = true,
	.begin = sjf_begin,
	.decide = sjf_decide,
};

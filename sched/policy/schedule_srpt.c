/* SPDX-License-Identifier: MIT */
/*
 * Shortest remaining processing time on GPUs and CPUs: what AlloX compares
 * itself with as the best that preemption can do. Source: Le et al., "AlloX",
 * EuroSys 2020, section 6, which leaves open who gets the GPUs.
 *
 * Jobs are served by what is left of them where they are faster. Of as many as
 * there are machines for, those that a GPU speeds up most come first: to give
 * GPUs to the shortest is worse than AlloX. Each job gets a machine of the kind
 * where it is faster, else one of the other: a free one, or that of the last of
 * the jobs behind it. The share of a job that is done holds on both kinds.
 */
#include <string.h>

#include "common/util.h"
#include "sched/policy/kinds.h"

/* Where a job is to run, while the plan is made. */
enum { KEPT, EVICTED, PLACED };

struct srpt {
	uint8_t *fate; /* of each job of the queue */
	struct queued *queue;
	size_t n;
	size_t last[KINDS]; /* none behind it is left to evict */
};

static int srpt_begin(struct sched_schedule *s, const struct view *v,
		      struct err *err)
{
	struct srpt *p = s->state;

	(void)err;
	p->fate = schedule_array(s, v->n_jobs + 1, sizeof(*p->fate));
	p->queue = schedule_array(s, v->n_jobs + 1, sizeof(*p->queue));
	return 0;
}

/* How many of the first jobs there are machines for. */
static size_t count_served(const struct srpt *p, const struct view *v)
{
	uint64_t gpus = v->cluster->whole.gpu_milli / GPU_MILLI;
	uint64_t machines = gpus;
	size_t n = 0;

	for (size_t i = 0; i < v->cluster->n; i++)
		machines += kinds_is_cpu(&v->cluster->nodes[i]);
	for (; n < p->n; n++) {
		const struct sched_job *job = &v->jobs[p->queue[n].job];
		uint64_t need = job->cpu_work_ns > 0 ? 0 : job->n_gpus;

		if (need > gpus || job->n_gpus > machines)
			break;
		gpus -= need;
		machines -= job->n_gpus;
	}
	return n;
}

static void make_queue(struct srpt *p, const struct view *v)
{
	size_t n;

	for (size_t i = 0; i < v->n_active; i++) {
		const struct sched_job *job = &v->jobs[v->active[i]];
		double left = job_left(job, v->now_ns) / job->work_ns;

		p->queue[i] = (struct queued){
			left * kinds_work(job, kinds_best(job)), v->active[i]
		};
	}
	p->n = v->n_active;
	memset(p->fate, KEPT, p->n);
	qsort(p->queue, p->n, sizeof(*p->queue), queued_compare);
	n = count_served(p, v);
	for (size_t i = 0; i < n; i++) {
		const struct sched_job *job = &v->jobs[p->queue[i].job];

		p->queue[i].key =
			-kinds_work(job, ON_CPU) / kinds_work(job, ON_GPU);
	}
	qsort(p->queue, n, sizeof(*p->queue), queued_compare);
	p->last[ON_GPU] = p->last[ON_CPU] = p->n;
}

static void give(struct sched_schedule *s, const struct sched_job *job)
{
	for (size_t i = 0; i < job->n_parts; i++)
		cluster_give(&s->scratch, &job->parts[i]);
}

/* Take the machine of the last job behind `at` that runs on that kind. */
static bool evict(struct sched_schedule *s, const struct view *v, size_t at,
		  int kind)
{
	struct srpt *p = s->state;

	while (p->last[kind] > at + 1) {
		size_t i = --p->last[kind];
		const struct sched_job *job = &v->jobs[p->queue[i].job];

		if (job->state != JOB_RUNNING || p->fate[i] != KEPT ||
		    kinds_of(job) != kind || job_is_stranded(v->cluster, job))
			continue;
		give(s, job);
		p->fate[i] = EVICTED;
		return true;
	}
	return false;
}

/* Find it a place; 1: done. */
static int serve(struct sched_schedule *s, const struct view *v, size_t at,
		 int kind, struct sched_plan *ret)
{
	struct srpt *p = s->state;
	uint32_t which = p->queue[at].job;
	const struct sched_job *job = &v->jobs[which];
	bool runs = job->state == JOB_RUNNING;
	size_t n = kinds_place(s, job, kind);
	int r;

	while (!n && evict(s, v, at, kind))
		n = kinds_place(s, job, kind);
	if (!n)
		return 0;
	if (runs && p->fate[at] == KEPT)
		give(s, job);
	for (size_t i = 0; i < n; i++)
		cluster_take(&s->scratch, &s->parts[i]);
	p->fate[at] = PLACED;
	if (runs && job_holds(job, s->parts, n))
		return 1;
	r = plan_add(ret, runs ? ACTION_CHANGE : ACTION_START, which, s->parts,
		     n);
	return r < 0 ? r : 1;
}

static int srpt_decide(struct sched_schedule *s, const struct view *v,
		       struct sched_plan *ret)
{
	struct srpt *p = s->state;
	int r = 0;

	make_queue(p, v);
	cluster_sync(&s->scratch, v->cluster);
	for (size_t i = 0; r >= 0 && i < p->n; i++) {
		const struct sched_job *job = &v->jobs[p->queue[i].job];
		bool kept = job->state == JOB_RUNNING && p->fate[i] == KEPT;
		int best = kinds_best(job);

		if (kept &&
		    (kinds_of(job) == best || job_is_stranded(v->cluster, job)))
			continue;
		r = serve(s, v, i, best, ret);
		/* one that runs where it is slower keeps that */
		if (r == 0 && !kept && job->n_gpus)
			r = serve(s, v, i, kinds_other(best), ret);
		if (r == 0 && p->fate[i] == EVICTED)
			r = plan_add(ret, ACTION_STOP, p->queue[i].job, NULL,
				     0);
	}
	return MIN(r, 0);
}

const struct schedule_ops schedule_srpt = {
	.plugin = { .name = "srpt",
		    .summary = "shortest remaining time first, on GPUs and on "
			       "CPU nodes, preemptive",
		    .state_size = sizeof(struct srpt) },
	.preempts = true,
	.places = true,
	.begin = srpt_begin,
	.decide = srpt_decide,
};

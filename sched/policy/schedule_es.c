/* SPDX-License-Identifier: MIT */
/*
 * Equal share: each user has as many GPUs as any other, whether they are used
 * or not, and serves jobs there as they come. What AlloX calls ES. A user whose
 * share is less than what its next job needs may still run that job alone. With
 * `cpus` the nodes without GPUs are shared out as well, a job on each; a job
 * runs where it is faster if the share of its user allows, else on the other
 * kind.
 */
#include <string.h>

#include "common/conf/conf.h"
#include "common/util.h"
#include "sched/policy/kinds.h"

struct es_options {
	bool cpus;
};

static const struct conf_field es_fields[] = {
	{ CONF_KEY(cpus, CONF_BOOL, struct es_options),
	  .help = "also share nodes without GPUs" },
	{ 0 },
};

static const struct es_options es_defaults = { 0 };

/* Of a kind: thousandths of GPUs, nodes. */
struct es {
	uint64_t whole[KINDS];
	uint64_t (*held)[KINDS]; /* by each user */
	bool *stuck;
	bool cpus;
};

static int es_begin(struct sched_schedule *s, const struct view *v,
		    struct err *err)
{
	const struct es_options *o = s->options;
	struct es *e = s->state;

	(void)err;
	e->cpus = o->cpus;
	e->whole[ON_GPU] = v->cluster->whole.gpu_milli;
	for (size_t i = 0; i < v->cluster->n; i++)
		e->whole[ON_CPU] += kinds_is_cpu(&v->cluster->nodes[i]);
	e->held = schedule_array(s, v->n_users + 1, sizeof(*e->held));
	e->stuck = schedule_array(s, v->n_users + 1, sizeof(*e->stuck));
	return 0;
}

static uint64_t need_of(const struct sched_job *job, int kind)
{
	return kind == ON_CPU ? 1 : job_gpu_milli(job);
}

/* Within the share of its user, or as the only job there. */
static size_t place_within(struct sched_schedule *s, const struct view *v,
			   const struct sched_job *job, int kind)
{
	struct es *e = s->state;
	uint64_t *held = &e->held[job->user][kind];
	uint64_t need = need_of(job, kind);
	size_t n = 0;

	if (!*held || *held + need <= e->whole[kind] / MAX(v->n_users, 1))
		n = kinds_place(s, job, kind);
	if (n)
		*held += need;
	return n;
}

static int es_start(struct sched_schedule *s, const struct view *v,
		    uint32_t which, struct sched_plan *ret)
{
	const struct sched_job *job = &v->jobs[which];
	struct es *e = s->state;
	int first = e->cpus ? kinds_best(job) : ON_GPU;
	size_t n;

	if (e->stuck[job->user])
		return 0;
	n = place_within(s, v, job, first);
	if (!n && e->cpus)
		n = place_within(s, v, job, kinds_other(first));
	e->stuck[job->user] = n == 0;
	return plan_start(ret, &s->scratch, which, s->parts, n);
}

static int es_decide(struct sched_schedule *s, const struct view *v,
		     struct sched_plan *ret)
{
	struct es *e = s->state;
	int r = 0;

	memset(e->held, 0, v->n_users * sizeof(*e->held));
	memset(e->stuck, 0, v->n_users * sizeof(*e->stuck));
	for (size_t i = 0; i < v->n_active; i++) {
		const struct sched_job *job = &v->jobs[v->active[i]];
		int kind = kinds_of(job);

		if (job->state == JOB_RUNNING)
			e->held[job->user][kind] += need_of(job, kind);
	}
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
		    .state_size = sizeof(struct es),
		    .options = es_fields,
		    .defaults = &es_defaults,
		    .options_size = sizeof(struct es_options) },
	.decide = es_decide,
	.begin = es_begin,
};

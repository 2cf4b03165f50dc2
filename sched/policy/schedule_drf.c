/* SPDX-License-Identifier: MIT */
/*
 * Dominant resource fairness: the user who has the least of what he has most
 * of comes next. Source: Ghodsi et al., "Dominant Resource Fairness", NSDI
 * 2011. The order of a user's own jobs is an option: AlloX compares itself with
 * first come, first served (DRF-FIFO) and with the shortest job first
 * (DRF-SJF). With `cpus` a job also runs on a node without GPUs: on the kind of
 * machine where it is faster, else on the other one (DRF-Ext there, whose paper
 * leaves open how a machine is chosen).
 */
#include <errno.h>
#include <string.h>

#include "common/conf/conf.h"
#include "common/util.h"
#include "common/word.h"
#include "sched/core/schedule.h"
#include "sched/policy/kinds.h"

struct drf_options {
	char *queue;
	bool cpus;
};

static const char *const queues[] = { "fifo", "sjf", "random" };
enum { FIFO, SJF, RANDOM };

static int check_queue(const void *object, struct err *err)
{
	int i = WORD_FIND(queues, "queue", *(char *const *)object, err);

	return MIN(i, 0);
}

static const struct conf_field drf_fields[] = {
	{ CONF_KEY(queue, CONF_STRING, struct drf_options),
	  .check = check_queue,
	  .help = "order of the jobs of a user: fifo, sjf (shortest first), "
		  "random" },
	{ CONF_KEY(cpus, CONF_BOOL, struct drf_options),
	  .help = "jobs also run on nodes without GPUs" },
	{ 0 },
};

static const struct drf_options drf_defaults = { .queue = (char *)"fifo" };

struct drf_user {
	double gpu, cpu, memory; /* shares of the cluster */
	bool stuck;		 /* its next job does not fit */
};

struct drf {
	struct drf_user *users;
	double *draws; /* of each job, for random */
	int queue;
	bool cpus;
};

static int drf_begin(struct sched_schedule *s, const struct view *v,
		     struct err *err)
{
	const struct drf_options *o = s->options;
	struct drf *d = s->state;

	d->cpus = o->cpus;
	d->queue = WORD_FIND(queues, "queue", o->queue, err);
	d->users = schedule_array(s, v->n_users + 1, sizeof(*d->users));
	d->draws = schedule_array(s, v->n_jobs + 1, sizeof(*d->draws));
	for (size_t i = 0; d->draws && i < v->n_jobs; i++)
		d->draws[i] = rng_double(&s->rng);
	return 0;
}

static double share(double part, uint64_t whole)
{
	return whole ? part / (double)whole : 0;
}

/* A job has a node without GPUs to itself. */
static uint32_t cpus_of(const struct drf *d, const struct view *v,
			const struct sched_part *p)
{
	const struct sched_node *n = &v->cluster->nodes[p->node];

	return d->cpus && kinds_is_cpu(n) ? n->cpu_milli : p->cpu_milli;
}

static void count(const struct drf *d, struct drf_user *u, const struct view *v,
		  const struct sched_part *parts, size_t n)
{
	const struct capacity *whole = &v->cluster->whole;

	for (size_t i = 0; i < n; i++) {
		u->gpu += share(part_gpus(&parts[i]) * parts[i].gpu_milli,
				whole->gpu_milli);
		u->cpu += share(cpus_of(d, v, &parts[i]), whole->cpu_milli);
		u->memory +=
			share((double)parts[i].memory_mib, whole->memory_mib);
	}
}

static double dominant(const struct drf_user *u)
{
	return MAX(u->gpu, MAX(u->cpu, u->memory));
}

static double key(const struct drf *d, const struct view *v, uint32_t job)
{
	return d->queue == SJF	    ? v->jobs[job].work_ns
	       : d->queue == RANDOM ? d->draws[job]
				    : (double)v->jobs[job].arrival_ns;
}

/* The first job of each user, in `first`; UINT32_MAX: none waits. */
static void see_first(struct sched_schedule *s, const struct view *v,
		      const bool *planned, uint32_t *first)
{
	const struct drf *d = s->state;

	memset(first, 0xff, v->n_users * sizeof(*first));
	for (size_t i = 0; i < v->n_active; i++) {
		uint32_t job = v->active[i];
		uint32_t *f = &first[v->jobs[job].user];

		if (v->jobs[job].state == JOB_WAITING && !planned[job] &&
		    (*f == UINT32_MAX || key(d, v, job) < key(d, v, *f)))
			*f = job;
	}
}

/* 1: another job starts; 0: none can. */
static int start_next(struct sched_schedule *s, const struct view *v,
		      const uint32_t *first, bool *planned,
		      struct sched_plan *ret)
{
	struct drf *d = s->state;
	size_t n = 0;
	int r;

	while (!n) {
		struct drf_user *best = NULL;
		uint32_t job = 0;

		for (size_t u = 0; u < v->n_users; u++)
			if (first[u] != UINT32_MAX && !d->users[u].stuck &&
			    (!best ||
			     dominant(&d->users[u]) < dominant(best))) {
				best = &d->users[u];
				job = first[u];
			}
		if (!best)
			return 0;
		n = d->cpus ? kinds_place_any(s, &v->jobs[job])
			    : kinds_place(s, &v->jobs[job], ON_GPU);
		best->stuck = n == 0;
		if (!n)
			continue;
		count(d, best, v, s->parts, n);
		planned[job] = true;
		r = plan_start(ret, &s->scratch, job, s->parts, n);
		if (r < 0)
			return r;
	}
	return 1;
}

static int drf_decide(struct sched_schedule *s, const struct view *v,
		      struct sched_plan *ret)
{
	_cleanup_free_ uint32_t *first = calloc(v->n_users + 1, sizeof(*first));
	_cleanup_free_ bool *planned = calloc(v->n_jobs + 1, sizeof(*planned));
	struct drf *d = s->state;
	int r;

	if (!first || !planned)
		return -ENOMEM;
	memset(d->users, 0, v->n_users * sizeof(*d->users));
	for (size_t i = 0; i < v->n_active; i++) {
		const struct sched_job *job = &v->jobs[v->active[i]];

		count(d, &d->users[job->user], v, job->parts, job->n_parts);
	}
	cluster_sync(&s->scratch, v->cluster);
	do {
		see_first(s, v, planned, first);
		r = start_next(s, v, first, planned, ret);
	} while (r > 0);
	return r;
}

const struct schedule_ops schedule_drf = {
	.plugin = { .name = "drf",
		    .summary = "dominant resource fairness between users",
		    .state_size = sizeof(struct drf),
		    .options = drf_fields,
		    .defaults = &drf_defaults,
		    .options_size = sizeof(struct drf_options) },
	.decide = drf_decide,
	.begin = drf_begin,
};

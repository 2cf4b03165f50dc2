/* SPDX-License-Identifier: MIT */
/*
 * AlloX: jobs that run on a GPU or on CPUs are matched with machines so that
 * the mean completion time is least. Source: Le et al., "AlloX", EuroSys 2020,
 * section 4.
 *
 * A machine is a GPU, or a node without GPUs. A job that runs as the k-th from
 * the end on a machine delays k jobs there, itself included, so that a
 * schedule's sum of completion times is that of an assignment of jobs to
 * positions (machine, k). Of the jobs matched with a machine that is free the
 * one with the largest k starts; nothing is preempted.
 *
 * With alpha < 1 only that part of the users, those who have least, may be
 * served; what they leave idle is matched for twice the part, until it is all.
 * What a user has is the sum over the jobs that run now: the job's share of the
 * kind of machine on which it is faster, times how fast it is for that. Source:
 * the authors' scheduler for Kubernetes, which adds it when a job starts and
 * subtracts it when the job ends. A sum that is kept after the end would put
 * whoever asks for most behind all others for good.
 *
 * Jobs of several GPUs, which the paper does not have, are left to the
 * placement and get what the others leave.
 */
#include <errno.h>
#include <math.h>

#include "common/conf/conf.h"
#include "common/util.h"
#include "sched/core/schedule.h"
#include "sched/solver/assign.h"

/* Jobs in a matching at most. Source: the paper's simulator. */
enum { MOST = 50 };

/* A job cannot run there. arbitrary: above any sum of times, and small enough
 * that doubles still tell times apart beside it */
#define IMPOSSIBLE 1e24

struct allox_options {
	double alpha;
};

static const struct conf_field allox_fields[] = {
	{ CONF_KEY(alpha, CONF_DOUBLE, struct allox_options), .min = 1e-6,
	  .max = 1,
	  .help = "share of users, those with the least, that may be served: a "
		  "small share is fairer, 1 is fastest" },
	{ 0 },
};

static const struct allox_options allox_defaults = { .alpha = 1 };

struct machine {
	uint32_t node;
	int gpu;	/* -1: its CPUs */
	double free_ns; /* from now */
	bool kept;
};

struct allox_user {
	double has;
	uint32_t first; /* place of its first job among the users' */
	uint32_t user;
};

struct allox {
	struct machine *machines;
	size_t n_machines;
	double *has; /* of each user: what its jobs have */
	double *cost;
	size_t cost_allocated;
	uint32_t *columns, *jobs;
	struct allox_user *users; /* with jobs that wait */
	uint32_t *rank;		  /* of each user among them */
};

static int allox_begin(struct sched_schedule *s, const struct view *v,
		       struct err *err)
{
	struct allox *a = s->state;
	size_t n = 0;

	(void)err;
	for (size_t i = 0; i < v->cluster->n; i++)
		n += MAX(v->cluster->nodes[i].n_gpus, 1);
	a->machines = schedule_array(s, n + 1, sizeof(*a->machines));
	a->has = schedule_array(s, v->n_users + 1, sizeof(*a->has));
	a->users = schedule_array(s, v->n_users + 1, sizeof(*a->users));
	a->rank = schedule_array(s, v->n_users + 1, sizeof(*a->rank));
	a->columns = schedule_array(s, MOST, sizeof(*a->columns));
	a->jobs = schedule_array(s, MOST, sizeof(*a->jobs));
	return 0;
}

static void allox_end(struct sched_schedule *s)
{
	struct allox *a = s->state;

	free(a->cost);
}

/* --- machines ------------------------------------------------------------- */

static int earlier(const void *x, const void *y)
{
	const struct machine *a = x, *b = y;

	if (a->free_ns != b->free_ns)
		return a->free_ns < b->free_ns ? -1 : 1;
	if (a->node != b->node)
		return a->node < b->node ? -1 : 1;
	return a->gpu - b->gpu;
}

/* The machines of the part are busy that long, from now. */
static void occupy(struct allox *a, const struct view *v, const size_t *first,
		   const struct sched_part *p, double ns)
{
	struct machine *m = &a->machines[first[p->node]];

	if (v->cluster->nodes[p->node].n_gpus == 0)
		m->free_ns = MAX(m->free_ns, ns);
	for (uint32_t g = 0; p->gpus >> g; g++)
		if (p->gpus >> g & 1)
			m[g].free_ns = MAX(m[g].free_ns, ns);
}

/* When machines are free, by the jobs that run, or that the plan starts. */
static void see_busy(struct allox *a, const struct view *v,
		     const struct sched_plan *plan, const size_t *first)
{
	for (size_t i = 0; i < v->n_active; i++) {
		const struct sched_job *job = &v->jobs[v->active[i]];
		double left_ns = (double)job_due(job) - (double)v->now_ns;

		for (size_t k = 0; k < job->n_parts; k++)
			occupy(a, v, first, &job->parts[k], left_ns);
	}
	for (size_t i = 0; i < plan->n; i++) {
		const struct sched_job *job = &v->jobs[plan->actions[i].job];
		const struct sched_part *p =
			&plan->parts[plan->actions[i].first];

		occupy(a, v, first, p,
		       p->gpus ? job->work_ns : job->cpu_work_ns);
	}
}

/* Nothing is matched with GPUs that cannot be taken. */
static void drop_down(struct allox *a, const struct cluster *c)
{
	size_t n = 0;

	for (size_t i = 0; i < a->n_machines; i++)
		if (a->machines[i].gpu < 0 ||
		    !c->nodes[a->machines[i].node].down)
			a->machines[n++] = a->machines[i];
	a->n_machines = n;
}

static int see_machines(struct allox *a, const struct view *v,
			const struct sched_plan *plan)
{
	_cleanup_free_ size_t *first = calloc(v->cluster->n, sizeof(*first));

	if (!first)
		return -ENOMEM;
	a->n_machines = 0;
	for (uint32_t i = 0; i < v->cluster->n; i++) {
		int gpus = v->cluster->nodes[i].n_gpus;

		first[i] = a->n_machines;
		for (int g = gpus ? 0 : -1; g < gpus; g++)
			a->machines[a->n_machines++] =
				(struct machine){ .node = i, .gpu = g };
	}
	see_busy(a, v, plan, first);
	drop_down(a, v->cluster);
	qsort(a->machines, a->n_machines, sizeof(*a->machines), earlier);
	return 0;
}

/* --- jobs ----------------------------------------------------------------- */

/* Time on the machine. */
static double time_on(const struct view *v, const struct sched_job *job,
		      const struct machine *m)
{
	const struct sched_node *n = &v->cluster->nodes[m->node];

	if (m->gpu >= 0)
		return job->n_gpus == 1 && job_allows(job, n) &&
				       job->cpu_milli <= n->cpu_milli &&
				       job->memory_mib <= n->memory_mib
			       ? job->work_ns
			       : IMPOSSIBLE;
	return job->cpu_work_ns > 0 && job->alone_cpu_milli <= n->cpu_milli
		       ? job->cpu_work_ns
		       : IMPOSSIBLE;
}

static double shortest(const struct sched_job *job)
{
	return job->cpu_work_ns > 0 ? MIN(job->work_ns, job->cpu_work_ns)
				    : job->work_ns;
}

/* Jobs of none or of several GPUs are for no machine. */
static bool is_matched(const struct sched_job *job)
{
	return job->n_gpus == 1;
}

static int has_less(const void *x, const void *y)
{
	const struct allox_user *a = x, *b = y;

	if (a->has != b->has)
		return a->has < b->has ? -1 : 1;
	return a->first < b->first ? -1 : a->first > b->first;
}

/* What a job that runs adds to what its user has. */
static double progress_of(const struct view *v, const struct sched_job *job)
{
	const struct capacity *c = &v->cluster->whole;
	double time_ns = job->parts[0].gpus ? job->work_ns : job->cpu_work_ns;
	bool cpu = job->cpu_work_ns > 0 && job->cpu_work_ns < job->work_ns;
	double share =
		cpu ? job->alone_cpu_milli / MAX((double)c->cpu_milli, 1)
		    : (double)job_gpu_milli(job) / MAX((double)c->gpu_milli, 1);

	return time_ns > 0 ? share * shortest(job) / time_ns : 0;
}

/* Give the users with jobs that wait their ranks: 0 is who has least, of equal
 * ones whose job came first. How many there are. */
static size_t rank_users(struct allox *a, const struct view *v)
{
	size_t n = 0;

	for (size_t u = 0; u < v->n_users; u++) {
		a->rank[u] = UINT32_MAX;
		a->has[u] = 0;
	}
	for (size_t i = 0; i < v->n_active; i++) {
		const struct sched_job *job = &v->jobs[v->active[i]];

		if (job->state == JOB_RUNNING)
			a->has[job->user] += progress_of(v, job);
	}
	for (size_t i = 0; i < v->n_active; i++) {
		const struct sched_job *job = &v->jobs[v->active[i]];

		if (job->state != JOB_WAITING || a->rank[job->user] == 0)
			continue;
		a->rank[job->user] = 0;
		a->users[n] = (struct allox_user){ a->has[job->user],
						   (uint32_t)n, job->user };
		n++;
	}
	qsort(a->users, n, sizeof(*a->users), has_less);
	for (size_t i = 0; i < n; i++)
		a->rank[a->users[i].user] = (uint32_t)i;
	return n;
}

struct candidate {
	uint32_t job;
	double gpu_ns, cpu_ns;
	bool taken;
};

/* The shortest of those left, on GPUs or on CPUs; n: none is. */
static size_t next_shortest(const struct candidate *c, size_t n, bool cpu)
{
	size_t best = n;

	for (size_t i = 0; i < n; i++) {
		double x = cpu ? c[i].cpu_ns : c[i].gpu_ns;

		if (!c[i].taken &&
		    (best == n || x < (cpu ? c[best].cpu_ns : c[best].gpu_ns)))
			best = i;
	}
	return best;
}

static bool in_plan(const struct sched_plan *p, uint32_t job)
{
	for (size_t i = 0; i < p->n; i++)
		if (p->actions[i].job == job)
			return true;
	return false;
}

/* The jobs to be matched: all, or the shortest on GPUs and on CPUs by turns. */
static int see_jobs(struct allox *a, const struct view *v,
		    const struct sched_plan *plan, size_t n_users,
		    size_t *ret_n)
{
	_cleanup_free_ struct candidate *c =
		malloc((v->n_active + 1) * sizeof(*c));
	size_t n = 0, i;

	if (!c)
		return -ENOMEM;
	for (i = 0; i < v->n_active; i++) {
		const struct sched_job *job = &v->jobs[v->active[i]];

		if (job->state == JOB_WAITING && is_matched(job) &&
		    a->rank[job->user] < n_users &&
		    !in_plan(plan, v->active[i]))
			c[n++] = (struct candidate){ v->active[i], job->work_ns,
						     job->cpu_work_ns > 0
							     ? job->cpu_work_ns
							     : IMPOSSIBLE,
						     false };
	}
	for (*ret_n = 0; *ret_n < MIN(n, MOST); ++*ret_n) {
		i = n <= MOST ? *ret_n : next_shortest(c, n, *ret_n % 2);
		c[i].taken = true;
		a->jobs[*ret_n] = c[i].job;
	}
	return 0;
}

/* Of the machines of one kind on which a job can run, none but the `n` earliest
 * are of use to n jobs. */
static void keep_machines(struct allox *a, const struct view *v, size_t n)
{
	size_t kept = 0;

	for (size_t j = 0; j < n; j++) {
		size_t counts[2] = { 0 };

		for (size_t i = 0; i < a->n_machines; i++) {
			struct machine *m = &a->machines[i];

			if (time_on(v, &v->jobs[a->jobs[j]], m) < IMPOSSIBLE &&
			    counts[m->gpu < 0]++ < n)
				m->kept = true;
		}
	}
	for (size_t i = 0; i < a->n_machines; i++)
		if (a->machines[i].kept)
			a->machines[kept++] = a->machines[i];
	a->n_machines = kept;
}

/* --- the matching --------------------------------------------------------- */

/* Fills columns[]: position k - 1 of machine i is column i * n + k - 1. */
static int match(struct allox *a, const struct view *v, size_t n)
{
	size_t columns = a->n_machines * n;
	int r = util_reserve_anew(&a->cost, &a->cost_allocated, n * columns + 1,
				  sizeof(*a->cost));

	if (r < 0)
		return r;
	for (size_t j = 0; j < n; j++)
		for (size_t i = 0; i < a->n_machines; i++) {
			const struct machine *m = &a->machines[i];
			double t = time_on(v, &v->jobs[a->jobs[j]], m);

			for (size_t k = 0; k < n; k++)
				a->cost[j * columns + i * n + k] =
					t >= IMPOSSIBLE
						? IMPOSSIBLE
						: m->free_ns +
							  (double)(k + 1) * t;
		}
	return assign_min(a->cost, n, columns, a->columns);
}

static struct sched_part part_on(const struct view *v,
				 const struct sched_job *job,
				 const struct machine *m)
{
	struct sched_part p;

	if (m->gpu < 0)
		return (struct sched_part){ .node = m->node,
					    .cpu_milli = job->alone_cpu_milli };
	p = placement_part(m->node, job, 1,
			   placement_demand(&v->cluster->nodes[m->node], job));
	p.gpus = 1u << m->gpu;
	return p;
}

/* On each free machine, the job that is furthest from the end. */
static int start_matched(struct sched_schedule *s, const struct view *v,
			 size_t n, struct sched_plan *ret)
{
	struct allox *a = s->state;

	for (size_t i = 0; i < a->n_machines; i++) {
		const struct machine *m = &a->machines[i];
		const struct sched_job *job = NULL;
		struct sched_part p;
		size_t best = 0, which = 0;
		int r;

		for (size_t j = 0; m->free_ns <= 0 && j < n; j++)
			if (a->columns[j] / n == i &&
			    a->columns[j] % n + 1 > best &&
			    a->cost[j * a->n_machines * n + a->columns[j]] <
				    IMPOSSIBLE) {
				best = a->columns[j] % n + 1;
				which = j;
				job = &v->jobs[a->jobs[j]];
			}
		if (!job)
			continue;
		p = part_on(v, job, m);
		if (!cluster_has(&s->scratch, &p))
			continue;
		r = plan_start(ret, &s->scratch, a->jobs[which], &p, 1);
		if (r < 0)
			return r;
	}
	return 0;
}

static int allox_decide(struct sched_schedule *s, const struct view *v,
			struct sched_plan *ret)
{
	const struct allox_options *o = s->options;
	struct allox *a = s->state;
	double alpha = o->alpha;
	size_t users = rank_users(a, v), n;
	int r = 0;

	cluster_sync(&s->scratch, v->cluster);
	/* what the part of the users leaves idle is for twice the part */
	for (bool all = !users; r == 0 && !all; alpha *= 2) {
		size_t served = (size_t)ceil(alpha * (double)users);

		all = served >= users;
		r = see_jobs(a, v, ret, MIN(served, users), &n);
		if (r == 0)
			r = see_machines(a, v, ret);
		if (r < 0)
			break;
		keep_machines(a, v, n);
		if (a->n_machines && a->machines[0].free_ns <= 0) {
			r = match(a, v, n);
			if (r == 0)
				r = start_matched(s, v, n, ret);
		}
	}
	return r < 0 ? r : schedule_others(s, v, is_matched, ret);
}

const struct schedule_ops schedule_allox = {
	.plugin = { .name = "allox",
		    .summary = "AlloX: min-cost matching of jobs with GPUs and "
			       "CPU nodes",
		    .state_size = sizeof(struct allox),
		    .options = allox_fields,
		    .defaults = &allox_defaults,
		    .options_size = sizeof(struct allox_options) },
	.places = true,
	.decide = allox_decide,
	.begin = allox_begin,
	.end = allox_end,
};

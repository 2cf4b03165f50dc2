/* SPDX-License-Identifier: MIT */
/* From the ends of jobs to means, percentiles and fairness. */
#include <errno.h>
#include <math.h>
#include <string.h>

#include "common/units.h"
#include "common/util.h"
#include "sched/sim.h"

static double completion_s(const struct job *job)
{
	return (double)job_jct(job) / NS_PER_S;
}

static int compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

/* The nearest rank; `v` is sorted. */
static double quantile(const double *v, size_t n, double q)
{
	size_t rank = (size_t)ceil(q * (double)n);

	return v[rank ? rank - 1 : 0];
}

static struct summary summarise(double *v, size_t n)
{
	struct summary s = { 0 };

	if (!n)
		return s;
	qsort(v, n, sizeof(*v), compare);
	for (size_t i = 0; i < n; i++)
		s.mean_s += v[i] / (double)n;
	s.p50_s = quantile(v, n, .5);
	s.p95_s = quantile(v, n, .95);
	s.p99_s = quantile(v, n, .99);
	s.max_s = v[n - 1];
	return s;
}

/* How much longer it took than alone, on a GPU. */
static double slowdown(const struct job *job)
{
	return completion_s(job) * NS_PER_S / job->work_ns;
}

static uint32_t in_all(const struct job *job)
{
	(void)job;
	return 0;
}

static uint32_t in_user(const struct job *job)
{
	return job->user;
}

static uint32_t in_class(const struct job *job)
{
	return job->class;
}

static void add_member(struct group_result *g, const struct job *job)
{
	double run_s = (double)job->run_ns / NS_PER_S;

	g->run_s += run_s;
	g->wait_s += completion_s(job) - run_s;
	g->slowdown += slowdown(job);
}

/* `n_groups` of them, each in the order of its jobs; `times` is room for one
 * number of each job. */
static int make_groups(const struct job *jobs, size_t n,
		       uint32_t (*group_of)(const struct job *job),
		       struct group_result *ret, size_t n_groups, double *times)
{
	/* where the times of each group go next, in the end: where they end */
	_cleanup_free_ size_t *at = calloc(n_groups + 1, sizeof(*at));

	if (!at)
		return -ENOMEM;
	for (size_t i = 0; i < n; i++)
		ret[group_of(&jobs[i])].n++;
	for (size_t k = 1; k < n_groups; k++)
		at[k] = at[k - 1] + ret[k - 1].n;
	for (size_t i = 0; i < n; i++) {
		uint32_t k = group_of(&jobs[i]);

		times[at[k]++] = completion_s(&jobs[i]);
		add_member(&ret[k], &jobs[i]);
	}
	for (size_t k = 0; k < n_groups; k++) {
		struct group_result *g = &ret[k];

		if (!g->n)
			continue;
		g->jct = summarise(times + at[k] - g->n, g->n);
		g->run_s /= (double)g->n;
		g->wait_s /= (double)g->n;
		g->slowdown /= (double)g->n;
	}
	return 0;
}

/* Jain's index: 1 if all are slowed down alike, 1/n if only one is. Source:
 * Jain, Chiu and Hawe, DEC-TR-301, 1984. */
static void fairness(const struct job *jobs, size_t n, struct sim_result *ret)
{
	double sum = 0, squares = 0;

	for (size_t i = 0; i < n; i++) {
		double x = slowdown(&jobs[i]);

		sum += x;
		squares += x * x;
		ret->slowdown_max = MAX(ret->slowdown_max, x);
	}
	ret->jain = squares > 0 ? sum * sum / ((double)n * squares) : 1;
}

int result_make(const struct workload *w, const struct job *jobs,
		struct sim_result *ret)
{
	_cleanup_free_ double *times = malloc((w->n + 1) * sizeof(double));
	uint64_t last = 0;
	int r;

	ret->users = calloc(w->n_users + 1, sizeof(*ret->users));
	ret->classes = calloc(w->n_classes + 1, sizeof(*ret->classes));
	if (!times || !ret->users || !ret->classes)
		return -ENOMEM;
	for (size_t i = 0; i < w->n; i++) {
		last = MAX(last, jobs[i].end_ns);
		ret->n_preempted += jobs[i].n_preempted;
		ret->n_moved += jobs[i].n_moved;
	}
	ret->makespan_s = (double)(last - jobs[0].arrival_ns) / NS_PER_S;
	r = make_groups(jobs, w->n, in_all, &ret->all, 1, times);
	if (r == 0)
		r = make_groups(jobs, w->n, in_user, ret->users, w->n_users,
				times);
	if (r == 0)
		r = make_groups(jobs, w->n, in_class, ret->classes,
				w->n_classes, times);
	fairness(jobs, w->n, ret);
	return r;
}

void result_fini(struct sim_result *r)
{
	free(r->users);
	free(r->classes);
	r->users = r->classes = NULL;
}

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
	return (double)(job->end_ns - job->arrival_ns) / NS_PER_S;
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

enum group_kind { ALL, USER, CLASS };

static bool is_member(const struct job *job, enum group_kind kind, uint32_t i)
{
	return kind == ALL || (kind == USER ? job->user : job->class) == i;
}

/* How much longer it took than alone, on a GPU. */
static double slowdown(const struct job *job)
{
	return completion_s(job) * NS_PER_S / job->work_ns;
}

static struct group_result group(const struct job *jobs, size_t n,
				 enum group_kind kind, uint32_t which,
				 double *buffer)
{
	struct group_result g = { 0 };

	for (size_t i = 0; i < n; i++) {
		const struct job *job = &jobs[i];
		double run_s = (double)job->run_ns / NS_PER_S;

		if (!is_member(job, kind, which))
			continue;
		buffer[g.n++] = completion_s(job);
		g.run_s += run_s;
		g.wait_s += completion_s(job) - run_s;
		g.slowdown += slowdown(job);
	}
	if (!g.n)
		return g;
	g.jct = summarise(buffer, g.n);
	g.run_s /= (double)g.n;
	g.wait_s /= (double)g.n;
	g.slowdown /= (double)g.n;
	return g;
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
	_cleanup_free_ double *buffer = malloc((w->n + 1) * sizeof(double));
	uint64_t last = 0;

	ret->users = calloc(w->n_users + 1, sizeof(*ret->users));
	ret->classes = calloc(w->n_classes + 1, sizeof(*ret->classes));
	if (!buffer || !ret->users || !ret->classes)
		return -ENOMEM;
	for (size_t i = 0; i < w->n; i++) {
		last = MAX(last, jobs[i].end_ns);
		ret->n_preempted += jobs[i].n_preempted;
		ret->n_moved += jobs[i].n_moved;
	}
	ret->makespan_s = (double)(last - jobs[0].arrival_ns) / NS_PER_S;
	ret->all = group(jobs, w->n, ALL, 0, buffer);
	for (uint32_t i = 0; i < w->n_users; i++)
		ret->users[i] = group(jobs, w->n, USER, i, buffer);
	for (uint32_t i = 0; i < w->n_classes; i++)
		ret->classes[i] = group(jobs, w->n, CLASS, i, buffer);
	fairness(jobs, w->n, ret);
	return 0;
}

void result_fini(struct sim_result *r)
{
	free(r->users);
	free(r->classes);
	r->users = r->classes = NULL;
}

/* SPDX-License-Identifier: MIT */
/* From the ends of jobs to means, percentiles and fairness. */
#include <errno.h>
#include <math.h>

#include "common/units.h"
#include "common/util.h"
#include "sched/sim.h"

static double completion_s(const struct sched_job *job)
{
	return (double)job_jct(job) / NS_PER_S;
}

double result_quantile(const double *v, size_t n, double q)
{
	size_t rank = (size_t)ceil(q * (double)n);

	return v[rank ? rank - 1 : 0];
}

static struct summary summarise(double *v, size_t n)
{
	struct summary s = { 0 };

	if (!n)
		return s;
	qsort(v, n, sizeof(*v), util_compare_double);
	for (size_t i = 0; i < n; i++)
		s.mean_s += v[i] / (double)n;
	s.p50_s = result_quantile(v, n, .5);
	s.p95_s = result_quantile(v, n, .95);
	s.p99_s = result_quantile(v, n, .99);
	s.max_s = v[n - 1];
	return s;
}

/* How much longer it took than alone, on a GPU. */
static double slowdown(const struct sched_job *job)
{
	return completion_s(job) * NS_PER_S / job->work_ns;
}

static uint32_t in_all(const struct sched_job *job)
{
	(void)job;
	return 0;
}

static uint32_t in_user(const struct sched_job *job)
{
	return job->user;
}

static uint32_t in_class(const struct sched_job *job)
{
	return job->class;
}

struct ending {
	uint64_t at_ns;
	size_t job;
};

static int sooner(const void *a, const void *b)
{
	const struct ending *x = a, *y = b;

	if (x->at_ns != y->at_ns)
		return x->at_ns < y->at_ns ? -1 : 1;
	return x->job < y->job ? -1 : x->job > y->job;
}

/*
 * Finish-time ratios. How many jobs were there during one is the difference of
 * the sum over time of that number at its end and at its arrival.
 */
static int finish_times(const struct sched_job *jobs, size_t n, double gpus,
			double *ret)
{
	_cleanup_free_ struct ending *ends = malloc((n + 1) * sizeof(*ends));
	uint64_t last_ns = n ? jobs[0].arrival_ns : 0;
	double sum = 0;
	size_t i = 0, k = 0;

	if (!ends)
		return -ENOMEM;
	for (size_t j = 0; j < n; j++)
		ends[j] = (struct ending){ jobs[j].end_ns, j };
	qsort(ends, n, sizeof(*ends), sooner);
	while (k < n) {
		bool arrives = i < n && jobs[i].arrival_ns <= ends[k].at_ns;
		uint64_t at_ns = arrives ? jobs[i].arrival_ns : ends[k].at_ns;
		size_t j = ends[k].job;
		double need;

		sum += (double)(i - k) * (double)(at_ns - last_ns);
		last_ns = at_ns;
		if (arrives) {
			ret[i++] = sum;
			continue;
		}
		k++;
		need = (sum - ret[j]) / (double)job_jct(&jobs[j]) *
		       (double)job_gpu_milli(&jobs[j]) / GPU_MILLI;
		ret[j] = gpus > 0 ? slowdown(&jobs[j]) / MAX(need / gpus, 1)
				  : 0;
	}
	return 0;
}

/* Room for a number of each job, and what is known of each. */
struct numbers {
	double *times, *finish;
};

static void add_member(struct group_result *g, const struct sched_job *job,
		       double finish)
{
	double run_s = (double)job->run_ns / NS_PER_S;
	double x = slowdown(job);

	g->run_s += run_s;
	g->wait_s += completion_s(job) - run_s;
	g->gpu_s += job->gpu_ns / NS_PER_S;
	g->slowdown += x;
	g->slowdown_max = MAX(g->slowdown_max, x);
	g->jain += x * x;
	g->finish_time += finish;
	g->finish_time_max = MAX(g->finish_time_max, finish);
}

/* From sums to means. Jain's index is 1 if all are slowed down alike, 1/n if
 * only one is. Source: Jain, Chiu and Hawe, DEC-TR-301, 1984. */
static void divide(struct group_result *g)
{
	double n = (double)g->n;

	g->run_s /= n;
	g->wait_s /= n;
	g->jain = g->slowdown * g->slowdown / (n * g->jain);
	g->slowdown /= n;
	g->finish_time /= n;
}

/* `n_groups` of them, each in the order of its jobs. */
static int make_groups(const struct sched_job *jobs, size_t n,
		       uint32_t (*group_of)(const struct sched_job *job),
		       struct group_result *ret, size_t n_groups,
		       const struct numbers *v)
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

		v->times[at[k]++] = completion_s(&jobs[i]);
		add_member(&ret[k], &jobs[i], v->finish[i]);
	}
	for (size_t k = 0; k < n_groups; k++) {
		struct group_result *g = &ret[k];

		if (!g->n)
			continue;
		g->jct = summarise(v->times + at[k] - g->n, g->n);
		divide(g);
	}
	return 0;
}

int result_make(const struct sched_workload *w, const struct sched_job *jobs,
		struct sim_result *ret)
{
	_cleanup_free_ double *times = malloc((w->n + 1) * sizeof(double));
	_cleanup_free_ double *finish = malloc((w->n + 1) * sizeof(double));
	struct numbers v = { times, finish };
	uint64_t last = 0;
	int r;

	ret->users = calloc(w->n_users + 1, sizeof(*ret->users));
	ret->classes = calloc(w->n_classes + 1, sizeof(*ret->classes));
	if (!times || !finish || !ret->users || !ret->classes)
		return -ENOMEM;
	for (size_t i = 0; i < w->n; i++) {
		last = MAX(last, jobs[i].end_ns);
		ret->n_preempted += jobs[i].n_preempted;
		ret->n_moved += jobs[i].n_moved;
	}
	ret->makespan_s = (double)(last - jobs[0].arrival_ns) / NS_PER_S;
	r = finish_times(jobs, w->n, ret->gpus, finish);
	if (r == 0)
		r = make_groups(jobs, w->n, in_all, &ret->all, 1, &v);
	if (r == 0)
		r = make_groups(jobs, w->n, in_user, ret->users, w->n_users,
				&v);
	if (r == 0)
		r = make_groups(jobs, w->n, in_class, ret->classes,
				w->n_classes, &v);
	return r;
}

void result_fini(struct sim_result *r)
{
	free(r->users);
	free(r->classes);
	r->users = r->classes = NULL;
}

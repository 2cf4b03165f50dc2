/* SPDX-License-Identifier: MIT */
#include "sched/core/storage.h"

#include <errno.h>

#include "common/util.h"

/* A running job that reads. */
struct reader {
	double key; /* by which they are sorted, least first */
	uint32_t job;
};

bool storage_reads(const struct cluster *c, const struct sched_job *job)
{
	return c->remote_mib_s > 0 && job->dataset_mib > 0 &&
	       job->read_mib_s > 0;
}

double storage_demand(const struct sched_job *job)
{
	return job->read_mib_s * (1 - job->cached_mib / job->dataset_mib);
}

double storage_speed(const struct cluster *c, const struct sched_job *job)
{
	double demand;

	if (!storage_reads(c, job))
		return 1;
	demand = storage_demand(job);
	return demand > job->remote_mib_s ? job->remote_mib_s / demand : 1;
}

static int compare_readers(const void *a, const void *b)
{
	const struct reader *x = a, *y = b;

	if (x->key != y->key)
		return x->key < y->key ? -1 : 1;
	return x->job < y->job ? -1 : x->job > y->job;
}

static void cache_by_gpus(const struct cluster *c, struct sched_job *jobs,
			  const struct reader *q, size_t n)
{
	double gpus = (double)c->whole.gpu_milli / GPU_MILLI;

	for (size_t i = 0; i < n; i++) {
		struct sched_job *job = &jobs[q[i].job];
		double share = gpus > 0 ? job_gpus_held(job) / gpus : 0;

		job->cache_mib = MIN(job->dataset_mib, c->cache_mib * share);
	}
}

/* A fractional knapsack: a MiB saves read_mib_s / dataset_mib of a job. */
static void cache_by_saving(const struct cluster *c, struct sched_job *jobs,
			    struct reader *q, size_t n)
{
	double left = c->cache_mib;

	for (size_t i = 0; i < n; i++)
		q[i].key =
			-jobs[q[i].job].read_mib_s / jobs[q[i].job].dataset_mib;
	qsort(q, n, sizeof(*q), compare_readers);
	for (size_t i = 0; i < n; i++) {
		struct sched_job *job = &jobs[q[i].job];

		job->cache_mib = MIN(job->dataset_mib, left);
		left -= job->cache_mib;
	}
}

/* Those that need least first: each gets what it needs, or an equal part of
 * what is left. */
static void bandwidth(const struct cluster *c, struct sched_job *jobs,
		      struct reader *q, size_t n)
{
	double left = c->remote_mib_s;

	for (size_t i = 0; i < n; i++)
		q[i].key = storage_demand(&jobs[q[i].job]);
	qsort(q, n, sizeof(*q), compare_readers);
	for (size_t i = 0; i < n; i++) {
		struct sched_job *job = &jobs[q[i].job];

		job->remote_mib_s = MIN(q[i].key, left / (double)(n - i));
		left -= job->remote_mib_s;
	}
}

/* The running ones of the active jobs that read; *ret_n: how many. NULL: none,
 * or no memory. */
static struct reader *readers(const struct cluster *c,
			      const struct sched_job *jobs,
			      const uint32_t *active, size_t n, size_t *ret_n)
{
	struct reader *q = c->remote_mib_s > 0 ? malloc((n + 1) * sizeof(*q))
					       : NULL;

	*ret_n = 0;
	for (size_t i = 0; q && i < n; i++) {
		const struct sched_job *job = &jobs[active[i]];

		if (job->state == JOB_RUNNING && storage_reads(c, job))
			q[(*ret_n)++] = (struct reader){ 0, active[i] };
	}
	return q;
}

int storage_split_cache(const struct cluster *c, enum storage_rule rule,
			struct sched_job *jobs, const uint32_t *active,
			size_t n)
{
	size_t n_readers;
	_cleanup_free_ struct reader *q =
		readers(c, jobs, active, n, &n_readers);

	if (!q)
		return c->remote_mib_s > 0 ? -ENOMEM : 0;
	if (rule == STORAGE_BY_SAVING)
		cache_by_saving(c, jobs, q, n_readers);
	else
		cache_by_gpus(c, jobs, q, n_readers);
	for (size_t i = 0; i < n_readers; i++)
		jobs[q[i].job].cached_mib = jobs[q[i].job].cache_mib;
	return 0;
}

int storage_split_bandwidth(const struct cluster *c, struct sched_job *jobs,
			    const uint32_t *active, size_t n)
{
	size_t n_readers;
	_cleanup_free_ struct reader *q =
		readers(c, jobs, active, n, &n_readers);

	if (!q)
		return c->remote_mib_s > 0 ? -ENOMEM : 0;
	bandwidth(c, jobs, q, n_readers);
	return 0;
}

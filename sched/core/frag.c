/* SPDX-License-Identifier: MIT */
#include "sched/core/frag.h"

#include <errno.h>
#include <stdlib.h>

#include "common/util.h"

/* Source: the paper's simulator, its default. */
#define POPULAR .95

#define COMPARE(a, b, member)                                      \
	do {                                                       \
		if ((a)->member != (b)->member)                    \
			return (a)->member < (b)->member ? -1 : 1; \
	} while (0)

static int by_kind(const void *a, const void *b)
{
	const struct frag_job *x = a, *y = b;

	COMPARE(x, y, n_gpus);
	COMPARE(x, y, gpu_milli);
	COMPARE(x, y, cpu_milli);
	COMPARE(x, y, models);
	return 0;
}

/* The most frequent first. */
static int by_share(const void *a, const void *b)
{
	const struct frag_job *x = a, *y = b;

	if (x->share != y->share)
		return x->share > y->share ? -1 : 1;
	return by_kind(a, b);
}

int frag_init(struct frag *f, const struct sched_job *jobs, size_t n)
{
	struct frag_job *v = calloc(n + 1, sizeof(*v));
	size_t kinds = 0;
	double sum = 0;

	*f = (struct frag){ .typical = v };
	if (!v)
		return -ENOMEM;
	for (size_t i = 0; i < n; i++)
		v[i] = (struct frag_job){ .n_gpus = jobs[i].n_gpus,
					  .gpu_milli = jobs[i].gpu_milli,
					  .cpu_milli = jobs[i].cpu_milli,
					  .models = jobs[i].models };
	qsort(v, n, sizeof(*v), by_kind);
	for (size_t i = 0; i < n; i++) {
		if (!kinds || by_kind(&v[kinds - 1], &v[i]))
			v[kinds++] = v[i];
		v[kinds - 1].share += 1. / (double)n;
	}
	qsort(v, kinds, sizeof(*v), by_share);
	while (f->n < kinds && sum < POPULAR - 1e-9)
		sum += v[f->n++].share;
	for (size_t i = 0; i < f->n; i++)
		v[i].share /= sum;
	return 0;
}

void frag_fini(struct frag *f)
{
	free(f->typical);
	*f = (struct frag){ 0 };
}

/*
 * Why a GPU is lost. Sums are made by reason and then added up, as the paper's
 * simulator does: a difference of two such sums that is not quite zero decides
 * its ties.
 */
enum reason {
	NO_GPU_NO_CPU,
	NO_GPU,
	NO_CPU,
	NONE,
	NONE_NO_CPU,
	MODEL,
	REASONS
};

/*
 * Free GPUs that do not have what one GPU of the job takes are lost to it; all
 * are if it needs none, may not run there, or finds too few GPUs or CPUs.
 */
static enum reason lost(const struct frag_job *job, const struct sched_node *n,
			uint32_t idle, uint32_t *ret)
{
	bool cpu = job->cpu_milli <= n->cpu_free;
	uint32_t fit = 0, rest = 0;

	*ret = idle;
	if (!job->n_gpus)
		return cpu ? NONE : NONE_NO_CPU;
	if (job->models && !(job->models >> n->model & 1))
		return MODEL;
	for (uint32_t g = 0; g < n->n_gpus; g++) {
		if (n->gpu_free[g] >= job->gpu_milli)
			fit++;
		else
			rest += n->gpu_free[g];
	}
	if (fit < job->n_gpus)
		return cpu ? NO_GPU : NO_GPU_NO_CPU;
	if (!cpu)
		return NO_CPU;
	*ret = rest;
	return NO_GPU;
}

double frag_node(const struct frag *f, const struct sched_node *n)
{
	uint32_t idle = node_gpu_free(n), milli;
	double sums[REASONS] = { 0 }, sum = 0;

	for (size_t i = 0; idle && i < f->n; i++) {
		enum reason reason = lost(&f->typical[i], n, idle, &milli);

		sums[reason] += f->typical[i].share * milli;
	}
	for (size_t k = 0; k < REASONS; k++)
		sum += sums[k];
	return sum;
}

double frag_cluster(const struct frag *f, const struct cluster *c)
{
	double sum = 0;

	for (size_t i = 0; i < c->n; i++)
		sum += frag_node(f, &c->nodes[i]);
	return sum;
}

/* --- over time ------------------------------------------------------------ */

int frag_meter_init(struct frag_meter *m, const struct cluster *c,
		    const struct sched_job *jobs, size_t n)
{
	int r;

	*m = (struct frag_meter){ 0 };
	r = frag_init(&m->f, jobs, n);
	if (r < 0)
		return r;
	if (m->f.n > FRAG_KINDS_MAX)
		m->f.n = 0;
	for (size_t i = 0; i < m->f.n; i++)
		m->f.typical[i].n_gpus =
			MIN(m->f.typical[i].n_gpus, c->gpus_max);
	m->of = calloc(c->n + 1, sizeof(*m->of));
	m->changes = calloc(c->n + 1, sizeof(*m->changes));
	if (!m->of || !m->changes)
		return -ENOMEM;
	for (size_t i = 0; i < c->n; i++)
		m->changes[i] = c->nodes[i].changes - 1;
	return 0;
}

void frag_meter_fini(struct frag_meter *m)
{
	frag_fini(&m->f);
	free(m->of);
	free(m->changes);
	*m = (struct frag_meter){ 0 };
}

double frag_meter_see(struct frag_meter *m, const struct cluster *c)
{
	double sum = 0;

	for (size_t i = 0; m->f.n && i < c->n; i++) {
		if (m->changes[i] != c->nodes[i].changes) {
			m->changes[i] = c->nodes[i].changes;
			m->of[i] = frag_node(&m->f, &c->nodes[i]);
		}
		sum += m->of[i];
	}
	return sum;
}

/* SPDX-License-Identifier: MIT */
/*
 * Jobs that run on a GPU or on CPUs. Source: Le et al., "AlloX", EuroSys 2020;
 * the repository lenhattan86/allox_sim, input. Four lines a job:
 *
 *	# ID ...
 *	1 ID 1 ARRIVAL QUEUE
 *	stage -1.0 CPUS MEMORY CPU_TIME GPUS GPU_MEMORY GPU_TIME 1 ...
 *	0
 *
 * in seconds and GiB; what follows on these lines is of estimates, and not
 * read.
 */
#include <string.h>

#include "common/units.h"
#include "common/util.h"
#include "sched/trace/workload.h"

static int read_head(struct trace_reader *t, struct sched_job *job)
{
	enum { ID = 1, ARRIVAL = 3, QUEUE = 4, WORDS = 5 };
	_cleanup_free_ char *queue = NULL;
	double arrival_s;
	int r;

	if (t->csv.n < WORDS)
		return rows_error(&t->csv, NULL,
				  "%d words where 5 are needed: 1 ID 1 ARRIVAL "
				  "QUEUE",
				  t->csv.n);
	r = rows_number(&t->csv, ARRIVAL, "arrival", 0, WORKLOAD_SECONDS_MAX,
			&arrival_s);
	if (r == 0)
		r = rows_text(&t->csv, QUEUE, &queue);
	if (r == 0)
		r = workload_user(t->w, queue, &job->user);
	if (r == 0)
		r = workload_class(t->w, queue, &job->class);
	if (r == 0)
		r = rows_text(&t->csv, ID, &job->name);
	if (r == 0)
		job->arrival_ns = (uint64_t)(arrival_s * NS_PER_S);
	return r;
}

static int read_stage(struct trace_reader *t, struct sched_job *job)
{
	enum { CPUS = 2, CPU_TIME = 4, GPUS = 5, GPU_TIME = 7, WORDS = 8 };
	double cpus, cpu_s, gpus, gpu_s;
	int r;

	if (t->csv.n < WORDS || !rows_is(&t->csv.f[0], "stage"))
		return rows_error(&t->csv, NULL,
				  "not 'stage -1.0 CPUS MEMORY CPU_TIME GPUS "
				  "GPU_MEMORY GPU_TIME ...'");
	r = rows_number(&t->csv, CPUS, "CPUs", 0, CLUSTER_CPU_MAX, &cpus);
	if (r == 0)
		r = rows_number(&t->csv, CPU_TIME, "CPU time", 0,
				WORKLOAD_SECONDS_MAX, &cpu_s);
	if (r == 0)
		r = rows_number(&t->csv, GPUS, "GPUs", 1, WORKLOAD_GPUS_MAX,
				&gpus);
	if (r == 0)
		r = rows_number(&t->csv, GPU_TIME, "GPU time", 1e-9,
				WORKLOAD_SECONDS_MAX, &gpu_s);
	if (r < 0)
		return r;
	job->alone_cpu_milli = (uint32_t)(cpus * 1e3);
	job->cpu_work_ns = cpu_s * NS_PER_S;
	job->n_gpus = (uint32_t)gpus;
	job->work_ns = gpu_s * NS_PER_S;
	return 0;
}

static int read_job(struct trace_reader *t, struct sched_job *job)
{
	struct rows *c = &t->csv;
	int r = read_head(t, job);

	if (r == 0 && !rows_next_words(c))
		r = rows_error(c, NULL, "a job without a stage");
	if (r == 0)
		r = read_stage(t, job);
	if (r == 0 &&
	    (!rows_next_words(c) || c->n != 1 || !rows_is(&c->f[0], "0")))
		r = rows_error(c, NULL, "no line '0' after the only stage");
	return r;
}

static int allox_parse(struct trace_reader *t)
{
	return workload_words(t, read_job);
}

/* "# ID ..." and, on a line of its own, "1 ". */
static bool allox_knows(const char *bytes, size_t n)
{
	const char *eol = n ? memchr(bytes, '\n', n) : NULL;

	return eol && bytes[0] == '#' && (size_t)(eol - bytes) + 2 < n &&
	       eol[1] == '1' && eol[2] == ' ';
}

const struct reader_ops reader_allox = {
	.plugin = { .name = "allox",
		    .summary = "inputs of AlloX: times on a GPU and on CPUs" },
	.knows = allox_knows,
	.parse = allox_parse,
};

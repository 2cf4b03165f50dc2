/* SPDX-License-Identifier: MIT */
/*
 * Tasks of Alibaba's PAI in 2020. Source: Weng et al., "MLaaS in the Wild",
 * NSDI 2022; the repository alibaba/clusterdata, cluster-trace-gpu-v2020,
 * pai_task_table.csv, which has no header, and pai_task_table.header.
 *
 *	job_name,task_name,inst_num,status,start_time,end_time,plan_cpu,
 *	plan_mem,plan_gpu,gpu_type
 *
 * A task is a job of ours: `inst_num` instances that run together, each with
 * `plan_gpu` and `plan_cpu` in percent of one and `plan_mem` in GB. The table
 * of jobs has the users and the times of submission, but no GPUs; so a task
 * arrives when it is launched.
 */
#include <errno.h>
#include <math.h>
#include <stdio.h>

#include "common/util.h"
#include "sched/trace/spans.h"

enum {
	JOB,
	TASK,
	INSTANCES,
	STATUS,
	START,
	END,
	CPU,
	MEMORY,
	GPU,
	GPU_TYPE,
	N_COLUMNS,
	JOB_COLUMNS = 6 /* of pai_job_table, which has STATUS there too */
};

static const char *const columns[N_COLUMNS] = {
	"job_name", "task_name", "inst_num", "status",	 "start_time",
	"end_time", "plan_cpu",	 "plan_mem", "plan_gpu", "gpu_type",
};

/* The field is empty where nothing was asked for. */
static int read_plan(const struct trace_reader *t, const int *at, int which,
		     double max, double *ret)
{
	*ret = 0;
	if (at[which] < t->csv.n && !t->csv.f[at[which]].n)
		return 0;
	return rows_number(&t->csv, at[which], columns[which], 0, max, ret);
}

/* Parts of GPUs of several instances are rounded up to whole ones. */
static void set_gpus(struct trace_reader *t, double percent, double instances,
		     struct sched_job *job)
{
	double gpus = ceil(percent * instances / 100);

	job->n_gpus = (uint32_t)gpus;
	if (percent < 100 && instances <= 1)
		job->gpu_milli = (uint32_t)ceil(percent * 10);
	else if (t->use == WORKLOAD_RUNS && gpus * 100 > percent * instances)
		workload_count(t->w, "with whole GPUs for parts", false,
			       t->csv.line);
}

static int read_needs(struct trace_reader *t, const int *at,
		      struct sched_job *job)
{
	double instances, cpu, gib, gpu;
	int r = rows_number(&t->csv, at[INSTANCES], columns[INSTANCES], 0,
			    WORKLOAD_GPUS_MAX, &instances);

	if (r == 0)
		r = read_plan(t, at, CPU, CLUSTER_CPU_MAX, &cpu);
	if (r == 0)
		r = read_plan(t, at, MEMORY, 1e6, &gib);
	if (r == 0)
		r = read_plan(t, at, GPU, 1e5, &gpu);
	if (r == 0 && gpu * instances / 100 > WORKLOAD_GPUS_MAX)
		r = rows_error(&t->csv, &t->csv.f[at[GPU]],
			       "plan_gpu: %g times %g %% are more than %u GPUs",
			       instances, gpu, WORKLOAD_GPUS_MAX);
	if (r < 0)
		return r;
	job->cpu_milli = (uint32_t)fmin(cpu * 10 * instances, UINT32_MAX);
	job->memory_mib = (uint64_t)(gib * 1024 * instances);
	set_gpus(t, gpu, instances, job);
	return 0;
}

static int read_names(struct trace_reader *t, const int *at,
		      struct sched_job *job)
{
	const struct rows_field *f = t->csv.f;
	_cleanup_free_ char *type = NULL;
	int r = rows_text(&t->csv, at[GPU_TYPE], &type);

	if (r == 0)
		r = workload_class(t->w, type ? type : "-", &job->class);
	if (r == 0)
		r = workload_user(t->w, "-", &job->user);
	if (r < 0)
		return r;
	if (asprintf(&job->name, "%.*s/%.*s", (int)MIN(f[at[JOB]].n, 200),
		     f[at[JOB]].text, (int)MIN(f[at[TASK]].n, 200),
		     f[at[TASK]].text) >= 0)
		return 0;
	job->name = NULL;
	return -ENOMEM;
}

static int read_task(struct trace_reader *t, const int *at)
{
	struct sched_job job = workload_job();
	struct span s = { .submitted_s = NAN };
	int r;

	if (t->csv.n < N_COLUMNS)
		return rows_error(&t->csv, NULL,
				  "%d fields where pai_task_table has %d%s",
				  t->csv.n, N_COLUMNS,
				  t->csv.n == JOB_COLUMNS
					  ? "; pai_job_table has no GPUs"
					  : "");
	r = span_column(t, at[START], columns[START], &s.started_s);
	if (r == 0)
		r = span_column(t, at[END], columns[END], &s.ended_s);
	if (r == 0)
		r = read_needs(t, at, &job);
	if (r == 0 && !job.n_gpus)
		return spans_leave_out(t, &job, "without GPUs", t->csv.line);
	if (r == 0)
		r = read_names(t, at, &job);
	s.submitted_s = s.started_s;
	return r == 0 ? spans_add(t, &job, &s, t->csv.line) : r;
}

static bool is_header(const struct rows *c)
{
	int at[N_COLUMNS];
	struct rows quiet = *c;

	quiet.err = NULL;
	return rows_header(&quiet, columns, N_COLUMNS, N_COLUMNS, at) == 0;
}

static int alibaba_parse(struct trace_reader *t)
{
	int at[N_COLUMNS], r = 0;

	if (is_header(&t->csv)) {
		r = rows_header(&t->csv, columns, N_COLUMNS, N_COLUMNS, at);
	} else {
		rows_rewind(&t->csv);
		for (int i = 0; i < N_COLUMNS; i++)
			at[i] = i;
	}
	while (r == 0 && rows_next(&t->csv))
		r = read_task(t, at);
	return r;
}

/* Its header, or a row with as many fields and a status; or one of the table of
 * jobs, so that the error says what is missing there. */
static bool alibaba_knows(const char *bytes, size_t n)
{
	static const char *const states[] = { "Terminated", "Failed", "Running",
					      "Waiting", "Interrupted" };
	struct rows c = { .at = bytes, .end = bytes + n };

	if (!rows_next(&c))
		return false;
	for (size_t i = 0; i < ARRAY_SIZE(states); i++)
		if ((c.n == N_COLUMNS || c.n == JOB_COLUMNS) &&
		    rows_is(&c.f[STATUS], states[i]))
			return true;
	return is_header(&c);
}

const struct reader_ops reader_alibaba = {
	.plugin = { .name = "alibaba",
		    .summary = "pai_task_table of Alibaba 2020: a task per "
			       "row, without a header" },
	.knows = alibaba_knows,
	.parse = alibaba_parse,
};

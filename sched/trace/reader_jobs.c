/* SPDX-License-Identifier: MIT */
/* The format of gpemu-sched itself; gpemu-sched(1) has its columns. */
#include "common/units.h"
#include "common/util.h"
#include "sched/trace/workload.h"

enum {
	WORK,
	ARRIVAL,
	NAME,
	USER,
	CLASS,
	GPUS,
	GPU_SHARE,
	CPUS,
	MEMORY,
	MODELS,
	CPU_WORK,
	COUNT,
	GPU_MEMORY,
	GPU_BUSY,
	COLD,
	DATASET,
	READ,
	GRADIENT,
	ITERATION,
	STAGE, /* the first of them */
	N_COLUMNS = STAGE + STAGES
};

static const char *const columns[N_COLUMNS] = {
	"work_s",	  "arrival_s",	  "name",	 "user",
	"class",	  "gpus",	  "gpu_milli",	 "cpu_milli",
	"memory_mib",	  "gpu_models",	  "cpu_work_s",	 "count",
	"gpu_memory_mib", "gpu_busy",	  "cold_s",	 "dataset_mib",
	"read_mib_s",	  "gradient_mib", "iteration_s", "storage_s",
	"prep_s",	  "gpu_s",	  "network_s",
};

static int read_times(struct trace_reader *t, const int *at,
		      struct sched_job *job)
{
	double arrival_s, work_s, cpu_work_s, cold_s;
	int r = rows_number(&t->csv, at[ARRIVAL], "arrival_s", 0,
			    WORKLOAD_SECONDS_MAX, &arrival_s);

	if (r == 0)
		r = rows_number(&t->csv, at[WORK], "work_s",
				WORKLOAD_SECONDS_MIN, WORKLOAD_SECONDS_MAX,
				&work_s);
	if (r == 0)
		r = rows_number(&t->csv, at[CPU_WORK], "cpu_work_s", 0,
				WORKLOAD_SECONDS_MAX, &cpu_work_s);
	if (r == 0)
		r = rows_number(&t->csv, at[COLD], "cold_s", 0,
				WORKLOAD_SECONDS_MAX, &cold_s);
	if (r < 0)
		return r;
	job->arrival_ns = (uint64_t)(arrival_s * NS_PER_S);
	job->work_ns = work_s * NS_PER_S;
	job->cpu_work_ns = cpu_work_s * NS_PER_S;
	job->cold_ns = cold_s * NS_PER_S;
	return 0;
}

/* Counts; those of GPUs default to one whole GPU. */
static int read_needs(struct trace_reader *t, const int *at,
		      struct sched_job *job)
{
	uint64_t cpu = 0;
	int r = workload_gpus(t, "gpus", at[GPUS], at[GPU_SHARE],
			      WORKLOAD_GPUS_MAX, job);

	if (r == 0)
		r = rows_count(&t->csv, at[CPUS], "cpu_milli", UINT32_MAX,
			       &cpu);
	if (r == 0)
		r = rows_count(&t->csv, at[MEMORY], "memory_mib",
			       CLUSTER_MEMORY_MAX, &job->memory_mib);
	if (r == 0)
		r = rows_count(&t->csv, at[GPU_MEMORY], "gpu_memory_mib",
			       CLUSTER_MEMORY_MAX, &job->gpu_memory_mib);
	if (r == 0)
		r = rows_number(&t->csv, at[GPU_BUSY], "gpu_busy", 0, 1,
				&job->gpu_busy);
	if (r == 0)
		r = rows_number(&t->csv, at[DATASET], "dataset_mib", 0,
				(double)CLUSTER_MEMORY_MAX, &job->dataset_mib);
	if (r == 0)
		r = rows_number(&t->csv, at[READ], "read_mib_s", 0, 1e9,
				&job->read_mib_s);
	job->cpu_milli = job->alone_cpu_milli = (uint32_t)cpu;
	return r;
}

/* Reduced in each iteration, so that it has to have a time. */
static int read_gradients(struct trace_reader *t, const int *at,
			  struct sched_job *job)
{
	int r = rows_number(&t->csv, at[GRADIENT], columns[GRADIENT], 0,
			    (double)CLUSTER_MEMORY_MAX, &job->gradient_mib);

	if (r == 0 && job->gradient_mib > 0 && job->iteration_ns <= 0)
		return rows_error(&t->csv, &t->csv.f[at[GRADIENT]],
				  "gradient_mib without iteration_s: how often "
				  "are they reduced?");
	return r;
}

/* Of an iteration. Without its own time it is the sum of its stages. */
static int read_stages(struct trace_reader *t, const int *at,
		       struct sched_job *job)
{
	double iteration_s, sum_s = 0;
	int r = rows_number(&t->csv, at[ITERATION], columns[ITERATION], 0,
			    WORKLOAD_SECONDS_MAX, &iteration_s);

	for (int i = 0; r == 0 && i < STAGES; i++) {
		double s;

		r = rows_number(&t->csv, at[STAGE + i], columns[STAGE + i], 0,
				WORKLOAD_SECONDS_MAX, &s);
		if (r == 0)
			job->stage_ns[i] = s * NS_PER_S;
		sum_s += r == 0 ? s : 0;
	}
	job->iteration_ns = (iteration_s > 0 ? iteration_s : sum_s) * NS_PER_S;
	return r;
}

static int jobs_row(struct trace_reader *t, const int *at)
{
	struct sched_job job = workload_job();
	uint64_t count = 1;
	int r = workload_names(t, at[USER], at[CLASS], at[NAME], &job);

	if (r == 0)
		r = read_times(t, at, &job);
	if (r == 0)
		r = read_needs(t, at, &job);
	if (r == 0)
		r = read_stages(t, at, &job);
	if (r == 0)
		r = read_gradients(t, at, &job);
	if (r == 0)
		r = workload_models(t, at[MODELS], &job.models);
	if (r == 0 && at[COUNT] >= 0)
		r = rows_count(&t->csv, at[COUNT], "count", WORKLOAD_JOBS_MAX,
			       &count);
	if (r == 0)
		return workload_add(t->w, &job, count);
	free(job.name);
	return r;
}

const struct reader_ops reader_jobs = {
	.plugin = { .name = "jobs",
		    .summary = "gpemu-sched's own: a job per row, any columns "
			       "beside work_s" },
	.columns = columns,
	.n_columns = N_COLUMNS,
	.n_required = 1,
	.closed = true,
	.row = jobs_row,
};

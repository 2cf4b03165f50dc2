/* SPDX-License-Identifier: MIT */
/*
 * Jobs with the times of their stages. Source: Zhao et al., "Multi-resource
 * interleaving for deep learning training", SIGCOMM 2022; the repository
 * Rivendile/Muri, trace-data. Times are in ms.
 */
#include "common/units.h"
#include "common/util.h"
#include "sched/trace/workload.h"

enum {
	ID,
	GPUS,
	SUBMIT,
	ITERATIONS,
	MODEL,
	ITERATION,
	N_REQUIRED,
	READ_PREP = N_REQUIRED, /* storage and CPU together */
	COMPUTE,
	NETWORK,
	N_COLUMNS
};

static const char *const columns[N_COLUMNS] = {
	"job_id",	   "num_gpu",	      "submit_time",
	"iterations",	   "model_name",      "iteration_time",
	"resource_time_0", "resource_time_1", "resource_time_2",
};

static int read_stages(const struct trace_reader *t, const int *at,
		       double iteration_ms, struct sched_job *job)
{
	double *const to[] = { &job->read_prep_ns, &job->stage_ns[STAGE_GPU],
			       &job->stage_ns[STAGE_NETWORK] };
	double sum_ns = 0;
	int r = 0;

	for (int i = 0; r == 0 && i < (int)ARRAY_SIZE(to); i++) {
		double ms;

		r = rows_number(&t->csv, at[READ_PREP + i],
				columns[READ_PREP + i], 0, 1e9, &ms);
		if (r == 0)
			sum_ns += *to[i] = ms * NS_PER_MS;
	}
	if (sum_ns > 0)
		job->iteration_ns = iteration_ms * NS_PER_MS;
	return r;
}

static int muri_row(struct trace_reader *t, const int *at)
{
	struct sched_job job = workload_job();
	double submit_ms, iteration_ms;
	uint64_t iterations;
	int r = workload_iterations(t, "num_gpu", at[GPUS], at[ITERATIONS],
				    &job, &iterations);

	if (r == 0)
		r = rows_number(&t->csv, at[SUBMIT], "submit_time", 0,
				WORKLOAD_SECONDS_MAX * 1e3, &submit_ms);
	if (r == 0)
		r = rows_number(&t->csv, at[ITERATION], "iteration_time", 1e-6,
				1e9, &iteration_ms);
	if (r == 0)
		r = read_stages(t, at, iteration_ms, &job);
	if (r == 0)
		r = workload_names(t, -1, at[MODEL], at[ID], &job);
	if (r < 0)
		return r;
	job.arrival_ns = (uint64_t)(submit_ms * NS_PER_MS);
	job.work_ns = (double)iterations * iteration_ms * NS_PER_MS;
	return workload_add(t->w, &job, 1);
}

const struct reader_ops reader_muri = {
	.plugin = { .name = "muri",
		    .summary = "traces of Muri: iterations, and the times of "
			       "their "
			       "stages" },
	.columns = columns,
	.n_columns = N_COLUMNS,
	.n_required = N_REQUIRED,
	.row = muri_row,
};

/* SPDX-License-Identifier: MIT */
/*
 * Jobs of Slurm on GPU clusters. Source: Hu et al., "Characterization and
 * Prediction of Deep Learning Workloads in Large-Scale GPU Datacenters", SC
 * 2021; the repository S-Lab-System-Group/HeliosData, cluster_log.csv.
 *
 * `duration` and `queue` are differences of the times, and not read; neither
 * are `state`, since a job that failed had its GPUs all the same, nor
 * `node_num`, since where a job runs is what is asked.
 */
#include "sched/trace/spans.h"

enum {
	ID,
	USER,
	GPUS,
	SUBMIT,
	START,
	END,
	N_REQUIRED,
	VC = N_REQUIRED,
	CPUS,
	N_COLUMNS
};

static const char *const columns[N_COLUMNS] = {
	"job_id",     "user",	  "gpu_num", "submit_time",
	"start_time", "end_time", "vc",	     "cpu_num",
};

static int read_needs(struct trace_reader *t, const int *at,
		      struct sched_job *job)
{
	uint64_t cpus = 0;
	int r = workload_gpus(t, "gpu_num", at[GPUS], -1, WORKLOAD_GPUS_MAX,
			      job);

	if (r == 0)
		r = rows_count(&t->csv, at[CPUS], "cpu_num", CLUSTER_CPU_MAX,
			       &cpus);
	job->cpu_milli = (uint32_t)cpus * 1000;
	return r;
}

static int helios_row(struct trace_reader *t, const int *at)
{
	struct sched_job job = workload_job();
	struct span s = { 0 };
	int r = read_needs(t, at, &job);

	if (r == 0)
		r = span_column(t, at[SUBMIT], "submit_time", &s.submitted_s);
	if (r == 0)
		r = span_column(t, at[START], "start_time", &s.started_s);
	if (r == 0)
		r = span_column(t, at[END], "end_time", &s.ended_s);
	if (r == 0 && !job.n_gpus)
		return spans_leave_out(t, &job, "without GPUs", t->csv.line);
	if (r == 0)
		r = workload_names(t, at[USER], at[VC], at[ID], &job);
	return r == 0 ? spans_add(t, &job, &s, t->csv.line) : r;
}

const struct reader_ops reader_helios = {
	.plugin = { .name = "helios",
		    .summary = "job logs of Helios (SenseTime): a job per row, "
			       "with dates" },
	.columns = columns,
	.n_columns = N_COLUMNS,
	.n_required = N_REQUIRED,
	.row = helios_row,
};

/* SPDX-License-Identifier: MIT */
/*
 * Jobs as a number of iterations of a model. Source: Mohan et al., "Synergy",
 * OSDI 2022; the repository msr-fiddle/synergy, simulator/deploy_trace. The
 * time of an iteration, and what it needs, is that of the shipped speeds
 * "synergy".
 */
#include "common/units.h"
#include "common/util.h"
#include "sched/trace/workload.h"

enum { ID, MODEL, ARRIVAL, ITERATIONS, GPUS, N_COLUMNS };

static const char *const columns[N_COLUMNS] = {
	"job_id", "model", "arrival_s", "iterations", "gpus",
};

static int synergy_row(struct trace_reader *t, const int *at)
{
	struct sched_job job = workload_job();
	uint64_t iterations;
	double arrival_s;
	int r = rows_number(&t->csv, at[ARRIVAL], "arrival_s", 0,
			    WORKLOAD_SECONDS_MAX, &arrival_s);

	if (r == 0)
		r = workload_iterations(t, "gpus", at[GPUS], at[ITERATIONS],
					&job, &iterations);
	if (r == 0)
		r = workload_names(t, -1, at[MODEL], at[ID], &job);
	if (r < 0)
		return r;
	t->w->iterations_of = "synergy";
	job.arrival_ns = (uint64_t)(arrival_s * NS_PER_S);
	job.work_ns = (double)iterations;
	return workload_add(t->w, &job, 1);
}

const struct reader_ops reader_synergy = {
	.plugin = { .name = "synergy",
		    .summary = "traces of Synergy: iterations of a model" },
	.columns = columns,
	.n_columns = N_COLUMNS,
	.n_required = N_COLUMNS,
	.row = synergy_row,
};

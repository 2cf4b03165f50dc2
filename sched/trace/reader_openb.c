/* SPDX-License-Identifier: MIT */
/*
 * Pods of a cluster in production, with shares of GPUs. Source: Weng et al.,
 * "Beware of Fragmentation", USENIX ATC 2023; the repository
 * hkust-adsl/kubernetes-scheduler-simulator, data/csv. Some lists lack the
 * columns behind gpu_milli.
 */
#include "common/units.h"
#include "common/util.h"
#include "sched/trace/workload.h"

enum {
	NAME,
	CPU,
	MEMORY,
	GPUS,
	GPU_SHARE,
	SPEC,
	QOS,
	CREATED,
	DELETED,
	N_COLUMNS,
	N_REQUIRED = SPEC
};

static const char *const columns[N_COLUMNS] = {
	"name",	    "cpu_milli", "memory_mib",	  "num_gpu",	   "gpu_milli",
	"gpu_spec", "qos",	 "creation_time", "deletion_time",
};

static int read_needs(struct trace_reader *t, const int *at, struct job *job)
{
	uint64_t cpu, gpus, share;
	int r = rows_count(&t->csv, at[CPU], "cpu_milli", UINT32_MAX, &cpu);

	if (r == 0)
		r = rows_count(&t->csv, at[MEMORY], "memory_mib",
			       CLUSTER_MEMORY_MAX, &job->memory_mib);
	if (r == 0)
		r = rows_count(&t->csv, at[GPUS], "num_gpu", CLUSTER_GPUS_MAX,
			       &gpus);
	if (r == 0)
		r = rows_count(&t->csv, at[GPU_SHARE], "gpu_milli", GPU_MILLI,
			       &share);
	if (r < 0)
		return r;
	if (gpus && (!share || (gpus > 1 && share < GPU_MILLI)))
		return rows_error(&t->csv, &t->csv.f[at[GPU_SHARE]],
				  "gpu_milli: only a single GPU may be shared");
	job->cpu_milli = (uint32_t)cpu;
	job->n_gpus = (uint32_t)gpus;
	job->gpu_milli = gpus ? (uint32_t)share : 0;
	return 0;
}

/* From creation to deletion; without these it is a second, for `fill`. */
static int read_times(struct trace_reader *t, const int *at, struct job *job)
{
	double from, to;
	int r = rows_number(&t->csv, at[CREATED], "creation_time", 0,
			    WORKLOAD_SECONDS_MAX, &from);

	if (r == 0)
		r = rows_number(&t->csv, at[DELETED], "deletion_time", 0,
				WORKLOAD_SECONDS_MAX, &to);
	if (r < 0)
		return r;
	if (at[DELETED] >= 0 && to < from)
		return rows_error(&t->csv, &t->csv.f[at[DELETED]],
				  "deletion_time: before creation_time");
	job->arrival_ns = (uint64_t)(from * NS_PER_S);
	job->work_ns = MAX(to - from, 1) * NS_PER_S;
	return 0;
}

static int openb_row(struct trace_reader *t, const int *at)
{
	_cleanup_free_ char *qos = NULL;
	struct job job = workload_job();
	int r = read_needs(t, at, &job);

	if (r == 0)
		r = read_times(t, at, &job);
	if (r == 0)
		r = workload_models(t, at[SPEC], &job.models);
	if (r == 0)
		r = rows_text(&t->csv, at[QOS], &qos);
	if (r == 0)
		r = workload_class(t->w, qos ? qos : "-", &job.class);
	if (r == 0)
		r = workload_user(t->w, "-", &job.user);
	if (r == 0)
		r = rows_text(&t->csv, at[NAME], &job.name);
	return r == 0 ? workload_add(t->w, &job, 1) : r;
}

const struct reader_ops reader_openb = {
	.plugin = { .name = "openb",
		    .summary = "pod lists of the openb cluster (FGD)" },
	.columns = columns,
	.n_columns = N_COLUMNS,
	.n_required = N_REQUIRED,
	.row = openb_row,
};

/* SPDX-License-Identifier: MIT */
/*
 * Pods of a cluster in production, with shares of GPUs. Source: Weng et al.,
 * "Beware of Fragmentation", USENIX ATC 2023; the repositories
 * hkust-adsl/kubernetes-scheduler-simulator, data/csv, and alibaba/clusterdata,
 * cluster-trace-gpu-v2023. Some lists lack the columns behind gpu_milli.
 */
#include "common/units.h"
#include "common/util.h"
#include "sched/trace/spans.h"

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
	SCHEDULED,
	N_COLUMNS,
	N_REQUIRED = SPEC
};

static const char *const columns[N_COLUMNS] = {
	"name",		 "cpu_milli",	   "memory_mib", "num_gpu",
	"gpu_milli",	 "gpu_spec",	   "qos",	 "creation_time",
	"deletion_time", "scheduled_time",
};

static int read_needs(struct trace_reader *t, const int *at,
		      struct sched_job *job)
{
	uint64_t cpu;
	int r = rows_count(&t->csv, at[CPU], "cpu_milli", UINT32_MAX, &cpu);

	if (r == 0)
		r = rows_count(&t->csv, at[MEMORY], "memory_mib",
			       CLUSTER_MEMORY_MAX, &job->memory_mib);
	if (r == 0)
		r = workload_gpus(t, "num_gpu", at[GPUS], at[GPU_SHARE],
				  CLUSTER_GPUS_MAX, job);
	job->cpu_milli = (uint32_t)cpu;
	return r;
}

/* From scheduled to deleted; a list without times is one for `fill`, and one
 * without scheduled_time has not said how long its pods waited. */
static int add_pod(struct trace_reader *t, const int *at, struct sched_job *job)
{
	struct span s = { 0 };
	int r = span_column(t, at[CREATED], "creation_time", &s.submitted_s);

	if (r == 0)
		r = span_column(t, at[DELETED], "deletion_time", &s.ended_s);
	if (r == 0)
		r = span_column(t, at[SCHEDULED], "scheduled_time",
				&s.started_s);
	if (r < 0) {
		free(job->name);
		return r;
	}
	if (at[CREATED] < 0) {
		if (t->use == WORKLOAD_RUNS)
			workload_count(t->w, "without times, 1 s each", false,
				       t->csv.line);
		job->work_ns = NS_PER_S;
		return workload_add(t->w, job, 1);
	}
	if (at[SCHEDULED] < 0) {
		s.started_s = s.submitted_s;
		s.assumed = "scheduled when created";
	}
	return spans_add(t, job, &s, t->csv.line);
}

static int openb_row(struct trace_reader *t, const int *at)
{
	_cleanup_free_ char *qos = NULL;
	struct sched_job job = workload_job();
	int r = read_needs(t, at, &job);

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
	return r == 0 ? add_pod(t, at, &job) : r;
}

const struct reader_ops reader_openb = {
	.plugin = { .name = "openb",
		    .summary = "pod lists of the openb cluster (FGD; Alibaba "
			       "2023)" },
	.columns = columns,
	.n_columns = N_COLUMNS,
	.n_required = N_REQUIRED,
	.row = openb_row,
};

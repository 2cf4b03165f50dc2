/* SPDX-License-Identifier: MIT */
/* A trace of jobs, in any format: what is accepted can be scheduled. */
#include "sched/trace/workload.h"
#include "tests/fuzz/digits.h"
#include "tests/fuzz/fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	struct cluster c = { 0 };
	struct workload w;
	struct err err = { 0 };
	int r;

	if (has_large_number(data, n))
		return 0;
	r = workload_parse((const char *)data, n, "x", &c, &w, &err);
	PROMISED(r == 0 || (r < 0 && err.text[0]));
	for (size_t i = 0; r == 0 && i < w.n; i++) {
		const struct job *job = &w.jobs[i];

		PROMISED(job->name && job->user < w.n_users &&
			 job->class < w.n_classes && job->shape < w.n);
		PROMISED(job->work_ns > 0 && job->cpu_work_ns >= 0);
		PROMISED(job->iteration_ns >= 0 && job->read_prep_ns >= 0);
		for (size_t k = 0; k < STAGES; k++)
			PROMISED(job->stage_ns[k] >= 0);
		PROMISED(job->gpu_milli <= GPU_MILLI &&
			 !job->n_gpus == !job->gpu_milli);
		PROMISED(job->n_gpus <= 1 || job->gpu_milli == GPU_MILLI);
		PROMISED(job->gpu_busy >= 0 && job->gpu_busy <= 1 &&
			 job->cold_ns >= 0 && job->dataset_mib >= 0 &&
			 job->read_mib_s >= 0);
		PROMISED(!i || w.jobs[i - 1].arrival_ns <= job->arrival_ns);
	}
	PROMISED(r < 0 || w.n);
	workload_fini(&w);
	cluster_fini(&c);
	return 0;
}

/* SPDX-License-Identifier: MIT */
/*
 * A trace of jobs: what is accepted can be scheduled. The first byte chooses
 * the reader, whose header comes before the rest; or none, so that the formats
 * are told apart.
 */
#include <string.h>

#include "sched/trace/workload.h"
#include "tests/fuzz/digits.h"
#include "tests/fuzz/fuzz.h"

static const char *const heads[] = {
	"",
	"work_s,arrival_s,name,user,class,gpus,gpu_milli,cpu_milli,memory_mib,"
	"gpu_models,cpu_work_s,count,gpu_memory_mib,gpu_busy,cold_s,"
	"dataset_mib,read_mib_s,iteration_s,storage_s,prep_s,gpu_s,network_s\n",
	"job_id,model,arrival_s,iterations,gpus\n",
	"job_id,num_gpu,submit_time,iterations,model_name,iteration_time,"
	"resource_time_0,resource_time_1,resource_time_2\n",
	"name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,qos,"
	"creation_time,deletion_time,scheduled_time\n",
	"# 0\n1 ",
	"GCN_training ",
	"job_id,user,gpu_num,submit_time,start_time,end_time,vc,cpu_num\n",
	"j,w,1,Terminated,1,2,100,1,50,T4\n",
	"A3C\tgo\t-n\t1\t10\t1\t1\n",
	"[{\"jobid\":\"j\",\"submitted_time\":\"2017-10-07 01:00:00\","
	"\"attempts\":[{\"start_time\":\"2017-10-07 01:00:00\",",
	"\xef\xbb\xbf",
};

/* Malloc'ed, without a NUL behind. */
static char *with_head(const uint8_t *data, size_t n, size_t *ret_n)
{
	const char *head = n ? heads[data[0] % (sizeof(heads) / sizeof(*heads))]
			     : "";
	size_t rest = n ? n - 1 : 0;
	char *text = malloc(strlen(head) + rest + !rest);

	*ret_n = strlen(head) + rest;
	if (!text)
		abort();
	memcpy(text, head, strlen(head));
	if (rest)
		memcpy(text + strlen(head), data + 1, rest);
	return text;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	struct cluster c = { 0 };
	struct sched_workload w;
	struct err err = { 0 };
	char *text;
	size_t length;
	int r;

	if (has_large_number(data, n))
		return 0;
	text = with_head(data, n, &length);
	r = workload_parse(text, length, "x", &c, &w, &err);
	PROMISED(r == 0 || (r < 0 && err.text[0]));
	for (size_t i = 0; r == 0 && i < w.n; i++) {
		const struct sched_job *job = &w.jobs[i];

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
	free(text);
	return 0;
}

/* SPDX-License-Identifier: MIT */
/* gpemu-sched stat: what a trace consists of. */
#include <errno.h>
#include <string.h>

#include "common/json.h"
#include "common/log.h"
#include "common/units.h"
#include "common/util.h"
#include "sched/command.h"
#include "sched/sim.h"

struct options {
	struct cli_common common;
	struct input_options input;
};

static const struct conf_field fields[] = {
	INPUT_TRACE_FIELDS(struct options, input),
	CLI_COMMON_FIELDS(struct options, common),
	{ 0 },
};

static const struct cli_program program = {
	.name = "gpemu-sched stat",
	.args = "[TRACE]",
	.n_optional = 1,
	.summary = "Describe a trace: jobs, arrivals, work, GPUs, users and "
		   "classes.",
	.fields = fields,
	.kinds = input_kinds,
};

struct stat_class {
	size_t n;
	double gpu_s; /* work times GPUs */
};

struct stat_sums {
	double span_s, gpu_s, work_s, gpus;
	uint32_t gpus_max;
	size_t shared, cpu_only;
	struct stat_class *classes;
	double *work; /* sorted, s */
};

static int sum_up(const struct sched_workload *w, struct stat_sums *s)
{
	s->classes = calloc(w->n_classes + 1, sizeof(*s->classes));
	s->work = malloc((w->n + 1) * sizeof(*s->work));
	if (!s->classes || !s->work)
		return -ENOMEM;
	for (size_t i = 0; i < w->n; i++) {
		const struct sched_job *job = &w->jobs[i];
		double gpus = (double)job_gpu_milli(job) / GPU_MILLI;
		double work_s = job->work_ns / NS_PER_S;

		s->work[i] = work_s;
		s->work_s += work_s;
		s->gpus += gpus;
		s->gpu_s += gpus * work_s;
		s->gpus_max = MAX(s->gpus_max, job->n_gpus);
		s->shared += job->n_gpus && job->gpu_milli < GPU_MILLI;
		s->cpu_only += !job->n_gpus;
		s->classes[job->class].n++;
		s->classes[job->class].gpu_s += gpus * work_s;
	}
	s->span_s =
		(double)(w->jobs[w->n - 1].arrival_ns - w->jobs[0].arrival_ns) /
		NS_PER_S;
	qsort(s->work, w->n, sizeof(*s->work), util_compare_double);
	return 0;
}

static void print(const struct sched_workload *w, const struct stat_sums *s)
{
	printf("format     %s\n", w->format);
	printf("jobs       %zu, %zu on a shared GPU, %zu without GPU\n", w->n,
	       s->shared, s->cpu_only);
	printf("arrivals   over %.1f s\n", s->span_s);
	printf("GPUs       %.1f in all, at most %u of a job\n", s->gpus,
	       s->gpus_max);
	printf("work       %.1f GPU s; of a job mean %.1f s, p50 %.1f, p95 "
	       "%.1f, max %.1f\n",
	       s->gpu_s, s->work_s / (double)w->n,
	       result_quantile(s->work, w->n, .5),
	       result_quantile(s->work, w->n, .95), s->work[w->n - 1]);
	printf("users      %zu\n", w->n_users);
	printf("\n%-20s %8s %8s\n", "class", "jobs", "work/%");
	for (size_t i = 0; i < w->n_classes; i++)
		printf("%-20s %8zu %8.1f\n", w->classes[i], s->classes[i].n,
		       s->gpu_s > 0 ? 100 * s->classes[i].gpu_s / s->gpu_s : 0);
}

static json_t *record(const struct sched_workload *w, const struct stat_sums *s)
{
	json_t *classes = json_array();

	for (size_t i = 0; i < w->n_classes; i++)
		json_array_append_new(
			classes, json_pack("{s:o,s:I,s:f}", "name",
					   json_bytes(w->classes[i]), "jobs",
					   (json_int_t)s->classes[i].n, "gpu_s",
					   s->classes[i].gpu_s));
	return json_pack(
		"{s:s,s:I,s:I,s:I,s:f,s:f,s:i,s:f,s:f,s:f,s:f,s:I,s:o}",
		"format", w->format, "jobs", (json_int_t)w->n, "shared",
		(json_int_t)s->shared, "cpu_only", (json_int_t)s->cpu_only,
		"span_s", s->span_s, "gpus", s->gpus, "gpus_max",
		(int)s->gpus_max, "gpu_s", s->gpu_s, "work_mean_s",
		s->work_s / (double)w->n, "work_p50_s",
		result_quantile(s->work, w->n, .5), "work_p95_s",
		result_quantile(s->work, w->n, .95), "users",
		(json_int_t)w->n_users, "classes", classes);
}

static int describe(const struct options *o, struct err *err)
{
	struct cluster models = { 0 };
	struct sched_workload w = { 0 };
	struct stat_sums s = { 0 };
	int r = input_workload(&o->input, &models, WORKLOAD_RUNS, &w, err);

	if (r == 0)
		r = sum_up(&w, &s);
	if (r == 0 && (!o->common.json || strcmp(o->common.json, "-")))
		print(&w, &s);
	if (r == 0 && o->common.json)
		r = input_record(input_describe(record(&w, &s), &w, NULL),
				 fields, o, &o->common, err);
	free(s.classes);
	free(s.work);
	workload_fini(&w);
	cluster_fini(&models);
	return r;
}

int command_stat(int argc, char **argv)
{
	struct options o = { 0 };
	struct err err = { 0 };
	char *arg = NULL;
	int r;

	cli_parse(&program, argc, argv, &o, &arg);
	if (!arg == !o.input.trace) {
		log_error("give one trace: gpemu-sched stat NAME|FILE (--list "
			  "trace lists those that ship)");
		r = EXIT_STATUS_USAGE;
	} else {
		if (arg)
			o.input.trace = strdup(arg);
		r = o.input.trace ? describe(&o, &err) : -ENOMEM;
		r = r < 0 ? cli_fail(r, &err) : EXIT_STATUS_DONE;
	}
	conf_free(fields, &o);
	return r;
}

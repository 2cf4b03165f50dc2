/* SPDX-License-Identifier: MIT */
/*
 * Jobs as a number of steps of a model, between tabs and without a header.
 * Source: Narayanan et al., "Heterogeneity-Aware Cluster Scheduling Policies
 * for Deep Learning Workloads" (Gavel), OSDI 2020; the repository
 * stanford-futuredata/gavel, scheduler/traces and parse_trace in utils.py; and
 * those of Shockwave (NSDI 2023), uw-mad-dash/shockwave, scheduler/traces. The
 * number of fields tells its four layouts apart:
 *
 *	 7  type command steps_arg data_dir STEPS ARRIVAL SCALE
 *	10  type command folder steps_arg data_dir STEPS SCALE weight SLO
 *	    ARRIVAL
 *	11  type command folder steps_arg data_dir STEPS SCALE MODE weight SLO
 *	    ARRIVAL
 *	12  type command folder steps_arg data_dir STEPS SCALE MODE weight SLO
 *	    duration ARRIVAL
 *
 * The time of a step is that of the shipped speeds "gavel", by type and, beyond
 * one GPU, their number: "ResNet-50 (batch size 32) x 4".
 */
#include <errno.h>
#include <stdio.h>

#include "common/units.h"
#include "common/util.h"
#include "sched/trace/spans.h"

static const struct layout {
	int n, steps, scale, mode, arrival;
} layouts[] = {
	{ 7, 4, 6, -1, 5 },
	{ 10, 5, 6, -1, 9 },
	{ 11, 5, 6, 7, 10 },
	{ 12, 5, 6, 7, 11 },
};

static const struct layout *layout_of(const struct rows *c)
{
	for (size_t i = 0; i < ARRAY_SIZE(layouts); i++)
		if (layouts[i].n == c->n)
			return &layouts[i];
	return NULL;
}

static int read_class(struct trace_reader *t, struct sched_job *job)
{
	_cleanup_free_ char *type = NULL, *class = NULL;
	int r = rows_text(&t->csv, 0, &type);

	if (r < 0)
		return r;
	class = util_text(job->n_gpus > 1 ? "%s x %u" : "%s", type ? type : "-",
			  job->n_gpus);
	if (!class)
		return -ENOMEM;
	r = workload_user(t->w, "-", &job->user);
	return r < 0 ? r : workload_class(t->w, class, &job->class);
}

/* Its batch size changes while it runs, which is not modelled. */
static bool is_dynamic(const struct rows *c, const struct layout *l)
{
	return l->mode >= 0 && !rows_is(&c->f[l->mode], "static");
}

static int read_job(struct trace_reader *t)
{
	const struct layout *l = layout_of(&t->csv);
	struct sched_job job = workload_job();
	uint64_t steps;
	double arrival_s;
	int r;

	if (!l)
		return rows_error(&t->csv, NULL,
				  "%d fields between tabs, where a trace of "
				  "Gavel has 7, 10, 11 or 12",
				  t->csv.n);
	r = rows_count(&t->csv, l->steps, "total_steps", 1ull << 40, &steps);
	if (r == 0)
		r = workload_gpus(t, "scale_factor", l->scale, -1,
				  WORKLOAD_GPUS_MAX, &job);
	if (r == 0)
		r = rows_number(&t->csv, l->arrival, "arrival_time", 0,
				WORKLOAD_SECONDS_MAX, &arrival_s);
	if (r < 0)
		return r;
	if (!steps || !job.n_gpus)
		return spans_leave_out(
			t, &job, job.n_gpus ? "without steps" : "without GPUs",
			t->csv.line);
	if (is_dynamic(&t->csv, l))
		workload_count(t->w, "with their first batch size all along",
			       false, t->csv.line);
	job.arrival_ns = (uint64_t)(arrival_s * NS_PER_S);
	job.work_ns = (double)steps;
	r = read_class(t, &job);
	return r < 0 ? r : workload_add(t->w, &job, 1);
}

static int gavel_parse(struct trace_reader *t)
{
	int r = 0;

	t->w->iterations_of = "gavel";
	rows_rewind(&t->csv);
	t->csv.separator = '\t';
	while (r == 0 && rows_next(&t->csv))
		r = read_job(t);
	return r;
}

static bool gavel_knows(const char *bytes, size_t n)
{
	struct rows c = { .at = bytes, .end = bytes + n, .separator = '\t' };
	const struct layout *l = rows_next(&c) ? layout_of(&c) : NULL;
	uint64_t v;

	return l && rows_u64(&c.f[l->steps], &v) &&
	       rows_u64(&c.f[l->scale], &v);
}

const struct reader_ops reader_gavel = {
	.plugin = { .name = "gavel",
		    .summary = "traces of Gavel and Shockwave: steps of a "
			       "model, between tabs" },
	.knows = gavel_knows,
	.parse = gavel_parse,
};

/* SPDX-License-Identifier: MIT */
/*
 * Jobs of Microsoft's Philly. Source: Jeon et al., "Analysis of Large-Scale
 * Multi-Tenant GPU Clusters for DNN Training Workloads", USENIX ATC 2019; the
 * repository msr-fiddle/philly-traces, cluster_job_log:
 *
 *	[{"status": "Pass", "vc": "ee9e8c", "jobid": "application_1",
 *	  "user": "ce2f4c", "submitted_time": "2017-10-07 01:11:39",
 *	  "attempts": [{"start_time": "2017-10-07 01:12:09",
 *			"end_time": "2017-10-07 01:13:23",
 *			"detail": [{"ip": "m47", "gpus": ["gpu0", "gpu1"]}]}]}]
 *
 * The GPUs of a job are those of its first attempt, as in the notebook of the
 * repository; its work is that of all attempts, without the time between them,
 * in which the job waited again.
 */
#include <errno.h>
#include <math.h>
#include <string.h>

#include "common/json.h"
#include "sched/trace/spans.h"

/* -EINVAL with the number and the name of the job: JSON has no lines here. */
static int bad_job(const struct trace_reader *t, size_t i, const json_t *j,
		   const char *what)
{
	const char *id = json_string_value(json_object_get(j, "jobid"));

	return err_set(t->csv.err, -EINVAL, "%s: job %zu (%.40s): %s",
		       t->csv.name, i + 1, id ? id : "without jobid", what);
}

/* A date of an object; NAN without it. -EINVAL. */
static int read_date(const json_t *j, const char *key, double *ret)
{
	const json_t *v = json_object_get(j, key);

	*ret = NAN;
	if (!v || json_is_null(v))
		return 0;
	if (!json_is_string(v))
		return -EINVAL;
	return span_time(json_string_value(v), json_string_length(v), ret);
}

static size_t gpus_of(const json_t *attempt)
{
	const json_t *detail = json_object_get(attempt, "detail"), *node;
	size_t i, n = 0;

	json_array_foreach (detail, i, node)
		n += json_array_size(json_object_get(node, "gpus"));
	return n;
}

/* Another attempt behind those in `s`. 1: it has no times that say how long it
 * was, and does not count. -EINVAL. */
static int add_attempt(const json_t *attempt, bool last, struct span *s)
{
	double from, to;
	int r = read_date(attempt, "start_time", &from);

	if (r == 0)
		r = read_date(attempt, "end_time", &to);
	if (r < 0)
		return r;
	/* only the last one may still run, or say of the job that it is wrong
	 */
	if (isnan(from) || (!last && !(to >= from)))
		return 1;
	if (!isnan(s->started_s))
		s->before_s += s->ended_s - s->started_s;
	s->started_s = from;
	s->ended_s = to;
	return 0;
}

/* What of its attempts there is to say. */
struct attempts {
	size_t gpus; /* of the first */
	bool differ, untimed;
};

/* -EINVAL. */
static int read_attempts(const json_t *j, struct span *s, struct attempts *ret)
{
	const json_t *attempts = json_object_get(j, "attempts"), *attempt;
	size_t i, n = json_array_size(attempts);

	if (!json_is_array(attempts))
		return -EINVAL;
	*ret = (struct attempts){ 0 };
	if (n)
		ret->gpus = gpus_of(json_array_get(attempts, 0));
	json_array_foreach (attempts, i, attempt) {
		int r = add_attempt(attempt, i + 1 == n, s);

		if (r < 0)
			return r;
		ret->untimed |= r > 0;
		ret->differ |= gpus_of(attempt) != ret->gpus;
	}
	return 0;
}

static int read_names(struct trace_reader *t, const json_t *j,
		      struct sched_job *job)
{
	const char *user = json_string_value(json_object_get(j, "user"));
	const char *vc = json_string_value(json_object_get(j, "vc"));
	const char *id = json_string_value(json_object_get(j, "jobid"));
	int r = workload_user(t->w, user ? user : "-", &job->user);

	if (r == 0)
		r = workload_class(t->w, vc ? vc : "-", &job->class);
	if (r == 0 && id) {
		job->name = strdup(id);
		r = job->name ? 0 : -ENOMEM;
	}
	return r;
}

static void count_attempts(struct trace_reader *t, const struct attempts *a,
			   const struct span *s)
{
	if (t->use == WORKLOAD_REQUESTS || isnan(s->started_s))
		return;
	if (a->differ)
		workload_count(t->w, "with the GPUs of their first attempt",
			       false, 0);
	if (a->untimed)
		workload_count(t->w, "without an attempt that has no times",
			       false, 0);
}

static int read_job(struct trace_reader *t, size_t i, const json_t *j)
{
	struct span s = { .started_s = NAN, .ended_s = NAN };
	struct sched_job job = workload_job();
	struct attempts a;
	int r;

	if (!json_is_object(j))
		return bad_job(t, i, j, "is not an object");
	if (read_date(j, "submitted_time", &s.submitted_s) < 0)
		return bad_job(t, i, j, "submitted_time: not a date");
	if (read_attempts(j, &s, &a) < 0)
		return bad_job(t, i, j,
			       "attempts: not an array with start_time and "
			       "end_time, which are dates or null");
	if (a.gpus > WORKLOAD_GPUS_MAX)
		return bad_job(t, i, j, "too many GPUs");
	job.n_gpus = (uint32_t)a.gpus;
	if (!a.gpus)
		return spans_leave_out(t, &job,
				       isnan(s.started_s) ? "never scheduled"
							  : "without GPUs",
				       0);
	count_attempts(t, &a, &s);
	r = read_names(t, j, &job);
	return r == 0 ? spans_add(t, &job, &s, 0) : r;
}

static int philly_parse(struct trace_reader *t)
{
	json_error_t e;
	json_auto_t *log = NULL;
	const json_t *j;
	size_t i;
	int r = 0;

	rows_rewind(&t->csv);
	log = json_loadb(t->csv.at, (size_t)(t->csv.end - t->csv.at), 0, &e);
	if (!log)
		return err_set(t->csv.err, -EINVAL, "%s:%d:%d: %s", t->csv.name,
			       e.line + (int)t->csv.line, e.column, e.text);
	json_array_foreach (log, i, j) {
		r = read_job(t, i, j);
		if (r < 0)
			break;
	}
	return r;
}

static bool philly_knows(const char *bytes, size_t n)
{
	static const char blanks[] = " \t\r\n";
	size_t i = 0;

	while (i < n && bytes[i] && strchr(blanks, bytes[i]))
		i++;
	return i < n && bytes[i] == '[';
}

const struct reader_ops reader_philly = {
	.plugin = { .name = "philly",
		    .summary = "cluster_job_log of Philly (Microsoft): JSON "
			       "with the attempts of jobs" },
	.knows = philly_knows,
	.parse = philly_parse,
};

/* SPDX-License-Identifier: MIT */
#include "sched/trace/spans.h"

#include <errno.h>
#include <math.h>
#include <string.h>
#include <time.h>

#include "common/units.h"
#include "common/util.h"

static const char no_work[] = "with 0 s of work";

/* Started, and did not end: as long as it is not known when the log does. */
struct open_span {
	struct sched_job job;
	struct span span;
	uint64_t line;
};

struct span_set {
	double last_s; /* time of the log so far */
	struct open_span *open;
	size_t n_open, allocated;
};

/* --- times ---------------------------------------------------------------- */

static bool is_missing(const struct rows_field *f)
{
	static const char *const words[] = { "None", "null", "nan", "NaT" };

	for (size_t i = 0; i < ARRAY_SIZE(words); i++)
		if (rows_is(f, words[i]))
			return true;
	return !f->n;
}

/* "2017-10-07 01:12:09", or with a T between, and with parts of a second, which
 * do not count. */
static bool read_date(const struct rows_field *f, double *ret)
{
	struct tm tm = { 0 };
	char text[40];
	const char *rest;

	if (f->n >= sizeof(text) || memchr(f->text, 0, f->n))
		return false;
	memcpy(text, f->text, f->n);
	text[f->n] = 0;
	rest = strptime(text, "%Y-%m-%d", &tm);
	if (!rest || (*rest != ' ' && *rest != 'T'))
		return false;
	rest = strptime(rest + 1, "%H:%M:%S", &tm);
	if (!rest || (*rest && *rest != '.') ||
	    rest[strspn(rest, ".0123456789")])
		return false;
	*ret = (double)timegm(&tm);
	return true;
}

int span_time(const char *text, size_t n, double *ret)
{
	struct rows_field f = { text, n };

	*ret = NAN;
	if (is_missing(&f))
		return 0;
	if (!rows_double(&f, ret) && !read_date(&f, ret))
		return -EINVAL;
	return fabs(*ret) <= WORKLOAD_SECONDS_MAX ? 0 : -EINVAL;
}

int span_column(const struct trace_reader *t, int at, const char *what,
		double *ret)
{
	const struct rows *c = &t->csv;

	*ret = NAN;
	if (at < 0)
		return 0;
	if (at >= c->n)
		return rows_error(c, NULL,
				  "%s: missing, the row has %d fields and the "
				  "header has it as field %d",
				  what, c->n, at + 1);
	if (span_time(c->f[at].text, c->f[at].n, ret) < 0)
		return rows_error(
			c, &c->f[at],
			"%s: '%.*s' is neither a number of seconds up "
			"to %g nor a date, as in 2020-04-01 00:00:01",
			what, (int)MIN(c->f[at].n, 40), c->f[at].text,
			WORKLOAD_SECONDS_MAX);
	return 0;
}

/* --- jobs ----------------------------------------------------------------- */

int spans_leave_out(struct trace_reader *t, struct sched_job *job,
		    const char *why, uint64_t line)
{
	workload_count(t->w, why, true, line);
	free(job->name);
	job->name = NULL;
	return 0;
}

/* Why it is no job, as far as is known before the log ends; or NULL. */
static const char *why_not(const struct span *s)
{
	if (s->submitted_s < 0 || s->started_s < 0 || s->ended_s < 0)
		return "with a negative time";
	if (isnan(s->started_s))
		return "never scheduled";
	if (s->ended_s < s->started_s)
		return "ended before they began";
	return NULL;
}

static int add_run(struct trace_reader *t, struct sched_job *job,
		   const struct span *s, double ended_s, uint64_t line)
{
	double work_s = s->before_s + ended_s - s->started_s;

	if (work_s < WORKLOAD_SECONDS_MIN)
		return spans_leave_out(t, job, no_work, line);
	/* from seconds of any clock; made relative at the end */
	job->arrival_ns = (uint64_t)(s->submitted_s * NS_PER_S);
	job->work_ns = work_s * NS_PER_S;
	return workload_add(t->w, job, 1);
}

static int keep_open(struct span_set *set, struct sched_job *job,
		     const struct span *s, uint64_t line)
{
	int r = util_reserve(&set->open, &set->allocated, set->n_open + 1,
			     sizeof(*set->open));

	if (r < 0) {
		free(job->name);
		return r;
	}
	set->open[set->n_open++] = (struct open_span){ *job, *s, line };
	return 0;
}

int spans_add(struct trace_reader *t, struct sched_job *job,
	      const struct span *span, uint64_t line)
{
	struct span s = *span;
	const char *why = why_not(&s);

	if (!t->spans)
		t->spans = calloc(1, sizeof(*t->spans));
	if (!t->spans) {
		free(job->name);
		return -ENOMEM;
	}
	if (t->use == WORKLOAD_REQUESTS) {
		job->work_ns = NS_PER_S;
		return workload_add(t->w, job, 1);
	}
	if (why)
		return spans_leave_out(t, job, why, line);
	if (s.assumed)
		workload_count(t->w, s.assumed, false, line);
	if (isnan(s.submitted_s)) {
		workload_count(t->w, "submitted when they started", false,
			       line);
		s.submitted_s = s.started_s;
	}
	t->spans->last_s = fmax(t->spans->last_s, s.submitted_s);
	t->spans->last_s = fmax(t->spans->last_s, s.started_s);
	t->spans->last_s = fmax(t->spans->last_s, s.ended_s);
	return isnan(s.ended_s) ? keep_open(t->spans, job, &s, line)
				: add_run(t, job, &s, s.ended_s, line);
}

/* They were running: whether for long is known now. */
static int close_open(struct trace_reader *t)
{
	struct span_set *set = t->spans;
	int r = 0;

	while (r == 0 && set->n_open) {
		struct open_span *o = &set->open[--set->n_open];
		size_t n = t->w->n;

		r = add_run(t, &o->job, &o->span, set->last_s, o->line);
		if (t->w->n > n)
			workload_count(t->w, "still running at the end", false,
				       o->line);
	}
	return r;
}

int spans_end(struct trace_reader *t)
{
	uint64_t first_ns = UINT64_MAX;
	int r = t->spans ? close_open(t) : 0;

	if (!t->spans || r < 0)
		return r;
	for (size_t i = 0; i < t->w->n; i++)
		first_ns = MIN(first_ns, t->w->jobs[i].arrival_ns);
	for (size_t i = 0; i < t->w->n; i++)
		t->w->jobs[i].arrival_ns -= first_ns;
	return 0;
}

void spans_free(struct span_set *set)
{
	for (size_t i = 0; set && i < set->n_open; i++)
		free(set->open[i].job.name);
	if (set)
		free(set->open);
	free(set);
}

/* SPDX-License-Identifier: MIT */
/* Speeds of models over CPUs: a CSV file with a row for each point; or, without
 * such points, the time of an iteration alone. */
#include <errno.h>
#include <string.h>

#include "common/units.h"
#include "common/util.h"
#include "common/word.h"
#include "sched/trace/workload.h"

enum {
	MODEL,
	ITERATION,
	N_REQUIRED,
	CPUS = N_REQUIRED,
	SPEED,
	MEMORY,
	REFERENCE,
	N_POINT, /* all columns of a point, or none */
	START = N_POINT,
	COLD,
	BUSY_HALF,
	N_COLUMNS
};

static const char *const columns[N_COLUMNS] = {
	"model",   "iteration_s", "cpus",
	"speed",   "memory_mib",  "reference_memory_mib",
	"start_s", "cold_s",	  "busy_half_mib",
};

static int add_point(const struct rows *c, const int *at, struct speed *s,
		     double cpus, double speed)
{
	if (s->n == SPEED_POINTS_MAX)
		return rows_error(c, NULL, "more than %d points of '%s'",
				  SPEED_POINTS_MAX, s->name);
	if (s->n && (cpus <= s->cpus[s->n - 1] || speed < s->speed[s->n - 1]))
		return rows_error(
			c, &c->f[at[CPUS]],
			"points of '%s' must have ascending cpus, and "
			"speeds that do not fall",
			s->name);
	s->cpus[s->n] = cpus;
	s->speed[s->n++] = speed;
	return 0;
}

static int read_point(struct rows *c, const int *at, struct speed *s)
{
	double cpus, speed;
	int r = rows_number(c, at[CPUS], "cpus", 1e-3, CLUSTER_CPU_MAX, &cpus);

	if (r == 0)
		r = rows_number(c, at[SPEED], "speed", 1e-6, 1e6, &speed);
	if (r == 0)
		r = rows_number(c, at[MEMORY], "memory_mib", 0,
				(double)CLUSTER_MEMORY_MAX, &s->memory_mib);
	if (r == 0)
		r = rows_number(c, at[REFERENCE], "reference_memory_mib", 1,
				(double)CLUSTER_MEMORY_MAX,
				&s->reference_memory_mib);
	return r < 0 ? r : add_point(c, at, s, cpus, speed);
}

static int read_row(struct rows *c, const int *at, struct sched_workload *w)
{
	double iteration_s, start_s, cold_s;
	_cleanup_free_ char *name = NULL;
	struct speed *s = NULL;
	uint64_t busy_half;
	int r = rows_number(c, at[ITERATION], "iteration_s", 1e-9, 1e6,
			    &iteration_s);

	if (r == 0)
		r = rows_number(c, at[START], "start_s", 0, 1e6, &start_s);
	if (r == 0)
		r = rows_number(c, at[COLD], "cold_s", 0, 1e6, &cold_s);
	if (r == 0)
		r = rows_count(c, at[BUSY_HALF], "busy_half_mib",
			       CLUSTER_MEMORY_MAX, &busy_half);
	if (r == 0)
		r = rows_text(c, at[MODEL], &name);
	if (r == 0 && !name)
		r = rows_error(c, &c->f[at[MODEL]], "model: must not be empty");
	if (r == 0)
		r = workload_speed(w, name, &s);
	if (r < 0)
		return r;
	if (at[CPUS] < 0 && s->work_per_iteration_ns > 0)
		return rows_error(c, &c->f[at[MODEL]],
				  "'%s' for the second time", s->name);
	s->work_per_iteration_ns = iteration_s * NS_PER_S;
	s->start_ns = start_s * NS_PER_S;
	s->cold_ns = cold_s * NS_PER_S;
	s->busy_half_mib = busy_half;
	return at[CPUS] < 0 ? 0 : read_point(c, at, s);
}

int speeds_parse_csv(const char *bytes, size_t n, const char *name,
		     struct sched_workload *w, struct err *err)
{
	struct rows c = {
		.name = name, .at = bytes, .end = bytes + n, .err = err
	};
	int at[N_COLUMNS], r = 0;

	if (!rows_next(&c))
		return err_set(err, -EINVAL,
			       "%s: empty: speeds have a header and a row for "
			       "each point",
			       name);
	r = rows_header(&c, columns, N_COLUMNS, N_REQUIRED, at);
	for (int i = N_REQUIRED; r == 0 && i < N_POINT; i++)
		if ((at[i] < 0) != (at[CPUS] < 0))
			r = rows_error(&c, NULL,
				       "of the columns 'cpus', 'speed', "
				       "'memory_mib', 'reference_memory_mib' "
				       "either all or none");
	while (r == 0 && rows_next(&c))
		r = read_row(&c, at, w);
	return r < 0 ? err_set(err, r, "%s: %s", name, strerror(-r)) : 0;
}

static int no_speed(const struct sched_workload *w, const struct sched_job *job,
		    struct err *err)
{
	const char *model = w->classes[job->class];
	struct word_list words = WORD_LIST(model, strlen(model));

	for (size_t i = 0; i < w->n_speeds; i++)
		word_list_add(&words, w->speeds[i].name);
	return err_set(err, -EINVAL,
		       "job %s: there is no speed of its model '%s'%s (known: "
		       "%s): correct the model, or give --speeds with it",
		       job->name, model, words.hint, words.known);
}

/* From a number of iterations to times, and to how busy it keeps a GPU. */
static void time_job(struct sched_job *job, const struct speed *s)
{
	double memory = (double)job->gpu_memory_mib;

	job->work_ns = s->start_ns + job->work_ns * s->work_per_iteration_ns;
	job->cold_ns = s->cold_ns;
	if (s->busy_half_mib && memory > 0)
		job->gpu_busy = memory / (memory + (double)s->busy_half_mib);
}

int workload_bind(struct sched_workload *w, struct err *err)
{
	for (size_t i = 0; i < w->n; i++) {
		struct sched_job *job = &w->jobs[i];
		const char *class = w->classes[job->class];
		const struct speed *s = workload_find_speed(w, class);

		if (!s && w->iterations_of)
			return no_speed(w, job, err);
		if (w->iterations_of)
			time_job(job, s);
		job->speed = s && s->n ? s : NULL;
	}
	w->iterations_of = NULL;
	return workload_settle(w);
}

/* SPDX-License-Identifier: MIT */
#include "runner/cell/run_load.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "common/util.h"

/* Least and most additional load, as shares of the CPUs. arbitrary: the least
 * is above what an idle machine does, the most leaves the cell its half. */
#define LEAST_SHARE .1
#define MOST_SHARE .5
/* Times the load of the first run. Others may have ended meanwhile; then the
 * second run still has half as much again. */
#define MORE 1.5
/* arbitrary: of one pair of runs, the spread may hide as much as it shows */
#define DOUBT 2
/* arbitrary: longer than what is read ahead, shorter than an epoch */
#define BURST_S 1.

static double number(const json_t *j, const char *key)
{
	return json_number_value(json_object_get(j, key));
}

static const json_t *watched(const json_t *record)
{
	return json_object_get(json_object_get(record, "host"), "watch");
}

static const json_t *test_of(const json_t *record)
{
	return json_object_get(json_object_get(record, "cell"), "load_test");
}

double load_others(const json_t *record)
{
	return number(watched(record), "other_cpu_share");
}

const char *load_cleared_by(const json_t *record)
{
	const json_t *t = test_of(record);

	return json_is_true(json_object_get(t, "stands"))
		       ? json_string_value(json_object_get(t, "cell"))
		       : NULL;
}

/* --- what can be cleared ---------------------------------------------- */

/* Is the CPU time that other programs used all that disturbed it? */
static bool only_cpu(const json_t *record)
{
	const json_t *signs =
		json_object_get(json_object_get(record, "cell"), "disturbance");
	const char *name;
	json_t *one;
	size_t i;

	json_array_foreach ((json_t *)signs, i, one) {
		name = json_string_value(json_object_get(one, "sign"));
		if (!name || strcmp(name, "cpu"))
			return false;
	}
	return json_array_size(signs) > 0;
}

bool load_can_clear(const json_t *record, double limit)
{
	double s = number(watched(record), "seconds");

	if (s <= 0 || test_of(record) ||
	    number(watched(record), "stolen_s") > limit * s ||
	    LOAD_LEAST_RATIO * load_others(record) > 1)
		return false;
	return only_cpu(record);
}

/* --- the load --------------------------------------------------------- */

struct load_plan load_plan(const json_t *record)
{
	const json_t *w = watched(record);
	double cpus = MAX(number(w, "cpus"), 1);
	double most = number(w, "other_cpu_share_max") * cpus;
	struct load_plan p;
	double duty;

	p.share = MAX(MORE * load_others(record), LEAST_SHARE);
	p.share = MIN(p.share, MOST_SHARE);
	p.n = (unsigned)MIN(MAX(MAX(round(most), ceil(p.share * cpus)), 1),
			    cpus);
	duty = p.share * cpus / p.n;
	/* at least two bursts in a run */
	p.period_s = MIN(BURST_S / duty, number(w, "seconds") / 2);
	p.burst_s = duty * p.period_s;
	return p;
}

/* --- the comparison --------------------------------------------------- */

static json_t *number_or_null(double v)
{
	return isfinite(v) ? json_real(v) : json_null();
}

static bool in_percent(const struct metric *m)
{
	return m->unit && m->unit[0] == '%';
}

/* Of a metric in both records, NAN: in neither. */
static double change_of(const struct metric *m, const json_t *first,
			const json_t *second)
{
	double a = NAN, b = NAN;

	if (metric_value(m, first, &a) < 0)
		a = NAN;
	if (metric_value(m, second, &b) < 0)
		b = NAN;
	if (isnan(a) || isnan(b))
		return isnan(a) && isnan(b) ? NAN : INFINITY;
	if (in_percent(m))
		return fabs(b - a) / 100;
	return a == b ? 0 : a == 0 ? INFINITY : fabs(b / a - 1);
}

struct load_test load_compare(const json_t *first, const json_t *second,
			      const struct metric *const *metrics, size_t n)
{
	struct load_test t = { .others = load_others(first),
			       .beside = load_others(second),
			       .change = -1,
			       .of = "" };

	for (size_t i = 0; i < n; i++) {
		double change = change_of(metrics[i], first, second);

		if (!(change > t.change))
			continue;
		t.change = change;
		t.of = metrics[i]->name;
		t.points = in_percent(metrics[i]);
	}
	if (t.change < 0)
		t.change = INFINITY;
	return t;
}

json_t *load_changes(const json_t *first, const json_t *second,
		     const struct metric *const *metrics, size_t n)
{
	json_t *changes = json_object();

	for (size_t i = 0; changes && i < n; i++) {
		double change = change_of(metrics[i], first, second);

		if (!isnan(change))
			json_object_set_new(changes, metrics[i]->name,
					    number_or_null(change));
	}
	return changes;
}

/* What becomes of a change beside `others`; INFINITY: the test does not say. */
static double factor(const struct load_test *t, double others)
{
	if (t->beside < LOAD_LEAST_RATIO * t->others || others > t->beside ||
	    t->beside <= 0)
		return INFINITY;
	return MAX(others / (t->beside - t->others), 1);
}

double load_delay(const struct load_test *t, double others)
{
	double by = factor(t, others);

	return isinf(by) ? by : by * t->change;
}

/* --- which cell ------------------------------------------------------- */

struct load_risk load_risk(const json_t *record)
{
	const json_t *w = watched(record);
	double s = number(w, "seconds"), taken = number(w, "taken_s");
	double waited = number(w, "cpu_wait_s");

	return (struct load_risk){
		.by = { s > 0 ? taken / s : 0, waited > 0 ? taken / waited : 0,
			s > 0 ? number(w, "own_cpu_s") / s : 0 },
		.others = load_others(record),
	};
}

/* Is `a` at least as much at risk as `b`, by each measure? */
static bool at_least(const struct load_risk *a, const struct load_risk *b)
{
	for (size_t m = 0; m < LOAD_MEASURES; m++)
		if (a->by[m] < b->by[m])
			return false;
	return true;
}

const struct load_cell *load_clears(const struct load_cell *cells, size_t n,
				    const struct load_risk *risk,
				    double tolerance)
{
	const struct load_cell *best = NULL;
	double least = tolerance, delay;

	for (size_t i = 0; i < n; i++) {
		if (!cells[i].tested || !at_least(&cells[i].risk, risk))
			continue;
		delay = load_delay(&cells[i].test, risk->others);
		if (delay > least || (best && delay == least))
			continue;
		best = &cells[i];
		least = delay;
	}
	return best;
}

size_t load_next(const struct load_cell *cells, size_t n, double tolerance)
{
	size_t next = n, most = 0;

	for (size_t i = 0; i < n; i++) {
		size_t below = 0;

		if (!cells[i].testable ||
		    load_clears(cells, n, &cells[i].risk, tolerance))
			continue;
		for (size_t j = 0; j < n; j++)
			below += cells[j].testable &&
				 at_least(&cells[i].risk, &cells[j].risk);
		if (below > most) {
			most = below;
			next = i;
		}
	}
	return next;
}

/* --- the record ------------------------------------------------------- */

const char *load_unit(const struct load_test *t)
{
	return t->points ? "points" : "%";
}

static json_t *delays(const struct load_test *t, const json_t *changes,
		      double others)
{
	double by = factor(t, others);
	json_t *all = json_object(), *one;
	const char *name;

	json_object_foreach ((json_t *)changes, name, one)
		json_object_set_new(
			all, name,
			json_is_number(one)
				? number_or_null(by * json_number_value(one))
				: json_null());
	return all;
}

json_t *load_json(const struct load_test *t, const json_t *changes,
		  const char *id, double others, double tolerance)
{
	double delay = load_delay(t, others);
	const char *unit = load_unit(t);
	char seen[300];

	int n = snprintf(
		seen, sizeof(seen),
		"%.99s changed by %.2g %s when other programs used %.3g "
		"%% of the CPUs, not %.3g %%",
		t->of, 100 * t->change, unit, 100 * t->beside, 100 * t->others);

	snprintf(seen + n, sizeof(seen) - (size_t)n,
		 isfinite(delay) ? "; %.3g %% changed it by about %.2g %s "
				   "at most (tolerance %.2g %s)"
				 : ", which says nothing about %.3g %%",
		 100 * others, 100 * delay, unit, 100 * tolerance, unit);
	return json_pack("{s:s, s:b, s:s, s:f, s:f, s:o, s:s, s:o, s:o, s:f}",
			 "cell", id, "stands", delay <= tolerance, "seen", seen,
			 "other_cpu_share", t->others, "other_cpu_share_tested",
			 t->beside, "change", number_or_null(t->change), "of",
			 t->of, "delay", number_or_null(delay), "delays",
			 delays(t, changes, others), "tolerance", tolerance);
}

double load_doubt(const json_t *record, const struct metric *m, double v)
{
	const json_t *delay = json_object_get(
		json_object_get(test_of(record), "delays"), m->name);

	if (!json_is_number(delay) || !only_cpu(record))
		return INFINITY;
	return DOUBT * json_number_value(delay) *
	       (in_percent(m) ? 100 : fabs(v));
}

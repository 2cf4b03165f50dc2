/* SPDX-License-Identifier: MIT */
#include "runner/run_load_test.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/json.h"
#include "common/log.h"
#include "common/units.h"
#include "common/util.h"
#include "runner/cell/run_cell.h"
#include "runner/cell/run_load.h"
#include "runner/run/run_burn.h"
#include "runner/run/run_lock.h"
#include "runner/spec/run_used.h"

struct tests {
	struct runner *r;
	const struct metric **metrics; /* that the workload uses */
	size_t n_metrics;
	size_t *cells; /* the disturbed ones */
	struct load_cell *about;
	json_t **changes; /* of the metrics, by the tests */
	bool *cleared;
	size_t n;
};

/* --- one run beside busy processes ------------------------------------ */

/* The second run of the cell. No error if it fails: *ret stays NULL. */
static int run_beside(struct runner *r, const struct cell *cell,
		      const struct load_plan *plan, json_t **ret)
{
	struct cell copy = *cell;
	struct err err = { 0 };
	struct burn burn;
	int code = burn_start(&burn, plan->n,
			      (uint64_t)(plan->burst_s * NS_PER_S),
			      (uint64_t)(plan->period_s * NS_PER_S));

	if (code < 0) {
		log_warn("load test of %s: no busy processes: %s", cell->id,
			 strerror(-code));
		return 0;
	}
	/* log and configuration of the first run stay */
	snprintf(copy.id, sizeof(copy.id), "load-test-%016" PRIx64, cell->hash);
	code = cell_try(r, &copy, ret, &err);
	burn_end(&burn);
	cell_forget(r, &copy);
	if (code == -EIO) {
		log_warn("load test of %s failed: %s", cell->id, err.text);
		return 0;
	}
	return code;
}

/* --- records ---------------------------------------------------------- */

/* Add the test to the record of the cell that ran beside `others`; true: the
 * cell is not disturbed. */
static bool note(const struct tests *t, const struct cell *cell, size_t by,
		 const char *tested, double others)
{
	struct runner *r = t->r;
	_cleanup_free_ char *path = runner_path(r, "records", cell->id, "json");
	json_auto_t *record = cell_record(r, cell);
	json_t *about = json_object_get(record, "cell");
	struct err err = { 0 };

	if (!path || !about ||
	    json_object_set_new(about, "load_test",
				load_json(&t->about[by].test, t->changes[by],
					  tested, others,
					  r->w->load_tolerance.fraction)) < 0)
		return false;
	if (json_replace(record, path, &err) < 0) {
		log_error("%s", err.text);
		return false;
	}
	return !cell_judge(r, cell);
}

/* What the test of cell `tested` says of cell `i`; true: it clears it. */
static int judge(struct tests *t, size_t i, size_t tested)
{
	struct runner *r = t->r;
	struct cell cell, by;
	uint64_t byte;
	int code = workload_cell(r->w, t->cells[i], r->mounted, &cell);

	if (code < 0)
		return code;
	code = workload_cell(r->w, t->cells[tested], r->mounted, &by);
	if (code < 0) {
		cell_free(&cell);
		return code;
	}
	byte = lock_of_cell(cell.id);
	/* else another gpemu-run is repeating it */
	if (runner_try_lock(r, byte, NULL) == 0) {
		t->cleared[i] =
			note(t, &cell, tested, by.id, t->about[i].risk.others);
		runner_unlock(r, byte);
	}
	cell_free(&by);
	cell_free(&cell);
	return 0;
}

/* --- one test --------------------------------------------------------- */

static void say_before(const struct cell *cell, const json_t *first,
		       const struct load_plan *plan)
{
	fprintf(stderr,
		"gpemu-run: load test: other programs used %.3g %% of the CPUs "
		"beside %s; it runs once more, with %.3g %% in addition\n",
		100 * load_others(first), cell->id, 100 * plan->share);
}

static void say_after(const struct load_cell *about, double tolerance)
{
	const struct load_test *t = &about->test;
	double delay = load_delay(t, about->risk.others);

	fprintf(stderr,
		"gpemu-run: load test: beside %.3g %%, %s changed by %.2g %s: "
		"%s\n",
		100 * t->beside, t->of, 100 * t->change, load_unit(t),
		delay <= tolerance ? "the run stands"
		: isinf(delay)	   ? "too little more load"
				   : "the run is disturbed");
}

/* A machine on which other programs use no more than the share `most`, however
 * many there are, is too busy to test cells beside nearly as much. */
static void skip_busy(struct tests *t, double most)
{
	for (size_t i = 0; i < t->n; i++)
		if (LOAD_LEAST_RATIO * t->about[i].risk.others > most)
			t->about[i].testable = false;
}

static int test_locked(struct tests *t, const struct cell *cell,
		       struct load_cell *about, json_t **changes)
{
	json_auto_t *first = cell_record(t->r, cell), *second = NULL;
	struct load_plan plan = load_plan(first);
	int code;

	if (!first)
		return 0;
	say_before(cell, first, &plan);
	code = run_beside(t->r, cell, &plan, &second);
	if (!second)
		return code;
	about->test = load_compare(first, second, t->metrics, t->n_metrics);
	about->tested = true;
	*changes = load_changes(first, second, t->metrics, t->n_metrics);
	say_after(about, t->r->w->load_tolerance.fraction);
	if (about->test.beside < LOAD_LEAST_RATIO * about->test.others)
		skip_busy(t, about->test.beside);
	return 1;
}

/* 1: done; 0: it was not possible. */
static int test_one(struct tests *t, size_t i)
{
	struct runner *r = t->r;
	struct cell cell;
	uint64_t byte;
	int code = workload_cell(r->w, t->cells[i], r->mounted, &cell);

	if (code < 0)
		return code;
	byte = lock_of_cell(cell.id);
	t->about[i].testable = false;
	/* else another gpemu-run is repeating it */
	if (runner_try_lock(r, byte, NULL) == 0) {
		code = test_locked(t, &cell, &t->about[i], &t->changes[i]);
		runner_unlock(r, byte);
	}
	cell_free(&cell);
	return code == 1 ? judge(t, i, i) : code;
}

/* --- all -------------------------------------------------------------- */

static int tests_init(struct tests *t, struct runner *r, size_t *cells,
		      size_t n)
{
	int code = metrics_used(r->w, &t->metrics, &t->n_metrics);

	t->r = r;
	t->cells = cells;
	t->n = n;
	t->about = calloc(n, sizeof(*t->about));
	t->changes = calloc(n, sizeof(json_t *));
	t->cleared = calloc(n, sizeof(*t->cleared));
	if (code < 0 || !t->about || !t->changes || !t->cleared)
		return -ENOMEM;
	for (size_t i = 0; i < n; i++) {
		json_auto_t *record = NULL;
		struct load_test same;
		struct cell cell;

		code = workload_cell(r->w, cells[i], r->mounted, &cell);
		if (code < 0)
			return code;
		record = cell_record(r, &cell);
		same = load_compare(record, record, t->metrics, t->n_metrics);
		t->about[i].risk = load_risk(record);
		t->about[i].testable =
			same.change <= 0 &&
			load_can_clear(record, r->w->noise.fraction);
		cell_free(&cell);
	}
	return 0;
}

static void tests_fini(struct tests *t)
{
	for (size_t i = 0; t->changes && i < t->n; i++)
		json_decref(t->changes[i]);
	free(t->changes);
	free(t->metrics);
	free(t->about);
	free(t->cleared);
}

/* The cells that have no test of their own: cleared, or in doubt. */
static int clear_others(struct tests *t)
{
	int code = 0;

	for (size_t i = 0; code == 0 && i < t->n; i++) {
		const struct load_cell *by = load_clears(
			t->about, t->n, &t->about[i].risk, INFINITY);

		if (t->about[i].testable && by)
			code = judge(t, i, (size_t)(by - t->about));
	}
	return code;
}

/* Disturbed cells first; how many they are. */
static size_t split(struct tests *t)
{
	size_t n_left = 0;

	for (size_t i = 0; i < t->n; i++) {
		size_t index = t->cells[i];

		if (t->cleared[i])
			continue;
		t->cells[i] = t->cells[n_left];
		t->cells[n_left++] = index;
	}
	return n_left;
}

ssize_t load_test_run(struct runner *r, size_t *cells, size_t n, unsigned tests)
{
	double tolerance = r->w->load_tolerance.fraction;
	struct tests t = { 0 };
	size_t next, n_left = n;
	int code;

	if (tolerance <= 0)
		return (ssize_t)n;
	code = tests_init(&t, r, cells, n);
	for (; code == 0 && tests > 0; tests--) {
		next = load_next(t.about, n, tolerance);
		if (next == n)
			break;
		code = test_one(&t, next);
	}
	if (code == 0)
		code = clear_others(&t);
	if (code == 0)
		n_left = split(&t);
	tests_fini(&t);
	if (code == 0 && n_left < n)
		fprintf(stderr,
			"gpemu-run: load tests cleared %zu of %zu cells\n",
			n - n_left, n);
	return code < 0 ? code : (ssize_t)n_left;
}

/* SPDX-License-Identifier: MIT */
#include "runner/run_again.h"

#include <errno.h>

#include "common/json.h"
#include "common/log.h"
#include "common/util.h"
#include "runner/cell/run_cell.h"
#include "runner/cell/run_record.h"
#include "runner/cell/run_disturb.h"
#include "runner/result/run_verdict.h"
#include "runner/run/run_lock.h"

/* Runs of a cell, the first included. arbitrary: a machine that is busy all the
 * time costs twice the time of an idle one, not more. */
enum { MOST_ATTEMPTS = 3 };

/* Keep the first of two runs. */
static int put_back(struct runner *r, const struct cell *cell, json_t *record,
		    unsigned attempt, struct err *err)
{
	_cleanup_free_ char *path = runner_path(r, "records", cell->id, "json");

	json_add_integer(json_object_get(record, "cell"), "attempts", attempt);
	return path ? json_replace(record, path, err) : -ENOMEM;
}

static int run_again(struct runner *r, size_t index, unsigned attempt)
{
	json_auto_t *first = NULL;
	struct cell_outcome out;
	struct err err = { 0 };
	_cleanup_(cell_free) struct cell cell = { 0 };
	int code = workload_cell(r->w, index, r->mounted, &cell);

	if (code < 0)
		return code;
	if (runner_try_lock(r, lock_of_cell(cell.id), &err) < 0)
		return 0; /* another gpemu-run is repeating it */
	first = cell_record(r, &cell);
	code = cell_run(r, &cell, attempt, &out, &err);
	/* stopped, failed or disturbed more: keep the first run */
	if (first && (code < 0 ||
		      (out.disturbed && out.taken >= disturb_share(first)))) {
		struct err why = { 0 };
		int put = put_back(r, &cell, first, attempt, &why);

		if (put < 0)
			log_error("%s", why.text);
		if (code != -EINTR)
			code = put;
	}
	runner_unlock(r, lock_of_cell(cell.id));
	return code;
}

/* Move the disturbed cells to the front; how many they are, or -errno. */
static ssize_t disturbed(struct runner *r, size_t *cells, size_t n)
{
	size_t n_disturbed = 0;

	for (size_t i = 0; i < n; i++) {
		_cleanup_(cell_free) struct cell cell = { 0 };
		int code = workload_cell(r->w, cells[i], r->mounted, &cell);

		if (code < 0)
			return code;
		if (cell_judge(r, &cell)) {
			size_t index = cells[n_disturbed];

			cells[n_disturbed++] = cells[i];
			cells[i] = index;
		}
	}
	return (ssize_t)n_disturbed;
}

static int run_all(struct runner *r, const size_t *cells, size_t n,
		   unsigned attempt, enum progress_mode mode)
{
	struct progress bar;
	int code = 0;

	progress_init(&bar, "again", n, mode);
	for (size_t i = 0; code == 0 && i < n; i++) {
		progress_update(&bar, i, "again");
		code = run_again(r, cells[i], attempt);
	}
	progress_end(&bar);
	return code;
}

/* What the first of them suffered. */
static void say_why(const struct runner *r, size_t index)
{
	json_auto_t *record = NULL;
	_cleanup_(cell_free) struct cell cell = { 0 };
	json_t *sign;

	if (workload_cell(r->w, index, r->mounted, &cell) < 0)
		return;
	record = cell_record(r, &cell);
	sign = json_array_get(json_object_get(json_object_get(record, "cell"),
					      "disturbance"),
			      0);
	fprintf(stderr, "gpemu-run: %s: %s\n", cell.id,
		json_get_text(sign, "seen"));
}

/* Are there checks, and does none need a disturbed cell? 1: yes; 0: no; or
 * -ENOMEM. */
static int decided(const struct runner *r)
{
	struct verdicts v = { 0 };
	struct result res = { 0 };
	struct err err = { 0 };
	int code = result_init(&res, r, &err);

	if (code == 0)
		code = verdicts_init(&v, &res, &err);
	if (code == 0)
		code = v.n > 0;
	for (size_t i = 0; code == 1 && i < v.n; i++)
		code = v.items[i].state != VERDICT_UNDECIDED;
	verdicts_fini(&v);
	result_fini(&res);
	return code;
}

static int say_decided(ssize_t left, size_t n)
{
	fprintf(stderr,
		"gpemu-run: other load disturbed %zd of %zu cells; no check "
		"needs them\n",
		left, n);
	return 0;
}

int again_run(struct runner *r, size_t *cells, size_t n, bool by_checks,
	      enum progress_mode mode)
{
	ssize_t left = 0, before = (ssize_t)n + 1;
	int code = 0;

	if (r->w->noise.fraction >= 1)
		return 0;
	for (unsigned attempt = 2;; attempt++) {
		left = disturbed(r, cells, attempt == 2 ? n : (size_t)left);
		if (left < 0)
			return (int)left;
		code = left > 0 && by_checks ? decided(r) : 0;
		if (code < 0)
			return code;
		if (code)
			return say_decided(left, n);
		/* another round only if the last one has helped */
		if (left == 0 || attempt > MOST_ATTEMPTS || left >= before)
			break;
		fprintf(stderr,
			"gpemu-run: other load disturbed %zd of %zu cells; "
			"these run once more\n",
			left, n);
		say_why(r, cells[0]);
		before = left;
		code = run_all(r, cells, (size_t)left, attempt, mode);
		if (code < 0)
			return code;
	}
	if (left)
		log_warn("%zd of %zu cells stay disturbed by other load; run "
			 "them again on a quieter machine, with --again",
			 left, n);
	return 0;
}

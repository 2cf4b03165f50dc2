/* SPDX-License-Identifier: MIT */
/* Load tests: what they compare, and what follows from one. */
#include "tests/unit/test.h"

#include <math.h>
#include <string.h>

#include "common/util.h"
#include "runner/cell/run_disturb.h"
#include "runner/cell/run_load.h"
#include "runner/page/run_warnings.h"
#include "runner/spec/run_used.h"

#define TOLERANCE .01

/* A cell of 10 s on two CPUs, disturbed beside `others`. */
static json_t *record_of(double others, double seconds, double hits)
{
	return json_pack(
		"{s:{s:{s:i, s:f, s:f, s:f, s:f, s:f, s:f, s:f, s:f}}, "
		"s:{s:s, s:b, s:[{s:s}]}, s:[{s:f, s:f}, {s:f, s:f}]}",
		"host", "watch", "cpus", 2, "seconds", 10., "own_cpu_s", 6.,
		"other_cpu_share", others, "other_cpu_share_max", .5,
		"cpu_wait_s", 20., "taken_s", 2., "taken_share", .2, "stolen_s",
		.1, "cell", "id", "one", "disturbed", 1, "disturbance", "sign",
		"cpu", "epochs", "seconds", 90., "hits", 0., "seconds", seconds,
		"hits", hits);
}

static void a_disturbed_cell_can_be_tested(void **state)
{
	static const struct {
		const char *group, *key;
		double value;
		bool can;
	} cases[] = {
		{ "watch", "other_cpu_share", .1, true },
		/* no room for half as much again */
		{ "watch", "other_cpu_share", .7, false },
		{ "watch", "stolen_s", .4, true },
		/* the host, not other programs */
		{ "watch", "stolen_s", .6, false },
		{ "watch", "seconds", 0, false },
		{ "cell", "load_test", 1, false },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		json_t *record = record_of(.1, 10, 5);
		json_t *group = json_object_get(
			!strcmp(cases[i].group, "watch")
				? json_object_get(record, "host")
				: record,
			cases[i].group);

		json_object_set_new(group, cases[i].key,
				    json_real(cases[i].value));
		assert_int_equal(load_can_clear(record, .05), cases[i].can);
		json_decref(record);
	}
}

static void other_signs_are_not_cleared(void **state)
{
	json_t *record = record_of(.1, 10, 5);
	json_t *cell = json_object_get(record, "cell");

	(void)state;
	json_array_append_new(json_object_get(cell, "disturbance"),
			      json_pack("{s:s}", "sign", "timers"));
	assert_false(load_can_clear(record, .05));
	json_object_set_new(cell, "disturbance", json_array());
	assert_false(load_can_clear(record, .05));
	json_decref(record);
}

static void the_load_is_more_than_the_first_runs(void **state)
{
	static const struct {
		double others, most, seconds, share;
		unsigned n;
		double burst_s;
	} cases[] = {
		{ .1, .5, 30, .15, 1, 1 },
		/* at least a tenth */
		{ .01, .02, 30, .1, 1, 1 },
		/* two bursts, on both CPUs as theirs */
		{ .1, 1, 4, .15, 2, .3 },
		/* at most half, without a pause */
		{ .6, .5, 30, .5, 1, 1 },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		json_t *record = record_of(cases[i].others, 10, 5);
		json_t *w = json_object_get(json_object_get(record, "host"),
					    "watch");
		struct load_plan p;

		json_object_set_new(w, "other_cpu_share_max",
				    json_real(cases[i].most));
		json_object_set_new(w, "seconds", json_real(cases[i].seconds));
		p = load_plan(record);
		assert_true(fabs(p.share - cases[i].share) < 1e-9);
		assert_int_equal(p.n, cases[i].n);
		assert_true(fabs(p.burst_s - cases[i].burst_s) < 1e-9);
		assert_true(fabs(p.burst_s * p.n / p.period_s - 2 * p.share) <
			    1e-9);
		json_decref(record);
	}
}

static const struct metric seconds = { .name = "seconds",
				       .path = "epochs[steady].seconds",
				       .unit = "s" };
static const struct metric share = { .name = "share",
				     .path = "epochs[-1].hits",
				     .unit = "%" };
static const struct metric absent = { .name = "absent",
				      .path = "epochs[-1].none" };

static void the_metrics_of_the_workload_are_compared(void **state)
{
	const struct metric *both[] = { &seconds, &share, &absent };
	json_t *first = record_of(.1, 10, 5);
	json_t *second = record_of(.3, 9.98, 6);
	struct load_test t = load_compare(first, second, both, 3);

	(void)state;
	/* of a share, the points count */
	assert_string_equal(t.of, "share");
	assert_string_equal(load_unit(&t), "points");
	assert_true(fabs(t.change - .01) < 1e-9);
	assert_true(t.others == .1 && t.beside == .3);
	/* faster is a change, too */
	t = load_compare(first, second, both, 1);
	assert_true(fabs(t.change - .002) < 1e-9);
	assert_string_equal(load_unit(&t), "%");
	t = load_compare(first, first, both, 3);
	assert_true(t.change == 0);
	/* nothing to compare, or in one of them only */
	assert_true(isinf(load_compare(first, second, &both[2], 1).change));
	json_object_del(second, "epochs");
	assert_true(isinf(load_compare(first, second, both, 1).change));
	json_decref(first);
	json_decref(second);
}

static void a_test_says_what_other_load_did(void **state)
{
	static const struct {
		struct load_test t;
		double others, delay;
	} cases[] = {
		/* the load doubled: the first run was delayed by no more */
		{ { .1, .2, .004 }, .1, .004 },
		/* more: by less, but two runs differ by as much */
		{ { .1, .5, .004 }, .1, .004 },
		{ { .1, .16, .003 }, .1, .005 },
		/* not enough additional load */
		{ { .1, .14, 0 }, .1, INFINITY },
		{ { .1, .05, 0 }, .1, INFINITY },
		{ { 0, 0, 0 }, 0, INFINITY },
		{ { 0, .1, .003 }, 0, .003 },
		/* cells beside more load, and beside too much */
		{ { .1, .3, .004 }, .2, .004 },
		{ { .1, .3, .004 }, .3, .006 },
		{ { .1, .3, .004 }, .31, INFINITY },
		{ { .1, .3, INFINITY }, .1, INFINITY },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		double delay = load_delay(&cases[i].t, cases[i].others);

		assert_true(isinf(cases[i].delay)
				    ? isinf(delay)
				    : fabs(delay - cases[i].delay) < 1e-9);
	}
}

/* --- which cells ------------------------------------------------------ */

enum { N = 5 };

/* By the bound, its tightness, own CPU time; what load does to the cell. */
static const struct {
	double by[LOAD_MEASURES], change;
} risks[N] = {
	{ { .5, .2, .5 }, .003 }, { { .4, .2, .6 }, .002 },
	{ { .3, .9, .3 }, .3 },	  { { .2, .3, .4 }, .001 },
	{ { .1, .25, .1 }, .9 },
};

/* Test until there is nothing to test, or `most` times; which ones, by their
 * numbers, and then which others are cleared. */
static const char *story(unsigned most)
{
	static char text[40];
	struct load_cell cells[N] = { 0 };
	char *to = text;
	size_t next;

	for (size_t i = 0; i < N; i++) {
		memcpy(cells[i].risk.by, risks[i].by, sizeof(risks[i].by));
		cells[i].risk.others = .1;
		cells[i].testable = true;
	}
	for (; most > 0; most--) {
		next = load_next(cells, N, TOLERANCE);
		if (next == N)
			break;
		*to++ = (char)('0' + next);
		cells[next].testable = false;
		cells[next].test =
			(struct load_test){ .1, .3, risks[next].change, "s" };
		cells[next].tested = true;
	}
	*to++ = ':';
	for (size_t i = 0; i < N; i++)
		if (cells[i].testable &&
		    load_clears(cells, N, &cells[i].risk, TOLERANCE))
			*to++ = (char)('0' + i);
	*to = 0;
	return text;
}

static void a_cell_is_cleared_by_those_more_at_risk(void **state)
{
	(void)state;
	/* 2 and 3 would clear 4; 2 fails. Then 0 and 1, which clear none. */
	assert_string_equal(story(9), "2301:4");
	assert_string_equal(story(2), "23:4");
	assert_string_equal(story(1), "2:");
	assert_string_equal(story(0), ":");
}

static void one_test_clears_by_all_measures(void **state)
{
	struct load_cell cells[] = {
		{ .risk = { { .6, 0, 0 }, .1 }, .tested = true },
		{ .risk = { { 0, .6, 0 }, .1 }, .tested = true },
		{ .risk = { { 0, 0, .6 }, .1 }, .tested = true },
		{ .risk = { { .5, .5, .5 }, .1 }, .testable = true },
	};

	(void)state;
	for (size_t i = 0; i < 3; i++)
		cells[i].test = (struct load_test){ .1, .3, .001, "s", false };
	assert_null(load_clears(cells, 4, &cells[3].risk, TOLERANCE));
	assert_int_equal(load_next(cells, 4, TOLERANCE), 3);
	cells[2].risk.by[0] = cells[2].risk.by[1] = .5;
	assert_ptr_equal(load_clears(cells, 4, &cells[3].risk, TOLERANCE),
			 &cells[2]);
	assert_int_equal(load_next(cells, 4, TOLERANCE), 4);
}

static void a_cell_beside_more_load_needs_its_own_test(void **state)
{
	struct load_cell cells[] = {
		{ .risk = { { .5, .5, .5 }, .1 },
		  .tested = true,
		  .test = { .1, .3, .001, "s" } },
		{ .risk = { { .4, .4, .4 }, .3 }, .testable = true },
		{ .risk = { { .4, .4, .4 }, .4 }, .testable = true },
	};

	(void)state;
	assert_ptr_equal(load_clears(cells, 3, &cells[1].risk, TOLERANCE),
			 &cells[0]);
	assert_null(load_clears(cells, 3, &cells[2].risk, TOLERANCE));
	assert_int_equal(load_next(cells, 3, TOLERANCE), 2);
	cells[2].testable = false;
	assert_int_equal(load_next(cells, 3, TOLERANCE), 3);
}

/* --- records ---------------------------------------------------------- */

static void the_record_has_what_was_seen(void **state)
{
	struct load_test t = { .1, .3, .009, "share", true };
	char name[400] = "";
	json_t *j = load_json(&t, NULL, "two", .1, TOLERANCE);

	(void)state;
	assert_string_equal(json_string_value(json_object_get(j, "seen")),
			    "share changed by 0.9 points when other programs "
			    "used 30 % of the CPUs, not 10 %; 10 % changed it "
			    "by about 0.9 points at most (tolerance 1 points)");
	json_decref(j);
	/* a name as long as one likes */
	memset(name, 'x', sizeof(name) - 1);
	t.of = name;
	j = load_json(&t, NULL, "two", .1, TOLERANCE);
	assert_non_null(strstr(json_string_value(json_object_get(j, "seen")),
			       "x changed by 0.9 points when"));
	json_decref(j);
}

static void a_test_says_how_much_is_in_doubt(void **state)
{
	const struct metric *all[] = { &seconds, &share, &absent };
	json_t *first = record_of(.1, 10, 5);
	json_t *second = record_of(.16, 10.2, 6), *signs;
	struct load_test t = load_compare(first, second, all, 3);
	json_t *changes = load_changes(first, second, all, 3);
	json_t *cell = json_object_get(first, "cell");

	(void)state;
	assert_true(isinf(load_doubt(first, &seconds, 10)));
	json_object_set_new(cell, "load_test",
			    load_json(&t, changes, "two", .1, TOLERANCE));
	/* twice 2 % of it, of 6 % more load instead of 10 */
	assert_true(fabs(load_doubt(first, &seconds, 10) - 2 * .02 * 10 / .6) <
		    1e-9);
	/* twice a point */
	assert_true(fabs(load_doubt(first, &share, 5) - 2 / .6) < 1e-9);
	assert_true(isinf(load_doubt(first, &absent, 1)));
	/* other load than that of CPUs */
	signs = json_object_get(cell, "disturbance");
	json_array_append_new(signs, json_pack("{s:s}", "sign", "timers"));
	assert_true(isinf(load_doubt(first, &seconds, 10)));
	/* the test says nothing of so much load */
	json_array_remove(signs, json_array_size(signs) - 1);
	json_object_set_new(cell, "load_test",
			    load_json(&t, changes, "two", .3, TOLERANCE));
	assert_true(isinf(load_doubt(first, &seconds, 10)));
	json_decref(changes);
	json_decref(first);
	json_decref(second);
}

static void the_record_of_a_cleared_cell_says_so(void **state)
{
	static const struct load_test quiet = { .1, .3, .002, "seconds" };
	static const struct load_test slow = { .1, .3, .02, "seconds" };
	json_t *record = record_of(.1, 10, 5), *signs, *warnings;
	json_t *cell = json_object_get(record, "cell");
	json_t *watch =
		json_object_get(json_object_get(record, "host"), "watch");
	char text[400] = "";
	FILE *f = fmemopen(text, sizeof(text), "w");

	(void)state;
	json_object_set_new(cell, "load_test",
			    load_json(&slow, NULL, "two", .1, TOLERANCE));
	assert_null(load_cleared_by(record));
	signs = disturb_signs(record, NULL, .05);
	assert_int_equal(json_array_size(signs), 1);
	json_object_set_new(cell, "load_test",
			    load_json(&quiet, NULL, "two", .1, TOLERANCE));
	assert_string_equal(load_cleared_by(record), "two");
	json_decref(signs);
	signs = disturb_signs(record, NULL, .05);
	assert_int_equal(json_array_size(signs), 0);
	json_object_set_new(cell, "disturbance", signs);
	json_object_set_new(cell, "disturbed", json_false());
	warnings = json_pack("[O]", record);
	signs = warnings_json(warnings);
	warnings_print(signs, f);
	fclose(f);
	assert_non_null(strstr(text, "cleared by a load test of two: 1 of 1 "
				     "runs, worst one: seconds changed by 0.2 "
				     "% when other programs used 30 % of the "
				     "CPUs, not 10 %"));
	json_decref(signs);
	json_decref(warnings);
	/* what the host stole stays */
	json_object_set_new(watch, "stolen_s", json_real(.6));
	signs = disturb_signs(record, NULL, .05);
	assert_int_equal(json_array_size(signs), 1);
	json_decref(signs);
	json_decref(record);
}

/* --- the metrics of a workload ---------------------------------------- */

/* Their names; `gpus`: of a search. */
static const char *used_with(const char *rest, uint64_t gpus)
{
	static char names[200];
	const struct metric **metrics;
	struct err err = { 0 };
	struct workload w;
	char yaml[900];
	size_t n;

	snprintf(yaml, sizeof(yaml),
		 "name: w\nquestion: Why?\ndataset: {dataset: imagenette}\n"
		 "axes: {fs.cache_size: [10%%, 20%%]}\n"
		 "metrics:\n"
		 "  mine: {path: totals.bytes, per: totals.samples}\n"
		 "  more: {path: totals.steps}\n"
		 "  double: {of: 2 * mine / au}\n%s",
		 rest);
	if (workload_parse(yaml, strlen(yaml), "w.yaml", &w, &err) < 0)
		fail_msg("%s", err.text);
	w.gpus = gpus;
	assert_int_equal(metrics_used(&w, &metrics, &n), 0);
	names[0] = 0;
	for (size_t i = 0; i < n; i++)
		strcat(strcat(names, i ? " " : ""), metrics[i]->name);
	free(metrics);
	workload_free(&w);
	return names;
}

static const char *used(const char *rest)
{
	return used_with(rest, 0);
}

static void what_a_workload_reads_counts(void **state)
{
	(void)state;
	assert_string_equal(used(""), "mine more au seconds");
	assert_string_equal(used("columns: [hit_ratio]\n"), "hit_ratio");
	assert_string_equal(used_with("columns: [hit_ratio]\n", 4),
			    "hit_ratio au");
	assert_string_equal(used("columns: [double, au]\n"), "mine au");
	assert_string_equal(
		used("kind: self\nexpect: [{that: double > fs.cache_size}]\n"),
		"mine au");
	assert_string_equal(
		used("kind: order\n"
		     "expect: [{rising: more, along: fs.cache_size}]\n"
		     "plot: [{x: fs.cache_size, y: seconds}]\n"),
		"more seconds");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_disturbed_cell_can_be_tested),
		cmocka_unit_test(other_signs_are_not_cleared),
		cmocka_unit_test(the_load_is_more_than_the_first_runs),
		cmocka_unit_test(the_metrics_of_the_workload_are_compared),
		cmocka_unit_test(a_test_says_what_other_load_did),
		cmocka_unit_test(a_cell_is_cleared_by_those_more_at_risk),
		cmocka_unit_test(one_test_clears_by_all_measures),
		cmocka_unit_test(a_cell_beside_more_load_needs_its_own_test),
		cmocka_unit_test(the_record_has_what_was_seen),
		cmocka_unit_test(a_test_says_how_much_is_in_doubt),
		cmocka_unit_test(the_record_of_a_cleared_cell_says_so),
		cmocka_unit_test(what_a_workload_reads_counts),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

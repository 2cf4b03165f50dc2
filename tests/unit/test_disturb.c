/* SPDX-License-Identifier: MIT */
/* Other load in and beside a cell: synthetic samples and records. */
#include "tests/unit/test.h"

#include <math.h>
#include <string.h>

#include "common/units.h"
#include "common/util.h"
#include "runner/cell/run_disturb.h"
#include "runner/cell/run_rig.h"
#include "runner/page/run_warnings.h"
#include "runner/run/run_watch.h"

enum { CPUS = 2 };

/* Seconds per second of wall time. */
struct rates {
	double own, other, waited, stolen;
};

/* /proc/stat counts in ticks of 10 ms. */
static double ticks(double s)
{
	return floor(s * 100) / 100;
}

/*
 * A cell of `n` windows beside other programs; in the first fifth of every five
 * seconds at `burst`, else at `quiet`.
 */
static struct run_watch cell_of(size_t n, struct rates quiet,
				struct rates burst)
{
	double step = (double)WATCH_NS / NS_PER_S, idle = 0;
	struct run_watch w = { .cpus = CPUS };
	struct watch_sample s = { .wall_ns = 1 };

	w.first = w.last = s;
	for (size_t i = 0; i < n; i++) {
		bool first = fmod((double)i * step, 5) < 1;
		const struct rates *r = first ? &burst : &quiet;

		s.wall_ns += WATCH_NS;
		s.own_s += r->own * step;
		s.waited_s += r->waited * step;
		s.stolen_s += r->stolen * step;
		idle += (CPUS - r->own - r->other - r->stolen) * step;
		s.idle_s = ticks(idle);
		watch_add(&w, &s);
	}
	return w;
}

/* The record of a cell with 10 steps of 100 ms. */
static json_t *record_of(const struct run_watch *w, double late_us,
			 double ceiling)
{
	return json_pack("{s:{s:o}, s:{s:f}, s:{s:f, s:f}, s:{s:f, s:i}}",
			 "host", "watch", watch_json(w), "timer_error_us",
			 "mean", late_us, "ceiling", "samples_per_s", ceiling,
			 "au", .9999, "totals", "wall_seconds", 1., "steps",
			 10);
}

/* "", "cpu", "cpu timers", ... */
static const char *signs_of(const json_t *record, const json_t *peers,
			    double limit)
{
	static char names[80];
	json_t *signs = disturb_signs(record, peers, limit), *one;
	size_t i;

	names[0] = 0;
	json_array_foreach (signs, i, one)
		strcat(strcat(names, i ? " " : ""),
		       json_string_value(json_object_get(one, "sign")));
	json_decref(signs);
	return names;
}

static const char *signs(const struct run_watch *w)
{
	static char names[80];
	json_t *record = record_of(w, 5, 640);

	strcpy(names, signs_of(record, NULL, .05));
	json_decref(record);
	return names;
}

/* Its threads wait for each other, and the kernel does a little on its behalf.
 */
static const struct rates quiet = { .own = 1.6, .other = .02, .waited = 3 };

static void an_undisturbed_cell_is_not_noticed(void **state)
{
	struct run_watch w = cell_of(40, quiet, quiet);

	(void)state;
	assert_string_equal(signs(&w), "");
	assert_true(fabs(watch_taken(&w) - .02) < .005);
	assert_true(w.most < .05);
}

static void a_core_busy_one_second_in_five_is(void **state)
{
	struct rates burst = { .own = 1, .other = 1, .waited = 3.5 };
	struct run_watch w = cell_of(40, quiet, burst);

	(void)state;
	/* over the whole cell it is 11 % of the CPUs */
	assert_true(fabs(watch_taken(&w) - .216) < .01);
	assert_true(fabs(w.most - .5) < .03);
	assert_string_equal(signs(&w), "cpu");
}

static void load_that_the_cell_does_not_feel_is_none(void **state)
{
	/* one core is free for it */
	struct rates idle = { .own = .3, .waited = .001 };
	struct rates burst = { .own = .3, .other = 1, .waited = .01 };
	struct run_watch w = cell_of(40, idle, burst);

	(void)state;
	assert_true(w.most > .45);
	assert_true(watch_taken(&w) < .01);
	assert_string_equal(signs(&w), "");
}

static void what_the_host_steals_counts(void **state)
{
	struct rates stolen = { .own = 1.5, .stolen = .4 };
	struct run_watch w = cell_of(40, stolen, stolen);

	(void)state;
	assert_true(fabs(watch_taken(&w) - .4) < .02);
	assert_string_equal(signs(&w), "cpu");
}

static void ticks_do_not_add_up_to_load(void **state)
{
	/* .4867 s of idle time a second: never whole ticks */
	struct rates all = { .own = 1.5133, .waited = 3 };
	struct run_watch w = cell_of(400, all, all);

	(void)state;
	assert_true(watch_taken(&w) < .002);
}

static void a_cell_that_is_too_short_is_not_judged(void **state)
{
	struct rates burst = { .own = 1, .other = 1, .waited = 1 };
	struct run_watch w = cell_of(1, burst, burst);

	(void)state;
	assert_string_equal(signs(&w), "");
	w = cell_of(2, burst, burst);
	assert_string_equal(signs(&w), "cpu");
}

static void the_limit_is_the_workloads(void **state)
{
	struct rates burst = { .own = 1, .other = 1, .waited = 3.5 };
	struct run_watch w = cell_of(40, quiet, burst);
	json_t *record = record_of(&w, 5, 640);

	(void)state;
	assert_string_equal(signs_of(record, NULL, .25), "");
	json_decref(record);
	record = record_of(&w, 1e5, 640);
	assert_string_equal(signs_of(record, NULL, .2), "cpu timers");
	assert_string_equal(signs_of(record, NULL, 1), "");
	json_decref(record);
}

static void others_at_the_disk_count_for_a_cell_that_reads_it(void **state)
{
	struct run_watch w = cell_of(40, quiet, quiet);

	(void)state;
	w.last.pressure_io_s = 3;
	w.last.disk_busy_s = 3;
	w.last.disk_mib = 400;
	assert_string_equal(signs(&w), "");
	w.last.own_mib = .9; /* its log */
	assert_string_equal(signs(&w), "");
	w.last.own_mib = 100;
	assert_string_equal(signs(&w), "disk");
	/* its threads slept in io_uring: the disk did nothing */
	w.last.disk_busy_s = .1;
	assert_string_equal(signs(&w), "");
	w.last.disk_busy_s = 3;
	/* all of it was its own */
	w.last.own_mib = 400;
	assert_string_equal(signs(&w), "");
}

/* --- timers and the ceiling ------------------------------------------- */

static const char *among(double late_us, double ceiling,
			 const double (*peers)[2], size_t n)
{
	struct run_watch w = cell_of(40, (struct rates){ .own = 1 },
				     (struct rates){ .own = 1 });
	json_t *record = record_of(&w, late_us, ceiling);
	json_t *all = json_array();
	const char *found;

	for (size_t i = 0; i < n; i++)
		json_array_append_new(all,
				      record_of(&w, peers[i][0], peers[i][1]));
	found = signs_of(record, all, .05);
	json_decref(record);
	json_decref(all);
	return found;
}

static void timers_are_judged_by_the_other_repetitions(void **state)
{
	const double calm[][2] = { { 4, 640 }, { 5, 640 } };
	const double late[][2] = { { 900, 640 }, { 1500, 640 } };

	(void)state;
	/* steps of 100 ms */
	assert_string_equal(among(999, 640, calm, 2), "");
	assert_string_equal(among(1001, 640, calm, 2), "timers");
	/* all are late: a limit of the testbed */
	assert_string_equal(among(1500, 640, late, 2), "");
	/* nothing to compare with, and nothing was taken from it */
	assert_string_equal(among(1001, 640, NULL, 0), "");
}

static void the_timers_of_each_node_count(void **state)
{
	struct run_watch w = cell_of(40, (struct rates){ .own = 1 },
				     (struct rates){ .own = 1 });
	json_t *record = record_of(&w, 5, 640);
	json_t *peers = json_pack("[o]", record_of(&w, 5, 640));

	(void)state;
	json_object_set_new(record, "nodes",
			    json_pack("[{s:{s:f}}, {s:{s:f}}]",
				      "timer_error_us", "mean", 5.,
				      "timer_error_us", "mean", 1001.));
	assert_string_equal(signs_of(record, peers, .05), "timers");
	json_decref(record);
	json_decref(peers);
}

static void a_ceiling_that_fell_is_noticed(void **state)
{
	const double calm[][2] = { { 4, 640 }, { 5, 640.1 } };

	(void)state;
	assert_string_equal(among(5, 635, calm, 2), "");
	assert_string_equal(among(5, 630, calm, 2), "ceiling");
	assert_string_equal(among(5, 650, calm, 2), "");
	assert_string_equal(among(5, 630, NULL, 0), "");
}

/* --- the rig ---------------------------------------------------------- */

/* "timers of mount, cpu of cell" */
static const char *limits_of(json_t *record)
{
	static char names[160];
	json_t *limits = rig_limits(record), *one;
	size_t i;

	names[0] = 0;
	json_array_foreach (limits, i, one) {
		strcat(strcat(names, i ? ", " : ""),
		       json_string_value(json_object_get(one, "limit")));
		strcat(strcat(names, " of "),
		       json_string_value(json_object_get(one, "of")));
		assert_true(json_number_value(json_object_get(one, "factor")) >
			    1);
	}
	json_decref(limits);
	json_decref(record);
	return names;
}

static json_t *limit(const char *name)
{
	return json_pack("{s:[{s:s, s:f, s:s}]}", "limits", "limit", name,
			 "factor", 1.5, "why", "because");
}

static void a_cell_names_the_limits_of_its_programs(void **state)
{
	struct run_watch w = cell_of(40, (struct rates){ .own = .9 },
				     (struct rates){ .own = .9 });
	struct run_watch half = cell_of(40, (struct rates){ .own = 1.1 },
					(struct rates){ .own = 1.1 });
	struct run_watch all = cell_of(40, (struct rates){ .own = 1.9 },
				       (struct rates){ .own = 1.9 });
	json_t *record = record_of(&w, 5, 640), *jobs;

	(void)state;
	assert_string_equal(limits_of(json_incref(record)), "");
	json_object_set_new(record, "rig", limit("time_scale"));
	assert_string_equal(limits_of(json_incref(record)),
			    "time_scale of train");
	/* the CPUs of a job are part of the cell's */
	json_object_set_new(record, "rig", limit("cpu"));
	assert_string_equal(limits_of(json_incref(record)), "");
	json_object_set_new(record, "mount",
			    json_pack("{s:{s:f}}", "timer_error_us", "mean",
				      1001.));
	assert_string_equal(limits_of(record), "timers of mount");
	assert_string_equal(limits_of(record_of(&half, 5, 640)),
			    "ceiling of cell");
	assert_string_equal(limits_of(record_of(&all, 5, 640)),
			    "ceiling of cell, cpu of cell");
	record = record_of(&all, 5, 640);
	json_object_set_new(record, "cell", json_pack("{s:b}", "simulated", 1));
	assert_string_equal(limits_of(record), "");
	jobs = json_pack("{s:{s:o}, s:{s:o}}", "one", "rig", limit("timers"),
			 "two", "rig", limit("ceiling"));
	assert_string_equal(limits_of(json_pack("{s:o}", "jobs", jobs)),
			    "timers of one, ceiling of two");
	/* the job of several nodes has none, each node has */
	assert_string_equal(limits_of(json_pack("{s:n, s:[{s:o}, {s:o}]}",
						"rig", "nodes", "rig",
						limit("cpu"), "rig",
						limit("ceiling"))),
			    "ceiling of train, node 1");
}

/* --- warnings --------------------------------------------------------- */

static json_t *run_of(const char *id, double factor, double taken)
{
	return json_pack("{s:{s:s, s:[{s:s, s:s, s:f, s:s}, {s:s, s:s, s:f, "
			 "s:s}], s:[{s:s, s:s}]}, s:{s:{s:f}}}",
			 "cell", "id", id, "rig", "limit", "timers", "of", "a",
			 "factor", factor, "why", id, "limit", "timers", "of",
			 "b", "factor", factor / 2, "why", "less",
			 "disturbance", "sign", "cpu", "seen", id, "host",
			 "watch", "taken_share", taken);
}

/* What a job's GPU profile does not say, once for all its runs. */
static void a_report_names_an_unstated_precision_once(void **state)
{
	json_t *records = json_pack("[{s:{s:s}, s:{s:s}}, {s:{s:s}, s:{s:s}}, "
				    "{s:{s:s}, s:{s:n}}]",
				    "cell", "id", "one", "profile", "notice",
				    "not known", "cell", "id", "two", "profile",
				    "notice", "not known", "cell", "id",
				    "three", "profile", "notice");
	json_t *warnings = warnings_json(records);
	char text[400] = "";
	FILE *f = fmemopen(text, sizeof(text), "w");

	(void)state;
	warnings_print(warnings, f);
	fclose(f);
	assert_string_equal(text, "WARN  the GPU, precision: 2 of 3 runs, "
				  "worst one: not known\n");
	json_decref(warnings);
	json_decref(records);
}

static void a_report_names_unusable_samples_once(void **state)
{
	json_t *records =
		json_pack("[{s:{s:s}, s:{s:i, s:i}, s:{s:s}, s:[{s:s, s:s}]}, "
			  "{s:{s:i}}]",
			  "cell", "id", "one", "totals", "failed_samples", 2,
			  "samples", 80, "config", "data", "/tmp/run/mnt",
			  "bad_samples", "sample", "/tmp/run/mnt/a/1.JPEG",
			  "reason", "empty", "totals", "failed_samples", 0);
	json_t *warnings = warnings_json(records);
	char text[400] = "";
	FILE *f = fmemopen(text, sizeof(text), "w");

	(void)state;
	warnings_print(warnings, f);
	fclose(f);
	assert_string_equal(
		text, "WARN  the dataset, unusable samples: 1 of 2 runs, worst "
		      "one: 2 samples could not be used, beside 80 that were; "
		      "the first: a/1.JPEG: empty\n");
	json_decref(warnings);
	json_decref(records);
}

static void a_report_names_the_worst_run_of_each(void **state)
{
	json_t *records = json_pack("[o, o, {}]", run_of("one", 3, .2),
				    run_of("two", 2, .4));
	json_t *warnings = warnings_json(records);
	char text[400] = "";
	FILE *f = fmemopen(text, sizeof(text), "w");

	(void)state;
	warnings_print(warnings, f);
	fclose(f);
	assert_string_equal(
		text,
		"WARN  limit of the testbed, timers: 2 of 3 runs, worst one: "
		"one\n"
		"WARN  disturbed by other load, cpu: 2 of 3 runs, worst two: "
		"two\n");
	json_decref(warnings);
	json_decref(records);
}

static json_t *found(const char *shown)
{
	return json_pack("{s:{s:[{s:s, s:i, s:s?}]}}", "dataset", "notes",
			 "what", "files_aside", "n", 3, "shown", shown);
}

static void a_report_says_what_was_no_sample(void **state)
{
	json_t *records = json_pack("[o, {s:{s:s}, s:{s:o, s:o}}]",
				    found("left aside: 3"), "cell", "id", "two",
				    "jobs", "a", found("left aside: 3"), "b",
				    found(NULL));
	json_t *warnings;
	char text[400] = "";
	FILE *f = fmemopen(text, sizeof(text), "w");

	(void)state;
	json_object_set_new(json_array_get(records, 0), "cell",
			    json_pack("{s:s}", "id", "one"));
	warnings = warnings_json(records);
	warnings_print(warnings, f);
	fclose(f);
	assert_string_equal(text,
			    "WARN  the dataset, files_aside: 2 of 2 runs, "
			    "worst one: left aside: 3\n");
	json_decref(warnings);
	json_decref(records);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_undisturbed_cell_is_not_noticed),
		cmocka_unit_test(a_core_busy_one_second_in_five_is),
		cmocka_unit_test(load_that_the_cell_does_not_feel_is_none),
		cmocka_unit_test(what_the_host_steals_counts),
		cmocka_unit_test(ticks_do_not_add_up_to_load),
		cmocka_unit_test(a_cell_that_is_too_short_is_not_judged),
		cmocka_unit_test(the_limit_is_the_workloads),
		cmocka_unit_test(
			others_at_the_disk_count_for_a_cell_that_reads_it),
		cmocka_unit_test(timers_are_judged_by_the_other_repetitions),
		cmocka_unit_test(the_timers_of_each_node_count),
		cmocka_unit_test(a_ceiling_that_fell_is_noticed),
		cmocka_unit_test(a_cell_names_the_limits_of_its_programs),
		cmocka_unit_test(a_report_names_an_unstated_precision_once),
		cmocka_unit_test(a_report_names_unusable_samples_once),
		cmocka_unit_test(a_report_names_the_worst_run_of_each),
		cmocka_unit_test(a_report_says_what_was_no_sample),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: MIT */
/* The points of a workload: ranges, excluded combinations. */
#include "tests/unit/test.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "runner/spec/run_workload.h"

#define HEAD               \
	"name: w\n"        \
	"question: Why?\n" \
	"dataset: {dataset: imagenette}\n"

static void load(struct workload *w, const char *rest)
{
	struct err err = { 0 };
	char yaml[1000];

	snprintf(yaml, sizeof(yaml), HEAD "%s", rest);
	if (workload_parse(yaml, strlen(yaml), "w.yaml", w, &err) < 0)
		fail_msg("%s", err.text);
}

static void assert_range(const char *range, const char *wanted)
{
	char yaml[200], labels[400] = "";
	struct workload w;

	snprintf(yaml, sizeof(yaml), "axes: {fs.a: {%s}}\n", range);
	load(&w, yaml);
	for (size_t i = 0; i < w.axes[0].n_points; i++) {
		strcat(labels, i ? " " : "");
		strcat(labels, w.axes[0].points[i].label);
	}
	assert_string_equal(labels, wanted);
	workload_free(&w);
}

static void ranges_become_lists(void **state)
{
	(void)state;
	assert_range("from: 5%, to: 20%, step: 5%", "5% 10% 15% 20%");
	assert_range("from: 0.1, to: 0.45, step: 0.1", "0.1 0.2 0.3 0.4");
	assert_range("from: 1000.5, to: 1001, step: 0.25",
		     "1000.5 1000.75 1001");
	/* the bounds are as written, others have four digits */
	assert_range("from: 10%, to: 20.0%, count: 4",
		     "10% 13.33% 16.67% 20.0%");
	assert_range("from: 1, to: 64, step: 2, log: true", "1 2 4 8 16 32 64");
	assert_range("from: 1K, to: 1000K, count: 4, log: true",
		     "1K 10K 100K 1000K");
	/* whole numbers stay whole, and do not repeat */
	assert_range("from: 1, to: 4, count: 6", "1 2 3 4");
	assert_range("from: 1, to: 2, step: 0.5", "1 1.5 2");
	assert_range("from: 1.0, to: 2, count: 3", "1.0 1.5 2");
	assert_range("from: -2, to: 2, step: 2", "-2 0 2");
}

static void combinations_are_excluded(void **state)
{
	struct workload w;
	char label[40];

	(void)state;
	load(&w, "axes: {fs.p: [lru, minio], fs.c: [1, 2, 3]}\n"
		 "exclude: [{fs.p: lru, fs.c: [1, 3]}, {fs.c: 2, fs.p: "
		 "minio}]\n"
		 "repetitions: 2\n");
	assert_int_equal(w.n_points, 3);
	assert_int_equal(workload_n_cells(&w), 6);
	workload_label(&w, 0, label, sizeof(label));
	assert_string_equal(label, "lru, 2");
	workload_label(&w, 1, label, sizeof(label));
	assert_string_equal(label, "minio, 1");
	workload_label(&w, 2, label, sizeof(label));
	assert_string_equal(label, "minio, 3");
	assert_int_equal(workload_move(&w, 1, 1, 2), 2);
	assert_true(workload_move(&w, 0, 0, 1) == WORKLOAD_NO_POINT);
	assert_true(workload_move(&w, 1, 0, 0) == WORKLOAD_NO_POINT);
	workload_free(&w);
}

static void errors_say_where(void **state)
{
	static const struct {
		const char *yaml, *text;
	} bad[] = {
		{ "axes: {fs.a: {from: 1}}\n",
		  "w.yaml:4:14: a range has from and to" },
		{ "axes: {fs.a: {from: 1, to: 2}}\n",
		  "w.yaml:4:14: a range needs step or count" },
		{ "axes: {fs.a: {from: 1, to: 2, steps: 2}}\n",
		  "w.yaml:4:31: steps: a range has from, to, step, count and "
		  "log" },
		{ "axes: {fs.a: {from: 1, to: 2, step: 1, count: 2}}\n",
		  "w.yaml:4:14: step or count, not both" },
		{ "axes: {fs.a: {from: 2, to: 1, step: 1}}\n",
		  "w.yaml:4:28: to must be above from" },
		{ "axes: {fs.a: {from: 1K, to: 2M, step: 1K}}\n",
		  "w.yaml:4:29: from and to have different units" },
		{ "axes: {fs.a: {from: 1K, to: 2K, step: 1}}\n",
		  "w.yaml:4:39: step has another unit than from and to" },
		{ "axes: {fs.a: {from: x, to: 2, step: 1}}\n",
		  "w.yaml:4:21: 'x' is not a number with a unit" },
		{ "axes: {fs.a: {from: 0, to: 2, step: 2, log: true}}\n",
		  "w.yaml:4:21: with log, from must be above 0" },
		{ "axes: {fs.a: {from: 1, to: 2, step: 1, log: true}}\n",
		  "w.yaml:4:37: a factor above 1" },
		{ "axes: {fs.a: {from: 1, to: 2, count: 1}}\n",
		  "w.yaml:4:38: count is a number from 2 to 10000" },
		{ "axes: {n: {from: 1, to: 2, step: 1}}\n",
		  "w.yaml:4:8: n: a key is dataset, or starts with fs. train. "
		  "dataset. gpud. "
		  "prepd. s3. exec. or env., optionally after the name of a "
		  "mount or job" },
		{ "axes: {fs.a: [1]}\nexclude: {fs.a: 1}\n",
		  "w.yaml:5:10: exclude must be a sequence" },
		{ "axes: {fs.a: [1]}\nexclude: [{fs.b: 1}]\n",
		  "w.yaml:5:18: no axis 'fs.b'" },
		{ "axes: {fs.a: [1]}\nexclude: [{fs.a: 2}]\n",
		  "w.yaml:5:18: not a value of axis 'fs.a'" },
		{ "axes: {fs.a: [1]}\nexclude: [{}]\n",
		  "w.yaml:5:11: this excludes all points" },
		{ "axes: {fs.a: [1]}\nexclude: [{fs.a: 1}]\n",
		  "w.yaml:5:10: all points are excluded" },
	};
	struct workload w;
	struct err err;
	char yaml[500];

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
		err = (struct err){ 0 };
		snprintf(yaml, sizeof(yaml), HEAD "%s", bad[i].yaml);
		assert_int_equal(workload_parse(yaml, strlen(yaml), "w.yaml",
						&w, &err),
				 -EINVAL);
		assert_string_equal(err.text, bad[i].text);
		workload_free(&w);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(ranges_become_lists),
		cmocka_unit_test(combinations_are_excluded),
		cmocka_unit_test(errors_say_where),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

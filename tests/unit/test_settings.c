/* SPDX-License-Identifier: MIT */
/* What the programs of a cell are given, by the file and the point. */
#include "tests/unit/test.h"

#include <string.h>

#include "common/util.h"
#include "runner/spec/run_workload.h"

#define JOBS                                                        \
	"name: w\nquestion: Why?\ndataset: {dataset: imagenette}\n" \
	"base: {fs: {size: 1}, train: {batch: 4}, exec: {n: 1},"    \
	" environment: {V: 1}, gpud: {slots: 1},"                   \
	" prepd: {cores: 1, threads: 5}}\n"                         \
	"mounts: {a: {fs: {size: 5}}, b: {dataset: {files: 7}}}\n"  \
	"jobs: {one: {train: {batch: 8}}, two: {}}\n"               \
	"axes:\n"                                                   \
	"  p: [{label: x, exec.n: 2, env.V: 3, gpud.slots: 4,"      \
	" prepd.cores: 6, prepd.workers: 0},"                       \
	" {label: y}]\n"                                            \
	"  q: [{label: s, two.train.batch: 16, one.exec.n: 9},"     \
	" {label: t}]\n"                                            \
	"  train.epochs: [{label: few, train.epochs: 2}, 7]\n"

static void load_jobs(struct workload *w)
{
	struct err err = { 0 };

	if (workload_parse(JOBS, strlen(JOBS), "w.yaml", w, &err) < 0)
		fail_msg("%s", err.text);
}

/* Options as given to cells, of every program, for all and for one. */
static void a_setting_is_what_the_cell_is_given(void **state)
{
	static const struct {
		size_t point; /* x s few, x s 7, x t few, ... y t 7 */
		const char *name, *wanted;
	} cases[] = {
		{ 2, "exec.n", "2" },
		{ 6, "exec.n", "1" },
		{ 2, "env.V", "3" },
		{ 6, "env.V", "1" },
		{ 2, "gpud.slots", "4" },
		{ 6, "gpud.slots", "1" },
		{ 2, "prepd.cores", "6" },
		{ 6, "prepd.cores", "1" },
		{ 0, "one.exec.n", "9" },
		{ 0, "two.exec.n", "2" },
		{ 4, "two.exec.n", "1" },
		{ 0, "exec.n", NULL },
		{ 0, "two.train.batch", "16" },
		{ 2, "two.train.batch", "4" },
		{ 2, "one.train.batch", "8" },
		{ 2, "train.batch", NULL },
		{ 0, "a.fs.size", "5" },
		{ 0, "b.fs.size", "1" },
		{ 0, "fs.size", NULL },
		{ 0, "b.dataset.files", "7" },
		{ 0, "a.dataset.files", NULL },
		{ 0, "moon.fs.size", NULL },
		/* the value counts, not the label */
		{ 0, "train.epochs", "2" },
		{ 1, "train.epochs", "7" },
		{ 0, "p", "x" },
		{ 0, "gpud.nothing", NULL },
	};
	struct workload w;

	(void)state;
	load_jobs(&w);
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		const char *got =
			workload_setting(&w, cases[i].point, cases[i].name);

		if (!got != !cases[i].wanted ||
		    (got && strcmp(got, cases[i].wanted)))
			fail_msg("%zu %s: %s", cases[i].point, cases[i].name,
				 got ? got : "-");
	}
	assert_true(workload_decides(&w, 0, "gpud.slots"));
	assert_true(workload_decides(&w, 0, "one.exec.n"));
	assert_false(workload_decides(&w, 2, "exec.n"));
	workload_free(&w);
}

/* Nothing is left of the dataset that another replaces. */
static void a_whole_dataset_replaces_the_other(void **state)
{
	static const char text[] =
		"name: w\nquestion: Why?\n"
		"dataset: {dataset: imagenette, files: 5}\n"
		"axes: {q: [{label: s, dataset.classes: 3}],"
		" p: [{label: x, dataset: {dataset: coco}}, {label: y}]}\n";
	struct err err = { 0 };
	struct workload w;
	struct cell cell;

	(void)state;
	if (workload_parse(text, strlen(text), "w.yaml", &w, &err) < 0)
		fail_msg("%s", err.text);
	for (size_t i = 0; i < w.n_points; i++) {
		static const char *const keys[] = { "dataset", "files",
						    "classes" };

		assert_int_equal(workload_configure(&w, i, &cell), 0);
		for (size_t k = 0; k < ARRAY_SIZE(keys); k++) {
			char name[40];
			const char *got,
				*wanted = json_string_value(json_object_get(
					cell.mounts[0].dataset, keys[k]));

			snprintf(name, sizeof(name), "dataset.%s", keys[k]);
			got = workload_setting(&w, i, name);
			if (!got != !wanted || (got && strcmp(got, wanted)))
				fail_msg("%zu %s: %s, and not %s", i, name,
					 got ? got : "-",
					 wanted ? wanted : "-");
		}
		cell_free(&cell);
	}
	workload_free(&w);
}

static void a_cell_has_the_service_that_is_wanted(void **state)
{
	json_auto_t *options = NULL;
	struct workload w;
	struct cell cell;

	(void)state;
	load_jobs(&w);
	/* one without workers is none */
	assert_int_equal(workload_configure(&w, 0, &cell), 0);
	assert_null(cell.prepd);
	cell_free(&cell);
	assert_int_equal(workload_configure(&w, 6, &cell), 0);
	assert_int_equal(cell_prepd_workers(cell.prepd), 1);
	options = cell_options(RUN_PREPD, cell.prepd);
	/* workers are processes here, threads what that program calls so */
	assert_string_equal(
		json_string_value(json_object_get(options, "workers")), "5");
	assert_string_equal(
		json_string_value(json_object_get(options, "cores")), "1");
	assert_int_equal(json_object_size(options), 2);
	cell_free(&cell);
	workload_free(&w);
}

static void a_job_of_a_service_is_one_by_its_loader(void **state)
{
	static const struct {
		const char *loader, *command;
		bool wanted;
	} cases[] = {
		{ "service", NULL, true },  { "service:split=1", NULL, true },
		{ "async", NULL, false },   { "services", NULL, false },
		{ "service", "sh", false },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct cell_job job = {
			.train = json_pack("{s:s}", "loader", cases[i].loader),
			.exec = json_pack("{s:s*}", "command",
					  cases[i].command),
		};

		assert_int_equal(cell_has_service(&job), cases[i].wanted);
		json_decref(job.train);
		json_decref(job.exec);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_setting_is_what_the_cell_is_given),
		cmocka_unit_test(a_whole_dataset_replaces_the_other),
		cmocka_unit_test(a_cell_has_the_service_that_is_wanted),
		cmocka_unit_test(a_job_of_a_service_is_one_by_its_loader),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: MIT */
/* A workload file with what it extends, and what the command line overrides. */
#include "tests/unit/test.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "runner/spec/run_workload.h"

static char folder[] = "/tmp/extends.XXXXXX";

static void write_file(const char *path, const char *text)
{
	FILE *f = fopen(path, "w");

	assert_non_null(f);
	fputs(text, f);
	fclose(f);
}

static const char *const BASE =
	"name: base\n"
	"question: Why?\n"
	"dataset: {dir: photos}\n"
	"base:\n"
	"  fs: {storage: hdd, cache_size: 10%}\n"
	"  train: {epochs: 3}\n"
	"mounts:\n"
	"  a: {fs: {cache_policy: lru}, dataset: {dir: /abs}}\n"
	"  b: {dataset: {dir: films}}\n"
	"axes:\n"
	"  fs.group: [1, 2]\n"
	"  node: [{label: x, b.dataset.dir: clips}]\n"
	"metrics: {m: {path: a.b}, n: {path: c}}\n"
	"columns: [m, n]\n"
	"repetitions: 2\n";

static void load(const char *path, char *const *overrides, struct workload *w)
{
	struct err err = { 0 };

	if (workload_load(path, overrides, w, &err) < 0)
		fail_msg("%s", err.text);
}

static void assert_json(const json_t *j, const char *wanted)
{
	char *text = json_dumps(j, JSON_COMPACT);

	assert_string_equal(text, wanted);
	free(text);
}

static void keys_are_joined(void **state)
{
	struct workload w;
	struct cell c;

	(void)state;
	mkdir("sub", 0700);
	write_file("sub/base.yaml", BASE);
	write_file("w.yaml", "extends: sub/base.yaml\n"
			     "name: own\n"
			     "base: {fs: {cache_size: ~, read_ahead: on}}\n"
			     "mounts: {a: {fs: {tier: x}}}\n"
			     "axes: {train.batch: [1, 2, 3], fs.group: [4]}\n"
			     "metrics: {n: {of: 2 * m}}\n");
	load("w.yaml", NULL, &w);
	assert_string_equal(w.name, "own");
	assert_string_equal(w.question, "Why?");
	assert_int_equal(w.repetitions, 2);
	/* axes keep the order of the file that is extended */
	assert_int_equal(w.n_axes, 3);
	assert_string_equal(w.axes[0].name, "fs.group");
	assert_int_equal(w.axes[0].n_points, 1);
	assert_string_equal(w.axes[2].name, "train.batch");
	assert_int_equal(workload_configure(&w, 0, &c), 0);
	assert_json(c.mounts[0].fs,
		    "{\"storage\":\"hdd\",\"read_ahead\":\"on\","
		    "\"cache_policy\":\"lru\",\"tier\":\"x\",\"group\":\"4\"}");
	/* folders of data are seen from the file that names them */
	assert_json(c.mounts[0].dataset, "{\"dir\":\"/abs\"}");
	assert_json(c.mounts[1].dataset, "{\"dir\":\"sub/clips\"}");
	cell_free(&c);
	workload_free(&w);
}

static void values_are_seen_from_their_file(void **state)
{
	char *here = realpath(".", NULL), text[4200];
	struct workload w;
	struct cell c;

	(void)state;
	mkdir("sub", 0700);
	write_file("sub/base.yaml",
		   "question: ./Why?\n"
		   "dataset: {dir: ./clips}\n"
		   "base: {fs: {storage: ./s.yaml}, train: {model: r}}\n"
		   "axes: {train.gpu: [v100, ./g.yaml, .x/./y]}\n");
	write_file("w.yaml", "extends: ./sub/base.yaml\nname: own\n"
			     "base: {train: {prep_profile: ./p.yaml}}\n");
	load("w.yaml", NULL, &w);
	assert_int_equal(workload_configure(&w, 1, &c), 0);
	snprintf(text, sizeof(text), "{\"storage\":\"%s/sub/s.yaml\"}", here);
	assert_json(c.mounts[0].fs, text);
	snprintf(text, sizeof(text),
		 "{\"model\":\"r\",\"prep_profile\":\"%s/p.yaml\","
		 "\"gpu\":\"%s/sub/g.yaml\"}",
		 here, here);
	assert_json(c.jobs[0].train, text);
	assert_json(c.mounts[0].dataset, "{\"dir\":\"./sub/./clips\"}");
	assert_string_equal(w.axes[0].points[2].label, ".x/./y");
	cell_free(&c);
	workload_free(&w);
	free(here);
}

static void a_dataset_is_replaced(void **state)
{
	struct workload w;
	struct cell c;

	(void)state;
	write_file("c.yaml", "name: c\nquestion: q\ndataset: {dir: photos}\n");
	write_file("w.yaml", "extends: c.yaml\ndataset: {synth: imagenet}\n");
	load("w.yaml", NULL, &w);
	assert_int_equal(workload_configure(&w, 0, &c), 0);
	assert_json(c.mounts[0].dataset, "{\"synth\":\"imagenet\"}");
	cell_free(&c);
	workload_free(&w);
}

static void refuses(const char *path, char *const *overrides, const char *text)
{
	struct workload w;
	struct err err = { 0 };

	assert_int_equal(workload_load(path, overrides, &w, &err), -EINVAL);
	assert_string_equal(err.text, text);
	workload_free(&w);
}

static void errors_name_the_file(void **state)
{
	char name[20], text[40];

	(void)state;
	write_file("c.yaml", "name: c\nquestion: q\ndataset: {dir: x}\n"
			     "repetitions: none\n");
	write_file("w.yaml", "name: w\nextends: c.yaml\n");
	refuses("w.yaml", NULL,
		"c.yaml:4:14: repetitions: 'none' is not a non-negative "
		"integer");
	write_file("w.yaml", "name: w\nextends: c.yaml\nrepetitions: 0\n");
	refuses("w.yaml", NULL,
		"w.yaml:3:14: repetitions: 0 is outside 1..1000");
	write_file("c.yaml",
		   "name: c\nquestion: q\ndataset: {dir: x}\n"
		   "base: {fs: {}, sf: {}}\nexpect: [that: au < x]\n");
	write_file("w.yaml", "extends: c.yaml\n");
	refuses("w.yaml", NULL,
		"c.yaml:4:16: unknown key 'sf'; did you mean 'fs'?");
	write_file("w.yaml", "extends: c.yaml\nbase: {sf: ~}\n");
	refuses("w.yaml", NULL, "c.yaml:5:21: no metric, axis or setting 'x'");
	write_file("w.yaml", "extends: d.yaml\n");
	refuses("w.yaml", NULL,
		"w.yaml:1:10: extends d.yaml: No such file or directory");
	write_file("w.yaml", "extends: [c.yaml]\n");
	refuses("w.yaml", NULL, "w.yaml:1:10: extends is one file");
	write_file("w.yaml", "extends: a.yaml\n");
	write_file("a.yaml", "name: a\nextends: ./w.yaml\n");
	refuses("w.yaml", NULL,
		"a.yaml:2:10: a circle: ./w.yaml extends this file");
	for (int i = 0; i < 10; i++) {
		snprintf(name, sizeof(name), "%d.yaml", i);
		snprintf(text, sizeof(text), "extends: %d.yaml\n", i + 1);
		write_file(name, text);
	}
	refuses("0.yaml", NULL,
		"8.yaml:1:10: more than 8 files extend each other");
}

static void overrides_set_keys(void **state)
{
	char *const overrides[] = { (char *)"repetitions=5",
				    (char *)"fs.cache_size=30%",
				    (char *)"base.train={epochs: 7}",
				    (char *)"mounts.a.fs.cache_policy=minio",
				    (char *)"axes.fs.group=[7, 8]",
				    (char *)"axes.node=~",
				    (char *)"columns=~",
				    (char *)"env.X=a=b",
				    NULL };
	struct workload w;
	struct cell c;

	(void)state;
	write_file("base.yaml", BASE);
	load("base.yaml", overrides, &w);
	assert_int_equal(w.repetitions, 5);
	assert_int_equal(w.columns.n, 0);
	assert_int_equal(w.n_points, 2);
	assert_int_equal(workload_configure(&w, 1, &c), 0);
	assert_json(c.mounts[0].fs,
		    "{\"storage\":\"hdd\",\"cache_size\":\"30%\","
		    "\"cache_policy\":\"minio\",\"group\":\"8\"}");
	assert_json(c.jobs[0].train, "{\"epochs\":\"7\"}");
	assert_json(c.jobs[0].env, "{\"X\":\"a=b\"}");
	cell_free(&c);
	assert_int_equal(json_array_size(w.overrides), 8);
	workload_free(&w);
}

static void wrong_overrides_say_where(void **state)
{
	static const struct {
		const char *key, *text;
	} bad[] = {
		{ "repetitions=none",
		  "repetitions=none:1:13: repetitions: 'none' is not a "
		  "non-negative integer" },
		{ "sede=1",
		  "sede=1:1:1: unknown key 'sede'; did you mean 'seed'?" },
		{ "axes.fs.group=[1, 1]",
		  "axes.fs.group=[1, 1]:1:19: '1' twice" },
		{ "axes.fs.group=[1",
		  "axes.fs.group=[1:2:1: did not find expected ',' or ']'" },
		{ "repetitions=", "repetitions=:1:1: not KEY=VALUE" },
		{ "=1", "=1:1:1: not KEY=VALUE" },
		{ "fs.=1", "fs.=1:1:1: not KEY=VALUE" },
		{ "repetitions.x=1", "repetitions.x=1:1:1: 'repetitions' is "
				     "not a mapping: give it "
				     "as a whole" },
		{ "fs.group=3",
		  "fs.group=3:1:1: axis 'fs.group' sets this in every cell: "
		  "override axes.fs.group" },
	};

	(void)state;
	write_file("base.yaml", BASE);
	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++)
		refuses("base.yaml",
			(char *const[]){ (char *)bad[i].key, NULL },
			bad[i].text);
}

static int in_folder(void **state)
{
	(void)state;
	return mkdtemp(folder) ? chdir(folder) : -1;
}

static int remove_folder(void **state)
{
	char command[60];

	(void)state;
	snprintf(command, sizeof(command), "rm -r %s", folder);
	return chdir("/") < 0 ? -1 : system(command);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(keys_are_joined),
		cmocka_unit_test(values_are_seen_from_their_file),
		cmocka_unit_test(a_dataset_is_replaced),
		cmocka_unit_test(errors_name_the_file),
		cmocka_unit_test(overrides_set_keys),
		cmocka_unit_test(wrong_overrides_say_where),
	};

	return cmocka_run_group_tests(tests, in_folder, remove_folder);
}

/* SPDX-License-Identifier: MIT */
/* The rules of MLPerf Storage on invented records. */
#include "tests/unit/test.h"

#include <string.h>

#include "runner/page/run_rules.h"

#define YAML "name: w\nquestion: q\ndataset: {files: 1}\nrules: {au: 90%}\n"

#define DATA "'dataset': {'bytes': 1000}"
#define CACHE(n) "{'policy': 'lru', 'capacity_bytes': " #n "}"

/* What rule `which` finds in a record, with ' in place of ". */
static struct rule found(const char *quoted, int which)
{
	struct workload w;
	struct runner r = { .w = &w, .mounted = true };
	struct result res = { .r = &r };
	struct err err = { 0 };
	struct rules rules;
	char text[1000];
	json_t *record;

	strcpy(text, quoted);
	for (char *at = text; (at = strchr(at, '\''));)
		*at = '"';
	record = json_loads(text, 0, NULL);
	assert_non_null(record);
	assert_int_equal(workload_parse(YAML, strlen(YAML), "w.yaml", &w, &err),
			 0);
	res.records = json_pack("[o]", record);
	rules_of(&rules, &res);
	json_decref(res.records);
	workload_free(&w);
	return rules.rule[which];
}

/* The dataset, in sizes of the cache; 5: enough, or there is no cache. */
static double size_of(const char *quoted)
{
	struct rule r = found(quoted, RULE_SIZE);

	assert_int_equal(r.n_broken, r.worst < 5);
	return r.worst;
}

#define ONE "'cell': {'jobs': {'train': {'mount': 'data'}}}, " DATA

static void the_cache_is_that_of_the_mount(void **state)
{
	(void)state;
	assert_true(size_of("{" ONE ", 'mount': " CACHE(250) "}") == 4);
	assert_true(size_of("{" ONE ", 'mount': " CACHE(0) "}") == 5);
	assert_true(size_of("{" ONE ", 'mount': {'policy': 'none', "
			    "'capacity_bytes': 250}}") == 5);
}

static void nodes_have_a_cache_each(void **state)
{
	(void)state;
	assert_true(
		size_of("{'cell': {'jobs': {'train': {'mount': 'data-0'}}},"
			"'nodes': [{}, {}], " DATA
			", 'mount': {'hits': 1}, 'mounts': {'data-0': " CACHE(
				250) ", 'data-1': " CACHE(250) "}}") == 2);
}

static void a_job_has_the_cache_of_its_mount(void **state)
{
	(void)state;
	assert_true(size_of("{'cell': {'jobs': {'a': {'mount': 'x'}, 'b': "
			    "{'mount': 'y'}}}, 'jobs': {'a': {" DATA
			    "}, 'b': {" DATA "}}, 'mount': null, 'mounts': "
			    "{'x': " CACHE(100) ", 'y': " CACHE(500) "}}") ==
		    2);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_cache_is_that_of_the_mount),
		cmocka_unit_test(nodes_have_a_cache_each),
		cmocka_unit_test(a_job_has_the_cache_of_its_mount),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

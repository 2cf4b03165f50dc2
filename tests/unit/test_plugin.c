/* SPDX-License-Identifier: MIT */
/* A plug-in and its options as a user writes them; the contract of every
 * plug-in. */
#include "tests/unit/test.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/conf/plugin_choice.h"
#include "common/conf/part.h"
#include "common/program/cli.h"
#include "common/util.h"
#include "fs/cache/policy.h"
#include "loader/batching/batching.h"
#include "loader/dataset/format.h"
#include "loader/engine/engine.h"
#include "loader/order/order.h"
#include "loader/prep/prep.h"
#include "share/scheduler/scheduler.h"

struct options {
	double share;
	uint64_t n;
	char *words;
	bool flag;
};

#define FIELD(key, type) #key, type, offsetof(struct options, key)

static const struct conf_field fields[] = {
	{ FIELD(share, CONF_DOUBLE), .max = 1, .help = "a share" },
	{ FIELD(n, CONF_UINT), .min = 1, .max = 9, .help = "a number" },
	{ FIELD(words, CONF_STRING), .help = "some words" },
	{ FIELD(flag, CONF_BOOL), .help = "a flag" },
	{ 0 },
};

static const struct options defaults = { .share = .25,
					 .n = 3,
					 .words = (char *)"a,b" };
static const struct plugin some = { .name = "some_one",
				    .summary = "with options",
				    PLUGIN_OPTIONS(fields, defaults) };
static const struct plugin bare = { .name = "bare", .summary = "without" };
static const struct plugin *const table[] = { &some, &bare, NULL };

static void becomes(const char *text, const char *want)
{
	_cleanup_(plugin_choice_fini) struct plugin_choice c = { 0 };
	_cleanup_free_ char *back = NULL;
	struct err err = { 0 };

	if (plugin_choose(table, "kind", text, &c, &err) < 0)
		fail_msg("%s: %s", text, err.text);
	back = plugin_choice_text(c.plugin, c.options);
	assert_string_equal(back, want);
}

static void a_choice_reads_back(void **state)
{
	(void)state;
	becomes("bare", "bare");
	becomes("bare:", "bare");
	becomes("some_one", "some_one");
	becomes("some-one:", "some_one");
	becomes("some-one:n=3,share=0.25", "some_one");
	becomes("some_one:n=4,share=0.5", "some_one:share=0.5,n=4");
	/* a part without '=' continues the value */
	becomes("some_one:words=x,y,z,flag=on", "some_one:words=x,y,z,flag=on");
	becomes("some_one:words=x=y", "some_one:words=x=y");
}

static void refused(const char *text, const char *why)
{
	_cleanup_(plugin_choice_fini) struct plugin_choice c = { 0 };
	struct err err = { 0 };

	assert_int_equal(plugin_choose(table, "kind", text, &c, &err), -EINVAL);
	assert_string_equal(err.text, why);
}

static void an_error_names_plugin_and_option(void **state)
{
	(void)state;
	refused("none", "unknown kind 'none' (known: some_one bare)");
	refused("bare:n=1", "kind bare: unknown option 'n' (it has none)");
	refused("some_one:m=1", "kind some_one: unknown option 'm' (known: "
				"share n words flag)");
	refused("some_one:n=10", "kind some_one: n: 10 is outside 1..9");
	refused("some_one:share=x",
		"kind some_one: share: 'x' is not a number");
	refused("some_one:n=1,n=2", "kind some_one: n is given twice");
	refused("some_one:n", "kind some_one: n has no value");
}

static void a_list_is_cut_between_choices(void **state)
{
	static const char list[] = "a,b:x=1,y=2,c,d:z=3";

	(void)state;
	assert_int_equal(plugin_choice_length(list), 1);
	assert_int_equal(plugin_choice_length(list + 2), 9);
	assert_int_equal(plugin_choice_length(list + 12), 1);
	assert_int_equal(plugin_choice_length(list + 14), 5);
}

static void is_knows_names_with_options(void **state)
{
	(void)state;
	assert_true(plugin_is("some-one:n=1", "some_one"));
	assert_true(plugin_is("bare", "bare"));
	assert_false(plugin_is("bare2", "bare"));
	assert_false(plugin_is("bar", "bare"));
}

/* Each field has its help, and its default is within its bounds. */
static void last_is_the_choice_at_the_end(void **state)
{
	(void)state;
	assert_int_equal(plugin_last("bare"), 0);
	assert_int_equal(plugin_last("bare:n=1"), 0);
	assert_int_equal(plugin_last("n=1"), 0);
	assert_int_equal(plugin_last("disk:bare"), 5);
	assert_int_equal(plugin_last(":bare:n=1"), 1);
	assert_int_equal(plugin_last("a:b=c:bare:n=1,bare:n=2"), 6);
}

static void check_fields(const struct plugin *p)
{
	_cleanup_free_ void *copy = calloc(1, p->options_size);
	json_auto_t *usual = conf_json(p->options, p->defaults);

	for (const struct conf_field *f = p->options; f->key; f++) {
		json_t *v = json_object_get(usual, f->key);
		_cleanup_free_ char *text = json_dumps(v, JSON_ENCODE_ANY);
		struct err err = { 0 };
		char *value = json_is_string(v) ? (char *)json_string_value(v)
						: text;

		assert_non_null(f->help);
		assert_null(strpbrk(f->key, ":=,- "));
		if (conf_set(f, copy, value, &err) < 0)
			fail_msg("%s: %s: %s", p->name, f->key, err.text);
	}
	conf_free(p->options, copy);
}

static void every_plugin_keeps_the_contract(void **state)
{
	const struct plugin *const *const all[] = {
		policy_table, engine_table, order_table,    batching_table,
		format_table, prep_table,   scheduler_table
	};
	size_t n = 0;

	(void)state;
	for (size_t k = 0; k < ARRAY_SIZE(all); k++)
		for (size_t i = 0; all[k][i]; i++) {
			const struct plugin *p = all[k][i];

			assert_null(strpbrk(p->name, ":=,- "));
			assert_int_equal(!p->options, !p->defaults);
			assert_int_equal(!p->options, !p->options_size);
			if (p->options)
				check_fields(p);
			n += p->options != NULL;
		}
	assert_true(n > 0);
}

/* Only options may name a file (common/conf/part.h): a name may come from a
 * peer. */
static void no_file_is_opened_unasked(void **state)
{
	struct err err = { 0 };

	(void)state;
	assert_null(plugin_find(policy_table, "policy", "./x.so", &err));
	assert_non_null(strstr(err.text, "unknown policy './x.so'"));
	part_files_allow(true);
	err.text[0] = 0;
	assert_null(plugin_find(policy_table, "policy", "./x.so", &err));
	part_files_allow(false);
	assert_non_null(strstr(err.text, "cannot open shared object file"));
	err.text[0] = 0;
	assert_null(plugin_find(policy_table, "policy", "./x.so", &err));
	assert_string_equal(err.text, "./x.so: not a name");
}

static void *of_a_client(void *err)
{
	assert_null(plugin_find(policy_table, "policy", "./x.so", err));
	return NULL;
}

static void another_thread_opens_no_file(void **state)
{
	struct err err = { 0 };
	pthread_t thread;

	(void)state;
	part_files_allow(true);
	assert_int_equal(pthread_create(&thread, NULL, of_a_client, &err), 0);
	pthread_join(thread, NULL);
	part_files_allow(false);
	assert_string_equal(err.text, "./x.so: not a name");
}

struct reloaded {
	struct cli_common common;
	char *policy;
};

static int check_policy(const void *text, struct err *err)
{
	return plugin_choice_check(policy_table, "policy", text, err);
}

/* The configuration of a mount may be another user's. */
static void a_configuration_opens_files_if_it_may(void **state)
{
	static const struct conf_field with_policy[] = {
		{ "policy", CONF_STRING, offsetof(struct reloaded, policy),
		  .check = check_policy },
		CLI_COMMON_FIELDS(struct reloaded, common),
		{ 0 },
	};
	const struct cli_program program = { .name = "t",
					     .fields = with_policy };
	char name[] = "t", *argv[] = { name, NULL };
	char path[] = "/tmp/gpemu-plugin-XXXXXX";
	int fd = mkstemp(path);

	(void)state;
	assert_int_equal(write(fd, "policy: ./x.so\n", 15), 15);
	close(fd);
	for (int parts = 0; parts < 2; parts++) {
		struct reloaded o = { .common.config = strdup(path) };
		struct err err = { 0 };

		assert_true(cli_reload(&program, parts, 1, argv, &o, &err) < 0);
		assert_non_null(strstr(err.text, parts ? "cannot open shared"
						       : "not a name"));
		conf_free(with_policy, &o);
	}
	unlink(path);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(no_file_is_opened_unasked),
		cmocka_unit_test(another_thread_opens_no_file),
		cmocka_unit_test(a_configuration_opens_files_if_it_may),
		cmocka_unit_test(a_choice_reads_back),
		cmocka_unit_test(an_error_names_plugin_and_option),
		cmocka_unit_test(a_list_is_cut_between_choices),
		cmocka_unit_test(is_knows_names_with_options),
		cmocka_unit_test(last_is_the_choice_at_the_end),
		cmocka_unit_test(every_plugin_keeps_the_contract),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

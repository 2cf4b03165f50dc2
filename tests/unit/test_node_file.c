/* SPDX-License-Identifier: MIT */
#include "tests/unit/test.h"

#include <errno.h>
#include <string.h>

#include "common/units.h"
#include "platform/node.h"

static int parse(const char *yaml, struct node *n, struct err *err)
{
	*err = (struct err){ 0 };
	return node_parse(yaml, strlen(yaml), "n.yaml", n, err);
}

static void defaults_and_what_follows_from_them(void **state)
{
	struct err err;
	struct node n;
	const struct node_kind *k;

	(void)state;
	assert_int_equal(parse("gpus:\n"
			       "  v100: {count: 2, server: /run/v/s, numa: 1}\n"
			       "  big:\n"
			       "    profile: v100\n"
			       "    count: 2\n"
			       "    server: /run/b/s\n"
			       "    numa: [3, 4]\n"
			       "    replicas: 3\n"
			       "    resource: lab.org/big\n"
			       "  mem:\n"
			       "    {profile: v100, count: 1, server: /s, "
			       "slice: 5G}\n",
			       &n, &err),
			 0);
	assert_int_equal(n.gpus.n, 3);
	k = node_kind(&n, 0);
	assert_string_equal(k->profile, "v100");
	assert_string_equal(k->resource, "gpemu.io/v100");
	assert_int_equal(k->n_slices, 1);
	assert_true(node_slice_bytes(k) == k->memory_bytes);
	assert_int_equal(node_numa(k, 0), 1);
	assert_int_equal(node_numa(k, 1), 1);
	k = node_kind(&n, 1);
	assert_string_equal(k->resource, "lab.org/big");
	assert_int_equal(node_numa(k, 1), 4);
	assert_int_equal(k->n_slices, 3);
	assert_true(node_slice_bytes(k) == k->memory_bytes / 3);
	k = node_kind(&n, 2);
	assert_int_equal(node_numa(k, 0), -1);
	assert_int_equal(k->n_slices, k->memory_bytes / (5 * GIB));
	assert_true(node_slice_bytes(k) == 5 * GIB);
	node_free(&n);
}

static void errors_have_their_place(void **state)
{
	static const struct {
		const char *yaml, *text;
	} bad[] = {
		{ "", "n.yaml:1:1: 'gpus' is missing" },
		{ "gpus: {}", "n.yaml:1:7: no GPUs" },
		{ "gpus:\n  V100: {count: 1, server: /s}",
		  "n.yaml:2:9: 'V100': a name is" },
		{ "gpus:\n  v100: {count: 0, server: /s}",
		  "n.yaml:2:17: coun" },
		{ "gpus:\n  v100: {count: 1, server: s}",
		  "n.yaml:2:28: server: 's' is not an absolute path" },
		{ "gpus:\n  v100: {count: 1}", "n.yaml:2:9: 'server' is miss" },
		{ "gpus:\n  x1: {count: 1, server: /s}", "n.yaml:2:7: " },
		{ "gpus:\n  v100: {count: 1, server: /s, profile: no-such}",
		  "n.yaml:2:41: profile: " },
		{ "gpus:\n  v100: {count: 1, server: /s, size: 3}",
		  "n.yaml:2:32: unknown key 'size'" },
		{ "gpus:\n  v100: {count: 1, server: /s, resource: v100}",
		  "n.yaml:2:42: resource: 'v100' is not of the form" },
		{ "gpus:\n  v100: {count: 1, server: /s, resource: a b/c}",
		  "n.yaml:2:42: resource: 'a b/c' is not of the form" },
		{ "gpus:\n  v100: {count: 1, server: /s, resource: a.b/c/d}",
		  "n.yaml:2:42: resource: 'a.b/c/d' is not of the form" },
		{ "gpus:\n  v100: {count: 1, server: /s, env: [=x]}",
		  "n.yaml:2:" },
		{ "gpus:\n  v100: {count: 3, server: /s, numa: [0, 1]}",
		  "n.yaml:2:9: numa: 2 nodes for 3 GPUs" },
		{ "gpus:\n  v100: {count: 1, server: /s, replicas: 2, "
		  "slice: 1G}",
		  "n.yaml:2:9: either replicas or slice" },
		{ "gpus:\n  v100: {count: 1, server: /s, slice: 1T}",
		  "n.yaml:2:9: slice: 0 of them fit" },
		{ "gpus:\n  v100: {count: 64, server: /s, replicas: 65}",
		  "n.yaml:2:9: gpemu.io/v100: more than 4096 devices" },
		{ "gpus:\n  v100: {count: 1, server: /s}\n"
		  "  a100: {count: 1, server: /s}",
		  "n.yaml:3:9: v100 and a100 have one server" },
		{ "gpus:\n  v100: {count: 1, server: /s}\n"
		  "  a100: {count: 1, server: /t, replicas: 2,\n"
		  "    resource: gpemu.io/v100}",
		  "n.yaml:3:9: v100 and a100 are one resource" },
		{ "gpus:\n  v100: {count: 1, server: /s}\n"
		  "  v100: {count: 1, server: /t}",
		  "n.yaml:3:3: " },
	};
	struct err err;
	struct node n;

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		assert_int_equal(parse(bad[i].yaml, &n, &err), -EINVAL);
		node_free(&n);
		if (strncmp(err.text, bad[i].text, strlen(bad[i].text)) != 0)
			fail_msg("'%s', not '%s'", err.text, bad[i].text);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(defaults_and_what_follows_from_them),
		cmocka_unit_test(errors_have_their_place),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

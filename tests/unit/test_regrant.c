/* SPDX-License-Identifier: MIT */
/* Grants of several GPUs, from a server in a thread of its own. */
#include "tests/unit/test.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/units.h"
#include "common/util.h"
#include "emu/gpu/gpud_client.h"
#include "emu/gpu/gpud_query.h"
#include "share/server.h"

extern const struct scheduler_ops scheduler_fair;

static void *serve(void *server)
{
	struct err err = { 0 };

	return server_run(server, &err) < 0 ? server : NULL;
}

/* The part of each GPU's time that is granted is so many thousandths. */
static void assert_parts(const char *path, int first, int second)
{
	struct err err = { 0 };
	json_t *j;
	int part[2];

	if (gpud_query(path, NULL, GPUD_PATIENCE_S, &j, &err) < 0)
		fail_msg("%s", err.text);
	assert_int_equal(json_unpack(j, "{s:[{s:i}, {s:i}]}", "gpus",
				     "part_milli", &part[0], "part_milli",
				     &part[1]),
			 0);
	json_decref(j);
	assert_int_equal(part[0], first);
	assert_int_equal(part[1], second);
}

static void check(const char *path)
{
	struct gpud_grant other = {
		.name = "other", .gpu = 1, .bytes = MIB, .part_milli = 600
	};
	struct gpud_grant both[] = {
		{ .name = "both", .bytes = MIB, .part_milli = 500 },
		{ .name = "both", .gpu = 1, .bytes = MIB, .part_milli = 500 },
	};
	_cleanup_free_ char *folder = gpud_grant_folder(path, "both");
	struct err err = { 0 };

	assert_int_equal(gpud_regrant(path, "other", &other, 1, &err), 0);
	assert_int_equal(gpud_regrant(path, "both", both, 2, &err), -ENOSPC);
	assert_non_null(strstr(err.text, "GPU 1"));
	/* all of them, or none */
	assert_parts(path, 0, 600);
	assert_int_not_equal(access(folder, F_OK), 0);
	both[1].part_milli = 400;
	assert_int_equal(gpud_regrant(path, "both", both, 2, &err), 0);
	assert_parts(path, 500, 1000);
	assert_int_equal(gpud_regrant(path, "both", NULL, 0, &err), 0);
	assert_int_equal(gpud_regrant(path, "other", NULL, 0, &err), 0);
	assert_parts(path, 0, 0);
}

static void several_grants_or_none(void **state)
{
	char folder[] = "/tmp/gpemu-regrant-XXXXXX", path[64], made[80];
	struct gpu_profile gpu = { 0 };
	struct server_config c = { .path = path,
				   .mode = 0600,
				   .max_clients = 8,
				   .max_per_user = 8,
				   .time_scale = 1,
				   .profile = "v100",
				   .gpu = &gpu,
				   .scheduler = "fair",
				   .slicing = { .reason = "a test" },
				   .share = { .scheduler = &scheduler_fair,
					      .n_gpus = 2 } };
	struct err err = { 0 };
	struct server s;
	pthread_t thread;
	void *failed;

	(void)state;
	assert_non_null(mkdtemp(folder));
	snprintf(path, sizeof(path), "%s/s", folder);
	snprintf(made, sizeof(made), "%s.d", path);
	assert_int_equal(gpu_profile_load("v100", &gpu, &err), 0);
	if (server_init(&s, &c, &err) < 0)
		fail_msg("%s", err.text);
	assert_int_equal(pthread_create(&thread, NULL, serve, &s), 0);
	check(path);
	kill(getpid(), SIGTERM); /* blocked: the server reads it */
	assert_int_equal(pthread_join(thread, &failed), 0);
	assert_null(failed);
	server_fini(&s);
	gpu_profile_free(&gpu);
	assert_int_equal(rmdir(made), 0);
	assert_int_equal(rmdir(folder), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(several_grants_or_none),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

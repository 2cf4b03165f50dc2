/* SPDX-License-Identifier: MIT */
/* libgpemu through its public header, against the shared library. */
#include "tests/contract/lib_rig.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void test_epochs(void **state)
{
	static const char *const options[][4] = {
		{ "loader=sync", "epochs=2" },
		{ "loader=threads", "epochs=2", "pin=on" },
		{ "epochs=2", "order=sequential" },
		{ "epochs=2", "superbatch=3", "queue_depth=6" },
	};
	static const struct gpemu_engine *const engine[] = { NULL, NULL,
							     &lib_engine_one,
							     &lib_engine_many };

	(void)state;
	for (unsigned i = 0; i < 4; i++) {
		struct gpemu *g = lib_open(engine[i], options[i]);

		lib_whole_epoch(g, 0);
		lib_whole_epoch(g, 1);
		assert_int_equal(gpemu_begin_epoch(g, NULL), 0);
		assert_int_equal(gpemu_close(g), 0);
	}
}

/* --- options -------------------------------------------------------------- */

static void test_options(void **state)
{
	char path[96], config[120];
	const char *const more[] = { config, "batch=13", NULL };
	struct gpemu *g;
	FILE *f;

	(void)state;
	lib_no_open(NULL, "bach=4", -EINVAL, "bach=4: unknown option");
	lib_no_open(NULL, "drop_last", -EINVAL, "drop_last: not of the form");
	lib_no_open(NULL, "progress=on", -EINVAL, "unknown option");
	lib_no_open(NULL, "nodes=2", -EINVAL, "unknown option");
	lib_no_open(NULL, "mpi=on", -EINVAL, "unknown option");
	lib_no_open(NULL, "simulate=on", -EINVAL, "unknown option");
	lib_no_open(NULL, "json=-", -EINVAL, "unknown option");
	lib_no_open(NULL, "batch=many", -EINVAL, "batch: ");
	lib_no_open(NULL, "loader=none", -EINVAL, "unknown engine");
	lib_no_open(NULL, "gpu=abacus", -ENOENT, "abacus");
	lib_no_open(NULL, "data=/nonexistent", -ENOENT, "/nonexistent");
	lib_no_open(NULL, "config=/nonexistent", -ENOENT, "/nonexistent");
	snprintf(path, sizeof(path), "%s.yaml", lib_dir);
	snprintf(config, sizeof(config), "config=%s", path);
	f = fopen(path, "we");
	fputs("batch: 2\ndrop_last: on\nbad: 1\n", f);
	fclose(f);
	lib_no_open(NULL, config, -EINVAL, ".yaml:3:1: ");
	f = fopen(path, "we");
	fputs("batch: 2\nepochs: 3\n", f);
	fclose(f);
	/* an option given as well overrides it */
	g = lib_open(NULL, more);
	unlink(path);
	for (int i = 0; i < 3; i++) {
		const struct gpemu_batch *b;

		assert_int_equal(gpemu_begin_epoch(g, NULL), 1);
		assert_int_equal(gpemu_next(g, &b), 1);
		assert_int_equal(b->n, 13);
		assert_int_equal(gpemu_end_epoch(g, NULL), 0);
	}
	assert_int_equal(gpemu_begin_epoch(g, NULL), 0);
	gpemu_close(g);
}

/* --- order of calls ------------------------------------------------------- */

static void test_misuse(void **state)
{
	const struct gpemu_batch *b, *other;
	struct gpemu_batch fake = { 0 };
	struct gpemu *g = lib_open(NULL, NULL);
	char *record;

	(void)state;
	assert_string_equal(gpemu_error(g), "");
	assert_int_equal(gpemu_next(g, &b), -EINVAL);
	assert_int_equal(gpemu_end_epoch(g, NULL), -EINVAL);
	assert_int_equal(gpemu_begin_epoch(g, NULL), 1);
	assert_int_equal(gpemu_begin_epoch(g, NULL), -EBUSY);
	assert_int_equal(gpemu_record(g, &record), -EBUSY);
	assert_int_equal(gpemu_next(g, &b), 1);
	assert_int_equal(gpemu_next(g, &other), -EBUSY);
	assert_non_null(strstr(gpemu_error(g), "held"));
	assert_int_equal(gpemu_submit(g, &fake, NULL), -EINVAL);
	assert_int_equal(gpemu_submit(g, b, NULL), 0);
	assert_int_equal(gpemu_submit(g, b, NULL), -EINVAL);
	assert_int_equal(gpemu_release(g, b), -EINVAL);
	/* closed with a batch in hand */
	assert_int_equal(gpemu_next(g, &b), 1);
	assert_int_equal(gpemu_close(g), 0);
	assert_int_equal(gpemu_close(NULL), 0);
}

/* An epoch of which `steps` batches are trained on and `released` are not. */
static void some_of_it(struct gpemu *g, unsigned steps, unsigned released,
		       int last)
{
	const struct gpemu_batch *b;
	struct gpemu_epoch e;

	assert_int_equal(gpemu_begin_epoch(g, NULL), 1);
	for (unsigned i = 0; i < steps; i++) {
		assert_int_equal(gpemu_next(g, &b), 1);
		assert_int_equal(gpemu_submit(g, b, NULL), 0);
	}
	for (unsigned i = 0; i < released; i++) {
		assert_int_equal(gpemu_next(g, &b), 1);
		assert_int_equal(gpemu_release(g, b), 0);
	}
	assert_int_equal(gpemu_next(g, &b), last);
	assert_int_equal(gpemu_end_epoch(g, &e), 0);
	assert_int_equal(e.steps, steps);
}

static void test_cut_short(void **state)
{
	static const char *const pin[] = { "pin=off", "pin=on" };

	(void)state;
	for (unsigned i = 0; i < 2; i++) {
		const char *const more[] = { "epochs=5", pin[i], "loader=sync",
					     NULL };
		struct gpemu *g = lib_open(NULL, more);

		some_of_it(g, 2, 0, 1); /* one is held at the end */
		lib_whole_epoch(g, 1);
		some_of_it(g, 3, 4, 0); /* all batches were taken */
		some_of_it(g, 0, 1, 1);
		lib_whole_epoch(g, 4);
		assert_int_equal(gpemu_begin_epoch(g, NULL), 0);
		gpemu_close(g);
	}
}

static void test_several_gpus(void **state)
{
	static const char *const more[] = { "gpus=3", "loader=null",
					    "samples=24", NULL };
	struct gpemu *g = lib_open(NULL, more);
	const struct gpemu_batch *b;
	struct gpemu_epoch e;

	(void)state;
	assert_int_equal(gpemu_begin_epoch(g, NULL), 1);
	while (gpemu_next(g, &b) == 1)
		assert_int_equal(gpemu_submit(g, b, NULL), 0);
	assert_int_equal(gpemu_end_epoch(g, &e), 0);
	assert_int_equal(e.steps, 2);
	/* of one, not of all */
	assert_true(e.compute_ns > 0);
	assert_true(e.compute_ns + e.data_wait_ns + e.transfer_stall_ns <=
		    e.elapsed_ns);
	gpemu_close(g);
}

/* The last step of an epoch has a batch for the first GPU only. */
static void test_step_in_part(void **state)
{
	static const char *const more[] = { "gpus=3", "loader=null", "epochs=2",
					    "samples=24", NULL };
	struct gpemu *g = lib_open(NULL, more);

	(void)state;
	for (unsigned released = 2; released-- > 0;) {
		const struct gpemu_batch *b;
		struct gpemu_epoch e;

		assert_int_equal(gpemu_begin_epoch(g, NULL), 1);
		for (unsigned i = 0; i < 4; i++) {
			assert_int_equal(gpemu_next(g, &b), 1);
			assert_int_equal(gpemu_submit(g, b, NULL), 0);
		}
		for (unsigned i = 0; i < 2 * released; i++) {
			assert_int_equal(gpemu_next(g, &b), 1);
			assert_int_equal(gpemu_release(g, b), 0);
		}
		assert_int_equal(gpemu_end_epoch(g, &e), 0);
		assert_int_equal(e.steps, 2);
		assert_int_equal(e.samples, 16);
	}
	gpemu_close(g);
}

static void test_max_steps(void **state)
{
	static const char *const more[] = { "epochs=5", "max_steps=9", NULL };
	struct gpemu *g = lib_open(NULL, more);

	(void)state;
	lib_whole_epoch(g, 0);
	some_of_it(g, 2, 0, 0);
	assert_int_equal(gpemu_begin_epoch(g, NULL), 0);
	gpemu_close(g);
}

static void test_record(void **state)
{
	static const char *const more[] = { "gpu=a100", NULL };
	struct gpemu *g = lib_open(&lib_engine_one, more);
	char *record;

	(void)state;
	lib_whole_epoch(g, 0);
	assert_int_equal(gpemu_record(g, &record), 0);
	assert_non_null(strstr(record, "\"libgpemu\",\n    \"data="));
	assert_non_null(strstr(record, "\"loader\": \"one\""));
	assert_non_null(strstr(record, "\"steps\": 7"));
	assert_non_null(strstr(record, "\"interrupted\": false"));
	free(record);
	gpemu_close(g);
}

/* --- interrupting --------------------------------------------------------- */

static void *interrupter(void *arg)
{
	usleep(20000);
	gpemu_interrupt(arg);
	return NULL;
}

static void test_interrupt(void **state)
{
	static const char *const more[] = { "epochs=100000", NULL };
	struct gpemu *g = lib_open(&lib_engine_many, more);
	const struct gpemu_batch *b;
	pthread_t thread;
	int r = 0, end = 0;

	(void)state;
	pthread_create(&thread, NULL, interrupter, g);
	while (end == 0) {
		assert_int_equal(gpemu_begin_epoch(g, NULL), 1);
		while ((r = gpemu_next(g, &b)) > 0)
			assert_int_equal(gpemu_submit(g, b, NULL), 0);
		end = gpemu_end_epoch(g, NULL);
		assert_int_equal(end, r);
	}
	pthread_join(thread, NULL);
	assert_int_equal(end, -ECANCELED);
	assert_int_equal(gpemu_begin_epoch(g, NULL), -ECANCELED);
	assert_int_equal(gpemu_close(g), 0);
}

/* --- several at once ------------------------------------------------------ */

static void *beside(void *arg)
{
	struct gpemu *g = lib_open(arg, NULL);

	lib_whole_epoch(g, 0);
	gpemu_close(g);
	return NULL;
}

static void test_side_by_side(void **state)
{
	pthread_t thread[2];

	(void)state;
	pthread_create(&thread[0], NULL, beside, (void *)&lib_engine_one);
	pthread_create(&thread[1], NULL, beside, (void *)&lib_engine_many);
	pthread_join(thread[0], NULL);
	pthread_join(thread[1], NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_epochs),
		cmocka_unit_test(test_options),
		cmocka_unit_test(test_misuse),
		cmocka_unit_test(test_cut_short),
		cmocka_unit_test(test_several_gpus),
		cmocka_unit_test(test_step_in_part),
		cmocka_unit_test(test_max_steps),
		cmocka_unit_test(test_record),
		cmocka_unit_test(test_interrupt),
		cmocka_unit_test(test_side_by_side),
	};

	return cmocka_run_group_tests(tests, lib_make_data, lib_remove_data);
}
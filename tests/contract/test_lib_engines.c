/* SPDX-License-Identifier: MIT */
/* Engines of one's own in libgpemu that break their contract, or are refused.
 */
#include "tests/contract/lib_rig.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

static int not_done(void *state, struct gpemu_feed *feed,
		    struct gpemu_fetch **ret, char *error, size_t n)
{
	(void)state, (void)error, (void)n;
	return gpemu_feed_take(feed, 1, ret);
}

static int not_taken(void *state, struct gpemu_feed *feed,
		     struct gpemu_fetch **ret, char *error, size_t n)
{
	(void)state, (void)feed, (void)ret, (void)error, (void)n;
	return 0;
}

static int elsewhere(void *state, struct gpemu_feed *feed,
		     struct gpemu_fetch **ret, char *error, size_t n)
{
	int r = gpemu_feed_take(feed, 1, ret);

	(void)state, (void)error, (void)n;
	if (r < 0)
		return r;
	(*ret)->data = (char *)(*ret)->buffer + 2;
	gpemu_feed_done(feed, *ret, (int64_t)(*ret)->size_bytes);
	return 0;
}

static int gives_up(void *state, struct gpemu_feed *feed,
		    struct gpemu_fetch **ret, char *error, size_t n)
{
	(void)state, (void)feed, (void)ret;
	snprintf(error, n, "the tape is torn");
	return -EIO;
}

static void test_broken_engines(void **state)
{
	static const struct {
		int (*next)(void *, struct gpemu_feed *, struct gpemu_fetch **,
			    char *, size_t);
		int code;
		const char *words;
	} broken[] = {
		{ not_done, -EINVAL, "engine bad: returned a sample whose" },
		{ not_taken, -EINVAL, "engine bad: returned a sample that it" },
		{ elsewhere, -EINVAL, "engine bad: returned a sample that is" },
		{ gives_up, -EIO, "engine bad: the tape is torn" },
	};
	struct gpemu_engine e = lib_engine_one;

	(void)state;
	e.name = "bad";
	for (unsigned i = 0; i < 4; i++) {
		const struct gpemu_batch *b;
		struct gpemu *g;
		int r;

		e.next = broken[i].next;
		g = lib_open(&e, NULL);
		assert_int_equal(gpemu_begin_epoch(g, NULL), 1);
		while ((r = gpemu_next(g, &b)) > 0)
			gpemu_submit(g, b, NULL);
		assert_int_equal(r, broken[i].code);
		assert_non_null(strstr(gpemu_error(g), broken[i].words));
		assert_int_equal(gpemu_end_epoch(g, NULL), r);
		assert_non_null(strstr(gpemu_error(g), broken[i].words));
		assert_int_equal(gpemu_begin_epoch(g, NULL), r);
		gpemu_close(g);
	}
}

static int no_init(void *state, const struct gpemu_engine_config *c,
		   char *error, size_t n)
{
	(void)state, (void)c;
	snprintf(error, n, "no tape in drive");
	return -EPERM;
}

static void test_refused_engines(void **state)
{
	struct gpemu_engine e = lib_engine_one;

	(void)state;
	lib_no_open(&e, "loader=sync", -EINVAL, "loader: an engine was given");
	e.init = no_init;
	lib_no_open(&e, "prep=none", -EPERM, "engine one: no tape in drive");
	e = lib_engine_one;
	lib_no_open(&e, "direct=on", -EINVAL, "--loader one has no reads that");
	e.struct_bytes = 8;
	lib_no_open(&e, NULL, -EINVAL, "struct_bytes");
	e = lib_engine_one;
	e.next = NULL;
	lib_no_open(&e, NULL, -EINVAL, "next");
	e = lib_engine_one;
	e.flags = 8;
	lib_no_open(&e, NULL, -EINVAL, "flags");
	e = lib_engine_one;
	e.name = "";
	lib_no_open(&e, NULL, -EINVAL, "name");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_broken_engines),
		cmocka_unit_test(test_refused_engines),
	};

	return cmocka_run_group_tests(tests, lib_make_data, lib_remove_data);
}

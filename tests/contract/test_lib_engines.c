/* SPDX-License-Identifier: MIT */
/* User engines in libgpemu that break their contract, or are refused.
 */
#include "tests/contract/lib_rig.h"

#include <errno.h>
#include <limits.h>
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

static int as_if_stopped(void *state, struct gpemu_feed *feed,
			 struct gpemu_fetch **ret, char *error, size_t n)
{
	(void)state, (void)feed, (void)ret, (void)error, (void)n;
	return -ECANCELED;
}

static int no_errno(void *state, struct gpemu_feed *feed,
		    struct gpemu_fetch **ret, char *error, size_t n)
{
	(void)state, (void)feed, (void)ret, (void)error, (void)n;
	return INT_MIN;
}

static int as_if_over(void *state, struct gpemu_feed *feed,
		      struct gpemu_fetch **ret, char *error, size_t n)
{
	(void)state, (void)feed, (void)ret;
	snprintf(error, n, "the tape ends");
	return -ENODATA;
}

static int as_if_later(void *state, struct gpemu_feed *feed,
		       struct gpemu_fetch **ret, char *error, size_t n)
{
	(void)state, (void)feed, (void)ret;
	snprintf(error, n, "the tape rewinds");
	return -EAGAIN;
}

static int twice(void *state, struct gpemu_feed *feed, struct gpemu_fetch **ret,
		 char *error, size_t n)
{
	struct gpemu_fetch **before = state;
	int r;

	if (*before)
		gpemu_feed_done(feed, *before, 0);
	r = lib_engine_one.next(NULL, feed, ret, error, n);
	*before = *ret;
	return r;
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
		{ as_if_stopped, -EIO, "engine bad: Operation canceled" },
		{ no_errno, -EIO, "engine bad: Input/output error" },
		{ as_if_over, -EIO, "engine bad: the tape ends" },
		{ as_if_later, -EIO, "engine bad: the tape rewinds" },
		{ twice, -EINVAL, "engine bad: reported a sample that it" },
	};
	struct gpemu_engine e = lib_engine_one;

	(void)state;
	e.name = "bad";
	e.state_bytes = sizeof(void *);
	for (unsigned i = 0; i < sizeof(broken) / sizeof(*broken); i++) {
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
		/* also after another error in between */
		assert_int_equal(gpemu_begin_epoch(g, NULL), -EBUSY);
		assert_int_equal(gpemu_next(g, &b), r);
		assert_non_null(strstr(gpemu_error(g), broken[i].words));
		assert_int_equal(gpemu_begin_epoch(g, NULL), -EBUSY);
		assert_int_equal(gpemu_end_epoch(g, NULL), r);
		assert_non_null(strstr(gpemu_error(g), broken[i].words));
		assert_int_equal(gpemu_next(g, &b), -EINVAL);
		assert_int_equal(gpemu_begin_epoch(g, NULL), r);
		assert_non_null(strstr(gpemu_error(g), broken[i].words));
		gpemu_close(g);
	}
}

/* A read that failed, of a sample said to begin elsewhere. */
static int failed_elsewhere(void *state, struct gpemu_feed *feed,
			    struct gpemu_fetch **ret, char *error, size_t n)
{
	int r = gpemu_feed_take(feed, 1, ret);

	(void)state, (void)error, (void)n;
	if (r < 0)
		return r;
	memset((*ret)->buffer, 1, (*ret)->buffer_bytes);
	(*ret)->data = (char *)(*ret)->buffer + (1 << 20);
	gpemu_feed_done(feed, *ret, -EIO);
	return 0;
}

static void test_failed_reads(void **state)
{
	static const char *const more[] = { "bad_samples=100%,zeros", NULL };
	struct gpemu_engine e = lib_engine_one;
	const struct gpemu_batch *b;
	struct gpemu *g;

	(void)state;
	e.next = failed_elsewhere;
	g = lib_open(&e, more);
	assert_int_equal(gpemu_begin_epoch(g, NULL), 1);
	while (gpemu_next(g, &b) > 0) {
		for (uint32_t i = 0; i < b->n; i++)
			lib_check_sample(&b->samples[i], -EIO);
		assert_int_equal(gpemu_submit(g, b, NULL), 0);
	}
	assert_int_equal(gpemu_end_epoch(g, NULL), 0);
	assert_int_equal(gpemu_close(g), 0);
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
	lib_no_open(&e, "loader=sync", -EINVAL,
		    "loader: gpemu_open was given an engine");
	e.init = no_init;
	lib_no_open(&e, "prep=none", -EPERM, "engine one: no tape in drive");
	e = lib_engine_one;
	lib_no_open(&e, "direct=on", -EINVAL, "--loader one cannot bypass");
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
		cmocka_unit_test(test_failed_reads),
		cmocka_unit_test(test_refused_engines),
	};

	return cmocka_run_group_tests(tests, lib_make_data, lib_remove_data);
}

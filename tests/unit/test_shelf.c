/* SPDX-License-Identifier: MIT */
/* The trainer's end of a preparation service: who waits for a batch hears of
 * it, of the end, and of how long the wait was for what. */
#include "tests/unit/test.h"

#include <errno.h>
#include <math.h>
#include <pthread.h>
#include <unistd.h>

#include "common/units.h"
#include "service/client/shelf.h"

enum { BATCH = 4, N = 8 * BATCH };

static const uint32_t order[N];

struct rig {
	struct tick *tick;
	struct shelf s;
	unsigned char bytes[2][64];
	unsigned char *buffer[2];
};

static void open_rig(struct rig *r)
{
	*r = (struct rig){ .tick = tick_new(1, 0) };
	for (int i = 0; i < 2; i++)
		r->buffer[i] = r->bytes[i];
	assert_int_equal(shelf_init(&r->s, r->tick, r->buffer, 2, 64), 0);
	assert_int_equal(
		shelf_begin(&r->s, SPLIT_DYNAMIC, 0, order, N, N, BATCH, 1), 0);
}

static void close_rig(struct rig *r)
{
	shelf_fini(&r->s);
	tick_free(r->tick);
}

static void *wait_for_batch(void *arg)
{
	struct rig *r = arg;
	struct shelf_buffer *b;
	struct err err = { 0 };

	return (void *)(intptr_t)shelf_take(&r->s, TICK_NEVER, &b, &err);
}

/* Of the epoch's splits all are lost but one, and that one is cut. */
static void a_cut_ends_a_wait(void **state)
{
	pthread_t thread;
	struct rig r;
	void *ret;

	(void)state;
	open_rig(&r);
	assert_int_equal(pthread_create(&thread, NULL, wait_for_batch, &r), 0);
	usleep(20000); /* it waits by now, or finds the end at once */
	assert_int_equal(shelf_cut(&r.s, 0), 0);
	pthread_join(thread, &ret);
	assert_int_equal((intptr_t)ret, -ENODATA);
	close_rig(&r);
}

static void a_wait_is_for_something(void **state)
{
	/* the worker had no split until 30 ms, and needed until 80 */
	const struct shelf_arrival a = { .complete_ns = 80 * NS_PER_MS,
					 .starved_ns = 30 * NS_PER_MS,
					 .arrived_ns = 100 * NS_PER_MS,
					 .read_share = .6 };
	struct rig r;

	(void)state;
	open_rig(&r);
	/* 20 ms network, 30 dispatcher; of 50 of the worker .4 are transforms
	 */
	assert_true(fabs(shelf_count(&r.s, &a, 0) - .8) < 1e-9);
	assert_int_equal(r.s.stalls.network, 20 * NS_PER_MS);
	assert_int_equal(r.s.stalls.dispatcher, 30 * NS_PER_MS);
	assert_int_equal(r.s.stalls.worker, 50 * NS_PER_MS);
	/* the GPU had work until 90 ms; until it was there */
	assert_true(fabs(shelf_count(&r.s, &a, 90 * NS_PER_MS) - 1) < 1e-9);
	assert_int_equal(r.s.stalls.network, 30 * NS_PER_MS);
	shelf_count(&r.s, &a, 100 * NS_PER_MS);
	assert_int_equal(r.s.stalls.network, 30 * NS_PER_MS);
	assert_int_equal(r.s.stalls.worker, 50 * NS_PER_MS);
	close_rig(&r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_cut_ends_a_wait),
		cmocka_unit_test(a_wait_is_for_something),
	};

	return cmocka_run_group_tests_name("shelf", tests, NULL, NULL);
}

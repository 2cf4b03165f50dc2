/* SPDX-License-Identifier: MIT */
/* The stream model, against times worked out by hand. */
#include "tests/unit/test.h"

#include <errno.h>
#include <string.h>

#include "common/tick.h"
#include "common/units.h"
#include "common/util.h"
#include "emu/gpu/gpu.h"
#include "loader/account/account.h"

struct expected {
	uint64_t ready;
	struct gpu_step step;
	uint64_t room;
};

/* A batch that is ready at `ready`; one before the device has room waits. */
static void submit(struct gpu *g, uint64_t ready, uint64_t copy_ns,
		   uint64_t compute_ns, struct gpu_step *ret)
{
	uint64_t at = MAX(ready, gpu_room(g));

	gpu_copy(g, at, at + copy_ns, ret);
	gpu_compute(g, 0, compute_ns, ret);
	gpu_end(g, ret->compute_end, ret);
}

/* Copies take 2, computations 10. */
static void check(enum gpu_transfer transfer, const struct expected *e,
		  size_t n)
{
	struct gpu g;

	gpu_init(&g, transfer, 100);
	for (size_t i = 0; i < n; i++) {
		struct gpu_step s;

		submit(&g, e[i].ready, 2, 10, &s);
		assert_int_equal(s.copy_start, e[i].step.copy_start);
		assert_int_equal(s.copy_end, e[i].step.copy_end);
		assert_int_equal(s.compute_start, e[i].step.compute_start);
		assert_int_equal(s.compute_end, e[i].step.compute_end);
		assert_int_equal(s.data_wait_ns, e[i].step.data_wait_ns);
		assert_int_equal(s.transfer_stall_ns,
				 e[i].step.transfer_stall_ns);
		assert_int_equal(gpu_room(&g), e[i].room);
	}
}

static void a_copy_hides_behind_the_step_before(void **state)
{
	static const struct expected steps[] = {
		/* ready at the start: the GPU waits for the copy only */
		{ 100, { 100, 102, 102, 112, 0, 2 }, 102 },
		/* in memory already: copied at once, computed right after */
		{ 100, { 102, 104, 112, 122, 0, 0 }, 112 },
		/* the device is full until 112 */
		{ 100, { 112, 114, 122, 132, 0, 0 }, 122 },
		/* 8 too late: idle from 132 to 140, then for the copy */
		{ 140, { 140, 142, 142, 152, 8, 2 }, 142 },
		/* ready 1 before the GPU falls idle: half of the copy shows */
		{ 151, { 151, 153, 153, 163, 0, 1 }, 153 },
	};

	(void)state;
	check(GPU_TRANSFER_OVERLAP, steps, ARRAY_SIZE(steps));
}

static void a_blocking_copy_never_hides(void **state)
{
	static const struct expected steps[] = {
		{ 100, { 100, 102, 102, 112, 0, 2 }, 112 },
		{ 100, { 112, 114, 114, 124, 0, 2 }, 124 },
		{ 130, { 130, 132, 132, 142, 6, 2 }, 142 },
	};

	(void)state;
	check(GPU_TRANSFER_BLOCKING, steps, ARRAY_SIZE(steps));
}

/* Copies longer than computations: the copy stream is busy. */
static void a_slow_link_is_the_bound(void **state)
{
	struct gpu_step s;
	struct gpu g;

	(void)state;
	gpu_init(&g, GPU_TRANSFER_OVERLAP, 0);
	for (uint64_t i = 0; i < 5; i++) {
		submit(&g, 0, 10, 4, &s);
		assert_int_equal(s.copy_start, i * 10);
		assert_int_equal(s.compute_end, i * 10 + 14);
		assert_int_equal(s.data_wait_ns, 0);
		assert_int_equal(s.transfer_stall_ns, i ? 6 : 10);
	}
}

/* Copies take 2, computations 10; the host spends `host` on each step. */
static uint64_t pace(enum gpu_transfer transfer, uint64_t host,
		     struct gpu_step *last)
{
	uint64_t before = 0;
	struct gpu g;

	gpu_init(&g, transfer, 0);
	g.host_ns = host;
	for (int i = 0; i < 6; i++) {
		before = g.compute_end;
		submit(&g, 0, 2, 10, last);
	}
	return last->compute_end - before;
}

static void host_time_shows_where_it_exceeds_the_step(void **state)
{
	struct gpu_step s;

	(void)state;
	assert_int_equal(pace(GPU_TRANSFER_OVERLAP, 9, &s), 10);
	assert_int_equal(s.host_stall_ns, 0);
	assert_int_equal(pace(GPU_TRANSFER_OVERLAP, 15, &s), 15);
	/* idle for 5: for the copy, which the host began late, then the host */
	assert_int_equal(s.transfer_stall_ns, 2);
	assert_int_equal(s.host_stall_ns, 3);
	assert_int_equal(pace(GPU_TRANSFER_BLOCKING, 12, &s), 12);
	assert_int_equal(s.host_stall_ns, 0);
	assert_int_equal(pace(GPU_TRANSFER_BLOCKING, 13, &s), 13);
	assert_int_equal(s.host_stall_ns, 1);
}

static void idle_time_is_all_accounted_for(void **state)
{
	uint64_t ready = 0, idle = 0, stalls = 0;
	struct gpu_step s;
	struct gpu g;

	(void)state;
	for (int mode = 0; mode < 2; mode++) {
		gpu_init(&g, mode, 0);
		g.host_ns = 9;
		for (uint64_t i = 0; i < 1000; i++) {
			uint64_t end = g.compute_end;

			ready += i * 7919 % 40;
			submit(&g, ready, i % 7, 5 + i % 11, &s);
			idle += s.compute_start - end;
			stalls += s.data_wait_ns + s.transfer_stall_ns +
				  s.host_stall_ns;
			assert_true(s.copy_start >= ready);
		}
		assert_true(idle > 0);
		assert_int_equal(idle, stalls);
	}
}

/* A device that is held is neither early nor charged with a wait. */
static void a_held_device_does_nothing(void **state)
{
	struct gpu_step s;
	struct gpu g;

	(void)state;
	gpu_init(&g, GPU_TRANSFER_OVERLAP, 100);
	submit(&g, 100, 2, 10, &s); /* until 112 */
	gpu_hold(&g, 150);
	submit(&g, 101, 2, 10, &s);
	assert_int_equal(s.copy_start, 150);
	assert_int_equal(s.compute_start, 152);
	assert_int_equal(s.data_wait_ns, 0);
	assert_int_equal(s.transfer_stall_ns, 2);
	gpu_hold(&g, 110); /* long past */
	assert_int_equal(g.compute_end, 162);
}

/* Idle from 100; the batch complete at 160, pinned at 170, copied to 172. */
static void a_data_wait_is_split(void **state)
{
	struct gpu_step s = { .copy_start = 170,
			      .copy_end = 172,
			      .compute_start = 172,
			      .compute_end = 182,
			      .data_wait_ns = 70,
			      .transfer_stall_ns = 2 };
	struct delivery d = {
		.n = 4, .complete_ns = 160, .ready_ns = 170, .read_share = .75
	};
	struct stalls none = { 0 };
	struct train_account a = { 0 };

	(void)state;
	account_begin_step(&a, 1);
	account_batch(&a, &d);
	account_gpu(&a, 0, 100, &d, &s, &none);
	assert_int_equal(a.all.data_wait_ns, 70);
	assert_int_equal(a.all.fetch_stall_ns, 45); /* 3/4 of 60 */
	assert_int_equal(a.all.pin_stall_ns, 10);
	assert_int_equal(a.all.prep_stall_ns, 15);
	assert_int_equal(a.all.transfer_stall_ns, 2);
	assert_int_equal(a.first_batch_ns, 70);
	assert_int_equal(a.all.au_compute_ns, 0); /* not the first step's */

	/* complete before the GPU fell idle: the pin stage causes the whole
	 * wait */
	s = (struct gpu_step){ .copy_start = 190,
			       .copy_end = 192,
			       .compute_start = 192,
			       .compute_end = 202,
			       .data_wait_ns = 8,
			       .transfer_stall_ns = 2 };
	d.complete_ns = 150;
	d.ready_ns = 190;
	account_begin_step(&a, 1);
	account_gpu(&a, 0, 182, &d, &s, &none);
	assert_int_equal(a.all.fetch_stall_ns, 45);
	assert_int_equal(a.all.pin_stall_ns, 18);
	assert_int_equal(a.all.prep_stall_ns, 15);
	assert_int_equal(a.all.data_wait_ns, 45 + 18 + 15);
	assert_int_equal(a.first_batch_ns, 70);
	assert_int_equal(a.all.au_compute_ns, 10);
}

/* Two GPUs idle from 100: one had its batch at 110, the other as above. */
static void who_waits_for_a_late_batch_waits_for_data(void **state)
{
	struct gpu_step s = { .data_wait_ns = 70 };
	struct delivery d = {
		.n = 4, .complete_ns = 160, .ready_ns = 170, .read_share = .75
	};
	struct gpu_step first = { .data_wait_ns = 10, .barrier_wait_ns = 80 };
	struct delivery early = { .n = 4, .complete_ns = 110, .ready_ns = 110 };
	struct train_account a = { 0 };
	struct stalls late = account_stalls(100, &d, &s);

	(void)state;
	account_begin_step(&a, 2);
	late = account_late(60, &late);
	account_gpu(&a, 0, 100, &early, &first, &late);
	assert_int_equal(a.gpu[0].data_wait_ns, 70);
	assert_int_equal(a.gpu[0].barrier_wait_ns, 20);
	assert_int_equal(a.all.data_wait_ns, 70);
	assert_int_equal(a.all.barrier_wait_ns, 20);
	assert_int_equal(a.gpu[0].fetch_stall_ns, 37); /* 3/4 of 50 */
	assert_int_equal(a.gpu[0].prep_stall_ns, 23);  /* and its own 10 */
	assert_int_equal(a.gpu[0].pin_stall_ns, 10);
	assert_int_equal(a.all.fetch_stall_ns, 37);
	assert_int_equal(a.all.prep_stall_ns, 23);
	assert_int_equal(a.all.pin_stall_ns, 10);
}

static void memory_is_checked_before_anything_is_read(void **state)
{
	static struct gpu_row rows[] = {
		{ .batch = 1,
		  .forward_ms = 1,
		  .backward_ms = 2,
		  .peak_mib = 100 },
		{ .batch = 8,
		  .forward_ms = 8,
		  .backward_ms = 16,
		  .peak_mib = 800 },
	};
	struct gpu_model m = { .name = (char *)"net",
			       .last_batch = 8,
			       .rows = { rows, 2 } };
	struct gpu_profile p = { .name = (char *)"gpu",
				 .memory_mib = 2000,
				 .usable_memory = .505 };
	struct gpu_beside none = { 0 };
	struct err err = { 0 };

	(void)state;
	assert_int_equal(gpu_check_batch(&p, &m, &none, 8, false, &err), 0);
	assert_int_equal(gpu_check_batch(&p, &m, &none, 9, false, &err),
			 -ERANGE);
	assert_non_null(strstr(err.text, "--extrapolate"));
	assert_int_equal(gpu_check_batch(&p, &m, &none, 10, true, NULL), 0);
	err.text[0] = 0;
	assert_int_equal(gpu_check_batch(&p, &m, &none, 11, true, &err),
			 -E2BIG);
	assert_non_null(strstr(err.text, "the largest that fits is 10"));
	/* a measured out-of-memory point overrides the estimate */
	m.last_is_limit = true;
	assert_int_equal(gpu_check_batch(&p, &m, &none, 9, true, NULL), -E2BIG);
}

/* 100 MiB per sample of 2000; other memory in use takes its share. */
static void what_stands_beside_a_step_takes_memory(void **state)
{
	static struct gpu_row rows[] = { { .batch = 1, .peak_mib = 100 },
					 { .batch = 20, .peak_mib = 2000 } };
	struct gpu_model m = { .name = (char *)"net",
			       .last_batch = 20,
			       .last_is_limit = true,
			       .rows = { rows, 2 } };
	struct gpu_profile p = { .name = (char *)"gpu", .memory_mib = 4000 };
	struct gpu_beside none = { 0 };
	struct gpu_beside next = { .sample_bytes = 25 * MIB, .waiting = 1 };
	struct gpu_beside buckets = { .bucket_bytes = 401 * MIB };
	struct gpu_beside all = { .prep_mib = 350,
				  .bucket_bytes = 400 * MIB,
				  .sample_bytes = 25 * MIB,
				  .waiting = 1 };
	struct err err = { 0 };

	(void)state;
	assert_int_equal(gpu_check_batch(&p, &m, &none, 20, true, &err), 0);
	/* 125 a sample: 16 */
	assert_int_equal(gpu_waiting_bytes(&next, 16), 400 * MIB);
	assert_int_equal(gpu_check_batch(&p, &m, &next, 16, true, &err), 0);
	assert_int_equal(gpu_check_batch(&p, &m, &next, 17, true, &err),
			 -E2BIG);
	/* 1599 left: 15 */
	assert_int_equal(gpu_check_batch(&p, &m, &buckets, 15, true, &err), 0);
	assert_int_equal(gpu_check_batch(&p, &m, &buckets, 16, true, NULL),
			 -E2BIG);
	/* 1250 left, 125 a sample: 10 */
	assert_int_equal(gpu_check_batch(&p, &m, &all, 10, true, NULL), 0);
	err.text[0] = 0;
	assert_int_equal(gpu_check_batch(&p, &m, &all, 11, true, &err), -E2BIG);
	assert_non_null(strstr(err.text,
			       "transforms 350, gradient buckets 400, "
			       "waiting batches 275); the largest that fits "
			       "is 10"));
	/* DataParallel: three other GPUs' parts */
	next.waiting = 3;
	assert_int_equal(gpu_check_batch(&p, &m, &next, 11, true, NULL), 0);
	assert_int_equal(gpu_check_batch(&p, &m, &next, 12, true, NULL),
			 -E2BIG);
}

/* 36,000 steps of 100 ms; each is observed up to 50 ms late. */
static void an_hour_of_late_wake_ups_does_not_drift(void **state)
{
	enum { STEPS = 36000 };
	const uint64_t step_ns = 100 * NS_PER_MS, copy_ns = NS_PER_MS;
	struct tick *tick = tick_new_fake();
	struct rng rng = rng_stream(1, "late", 0);
	struct gpu_step s;
	struct gpu g;

	(void)state;
	gpu_init(&g, GPU_TRANSFER_OVERLAP, 0);
	for (int i = 0; i < STEPS; i++) {
		submit(&g, tick_now(tick), copy_ns, step_ns, &s);
		assert_true(s.transfer_stall_ns + s.data_wait_ns <=
			    (i ? 0 : copy_ns));
		tick_wait(tick, gpu_room(&g));
		tick_wait(tick, tick_now(tick) + rng_below(&rng, step_ns / 2));
	}
	assert_int_equal(s.compute_end, copy_ns + STEPS * step_ns);
	assert_true(tick_now(tick) < s.compute_end);
	tick_free(tick);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_copy_hides_behind_the_step_before),
		cmocka_unit_test(a_blocking_copy_never_hides),
		cmocka_unit_test(a_slow_link_is_the_bound),
		cmocka_unit_test(host_time_shows_where_it_exceeds_the_step),
		cmocka_unit_test(idle_time_is_all_accounted_for),
		cmocka_unit_test(a_held_device_does_nothing),
		cmocka_unit_test(a_data_wait_is_split),
		cmocka_unit_test(who_waits_for_a_late_batch_waits_for_data),
		cmocka_unit_test(memory_is_checked_before_anything_is_read),
		cmocka_unit_test(what_stands_beside_a_step_takes_memory),
		cmocka_unit_test(an_hour_of_late_wake_ups_does_not_drift),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

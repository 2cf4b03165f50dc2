/* SPDX-License-Identifier: MIT */
/* The bound on samples in flight, and the order in which they leave. */
#include "tests/unit/test.h"

#include <errno.h>

#include "common/tick.h"
#include "common/util.h"
#include "loader/pipeline/flow.h"

enum { BATCH = 4, SUPERBATCH = 2, N_WINDOWS = 3, N = 37 };

static uint64_t size[N];

/* As `like`, plus the fields common to all. */
static struct flow *new_flow_like(struct tick *tick, struct flow_config like)
{
	static struct dataset data = { .size = size, .n = N };
	struct err err = { 0 };
	struct flow *f;

	like.data = &data;
	like.tick = tick;
	like.windows.batch = BATCH;
	like.windows.superbatch = SUPERBATCH;
	like.windows.n = N_WINDOWS;
	like.raw = true;
	for (size_t i = 0; i < N; i++)
		size[i] = i;
	assert_int_equal(flow_new(&like, &f, &err), 0);
	return f;
}

static struct flow *new_flow(struct tick *tick)
{
	return new_flow_like(tick, (struct flow_config){ 0 });
}

static void finish(struct flow *f, struct batch *b)
{
	while (atomic_load(&b->pending))
		if (windows_fill(b, 1))
			flow_complete(f, b);
}

/* Lease and finish until none is left; returns the samples handed out. */
static unsigned drain(struct flow *f, uint32_t want)
{
	uint32_t pos, end;
	struct window *w;
	unsigned n = 0;

	while (flow_lease(f, want, false, &w, &pos, &end) == 0) {
		assert_true(end > pos && end - pos <= want);
		/* never of two batches */
		assert_int_equal(pos / BATCH, (end - 1) / BATCH);
		for (; pos < end; pos++, n++) {
			struct batch *b = flow_batch(f, w, pos);

			if (windows_fill(b, 1))
				flow_complete(f, b);
		}
	}
	return n;
}

static void no_more_than_the_windows_are_on_their_way(void **state)
{
	struct tick *tick = tick_new(1, 0);
	struct flow *f = new_flow(tick);
	uint32_t order[N];
	struct batch *b;
	unsigned out = 0;

	(void)state;
	for (uint32_t i = 0; i < N; i++)
		order[i] = i;
	flow_begin(f, 0, order, N);
	assert_int_equal(drain(f, 3), N_WINDOWS * SUPERBATCH * BATCH);
	/* a window is free once its last batch was released, not before */
	assert_int_equal(flow_next(f, TICK_NEVER, &b), 0);
	flow_release(f, b);
	assert_int_equal(drain(f, 3), 0);
	assert_int_equal(flow_next(f, TICK_NEVER, &b), 0);
	flow_release(f, b);
	assert_int_equal(drain(f, 3), SUPERBATCH * BATCH);
	out = 2 * BATCH;
	while (flow_next(f, tick_now(tick), &b) == 0) {
		assert_int_equal(b->window->order - order +
					 (b - b->window->batch) * BATCH,
				 out);
		out += b->n;
		flow_release(f, b);
		drain(f, BATCH);
	}
	assert_int_equal(out, N);
	flow_free(f);
	tick_free(tick);
}

/* A weighted order may draw a sample more than once. */
static void sizes_that_overflow_are_too_much_memory(void **state)
{
	struct tick *tick = tick_new(1, 0);
	struct flow *f = new_flow(tick);
	uint32_t order[N] = { 0 }, pos, end;
	struct err err = { 0 };
	struct window *w;

	(void)state;
	size[0] = INT64_MAX; /* and a byte: 2^63, twice */
	flow_begin(f, 0, order, 2);
	assert_int_equal(flow_lease(f, BATCH, false, &w, &pos, &end),
			 -ECANCELED);
	assert_int_equal(flow_error(f, &err), -ENOMEM);
	flow_free(f);
	tick_free(tick);
}

static void pieces_do_not_share_a_window(void **state)
{
	static const uint32_t n[N_WINDOWS] = { BATCH - 1, 1, BATCH };
	struct tick *tick = tick_new(1, 0);
	struct flow *f = new_flow(tick);
	uint32_t order[N] = { 0 }, pos, end;
	struct window *w;
	struct batch *b;

	(void)state;
	/* as many as may wait, again and again */
	for (unsigned i = 0; i < N_WINDOWS * N_WINDOWS; i++) {
		unsigned k = i % N_WINDOWS;

		for (unsigned p = 0; k == 0 && p < N_WINDOWS; p++)
			flow_begin(f, i + p, order + i + p, n[p]);
		assert_int_equal(flow_lease(f, BATCH, false, &w, &pos, &end),
				 0);
		finish(f, flow_batch(f, w, pos));
		assert_int_equal(flow_next(f, TICK_NEVER, &b), 0);
		assert_ptr_equal(b->window->order, order + i);
		assert_int_equal(b->window->epoch, i);
		assert_int_equal(b->n, n[k]);
		flow_release(f, b);
	}
	flow_free(f);
	tick_free(tick);
}

static void a_batch_waits_for_those_before_it(void **state)
{
	struct tick *tick = tick_new(1, 0);
	struct flow *f = new_flow(tick);
	uint32_t order[N] = { 0 }, pos, end;
	struct window *w[2];
	struct batch *b;

	(void)state;
	flow_begin(f, 0, order, N);
	for (int i = 0; i < 2; i++)
		assert_int_equal(
			flow_lease(f, UINT32_MAX, false, &w[i], &pos, &end), 0);
	assert_int_equal(end - pos, BATCH);
	for (int i = 0; i < BATCH; i++)
		if (windows_fill(&w[1]->batch[1], 1))
			flow_complete(f, &w[1]->batch[1]);
	assert_int_equal(flow_next(f, tick_now(tick), &b), -ETIMEDOUT);
	for (int i = 0; i < BATCH; i++)
		if (windows_fill(&w[0]->batch[0], 1))
			flow_complete(f, &w[0]->batch[0]);
	assert_int_equal(flow_next(f, TICK_NEVER, &b), 0);
	assert_ptr_equal(b, &w[0]->batch[0]);
	assert_int_equal(flow_next(f, TICK_NEVER, &b), 0);
	assert_ptr_equal(b, &w[1]->batch[1]);
	flow_free(f);
	tick_free(tick);
}

static void batches_may_leave_as_they_become_complete(void **state)
{
	struct tick *tick = tick_new(1, 0);
	struct flow *f = new_flow_like(
		tick, (struct flow_config){ .windows.any_order = true });
	uint32_t order[N] = { 0 }, pos, end;
	struct window *w[4];
	struct batch *b;

	(void)state;
	flow_begin(f, 0, order, N);
	for (int i = 0; i < 4; i++)
		assert_int_equal(
			flow_lease(f, UINT32_MAX, false, &w[i], &pos, &end), 0);
	finish(f, &w[3]->batch[1]);
	finish(f, &w[0]->batch[0]);
	assert_int_equal(flow_next(f, TICK_NEVER, &b), 0);
	assert_ptr_equal(b, &w[3]->batch[1]);
	finish(f, &w[2]->batch[0]);
	assert_int_equal(flow_next(f, TICK_NEVER, &b), 0);
	assert_ptr_equal(b, &w[0]->batch[0]);
	assert_int_equal(flow_next(f, TICK_NEVER, &b), 0);
	assert_ptr_equal(b, &w[2]->batch[0]);
	assert_int_equal(flow_next(f, tick_now(tick), &b), -ETIMEDOUT);
	/* the second window is free, though the first is not */
	assert_int_equal(drain(f, BATCH), SUPERBATCH * BATCH);
	flow_release(f, &w[3]->batch[1]);
	flow_release(f, &w[2]->batch[0]);
	assert_int_equal(drain(f, BATCH), SUPERBATCH * BATCH);
	flow_free(f);
	tick_free(tick);
}

/* Each `step` positions ascend by address, and are those of the order. */
static void check_turns(const uint64_t *address, bool whole_batches,
			uint32_t step)
{
	struct tick *tick = tick_new(1, 0);
	struct flow *f = new_flow_like(
		tick, (struct flow_config){ .address = address,
					    .whole_batches = whole_batches });
	uint32_t order[N], pos, end;
	bool seen[SUPERBATCH * BATCH] = { false };
	struct window *w;

	for (uint32_t i = 0; i < N; i++)
		order[i] = N - 1 - i;
	flow_begin(f, 0, order, N);
	assert_int_equal(flow_lease(f, 1, false, &w, &pos, &end), 0);
	for (uint32_t i = 0; i < w->n; i++) {
		seen[w->turn[i]] = true;
		assert_int_equal(w->turn[i] / step, i / step);
		if (i % step)
			assert_true(address[order[w->turn[i]]] >=
				    address[order[w->turn[i - 1]]]);
	}
	for (uint32_t i = 0; i < w->n; i++)
		assert_true(seen[i]);
	flow_free(f);
	tick_free(tick);
}

static void samples_are_read_in_the_order_of_their_addresses(void **state)
{
	uint64_t address[N];

	(void)state;
	for (uint64_t i = 0; i < N; i++)
		address[i] = i * 7919 % 31 << 40;
	check_turns(address, false, SUPERBATCH * BATCH);
	check_turns(address, true, BATCH);
}

static void stopping_says_why_and_keeps_the_first_cause(void **state)
{
	struct tick *tick = tick_new(1, 0);
	struct flow *f = new_flow(tick);
	struct err first = { "disk on fire" }, second = { "and more" };
	struct err err = { 0 };
	uint32_t pos, end;
	struct window *w;
	struct batch *b;

	(void)state;
	assert_int_equal(flow_error(f, &err), 0);
	flow_stop(f, -EIO, &first);
	flow_stop(f, -ENOMEM, &second);
	assert_int_equal(flow_error(f, &err), -EIO);
	assert_string_equal(err.text, "disk on fire");
	assert_int_equal(flow_lease(f, 1, true, &w, &pos, &end), -ECANCELED);
	assert_int_equal(flow_next(f, TICK_NEVER, &b), -ECANCELED);
	flow_free(f);
	tick_free(tick);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(no_more_than_the_windows_are_on_their_way),
		cmocka_unit_test(sizes_that_overflow_are_too_much_memory),
		cmocka_unit_test(pieces_do_not_share_a_window),
		cmocka_unit_test(a_batch_waits_for_those_before_it),
		cmocka_unit_test(batches_may_leave_as_they_become_complete),
		cmocka_unit_test(
			samples_are_read_in_the_order_of_their_addresses),
		cmocka_unit_test(stopping_says_why_and_keeps_the_first_cause),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

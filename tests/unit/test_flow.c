/* SPDX-License-Identifier: MIT */
/* The bound on what is on its way, and the order in which it leaves. */
#include "tests/unit/test.h"

#include <errno.h>

#include "common/tick.h"
#include "common/util.h"
#include "loader/flow.h"

enum { BATCH = 4, SUPERBATCH = 2, N_WINDOWS = 3, N = 37 };

static struct flow *new_flow(struct tick *tick)
{
	static uint64_t size[N];
	static struct dataset data = { .size = size, .n = N };
	struct flow_config c = { .data = &data,
				 .tick = tick,
				 .batch = BATCH,
				 .superbatch = SUPERBATCH,
				 .n_windows = N_WINDOWS };
	struct err err = { 0 };
	struct flow *f;

	for (size_t i = 0; i < N; i++)
		size[i] = i;
	assert_int_equal(flow_new(&c, &f, &err), 0);
	return f;
}

/* Lease and finish until there is no more; samples handed out. */
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

			if (flow_finish(b))
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
		if (flow_finish(&w[1]->batch[1]))
			flow_complete(f, &w[1]->batch[1]);
	assert_int_equal(flow_next(f, tick_now(tick), &b), -ETIMEDOUT);
	for (int i = 0; i < BATCH; i++)
		if (flow_finish(&w[0]->batch[0]))
			flow_complete(f, &w[0]->batch[0]);
	assert_int_equal(flow_next(f, TICK_NEVER, &b), 0);
	assert_ptr_equal(b, &w[0]->batch[0]);
	assert_int_equal(flow_next(f, TICK_NEVER, &b), 0);
	assert_ptr_equal(b, &w[1]->batch[1]);
	flow_free(f);
	tick_free(tick);
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
		cmocka_unit_test(a_batch_waits_for_those_before_it),
		cmocka_unit_test(stopping_says_why_and_keeps_the_first_cause),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: MIT */
/* The pin stage: what it copies, and the time that it takes for that. */
#include "tests/unit/test.h"

#include <errno.h>
#include <string.h>

#include "common/tick.h"
#include "common/units.h"
#include "loader/pipeline/flow.h"
#include "loader/pipeline/pin.h"

enum { BATCH = 4, BYTES = 100 };

static const struct gpu_profile gpu = {
	.sample_bytes = BYTES,
	.pin_copy = { .base_ms = 3, .per_sample_ms = 0.5 },
};

/* One batch, complete, of samples of BYTES bytes of their number. */
static struct flow *new_flow(struct tick *tick, char data[BATCH][BYTES])
{
	static uint64_t size[BATCH];
	static uint32_t order[BATCH];
	static struct dataset set = { .size = size, .n = BATCH };
	struct flow_config c = {
		.data = &set,
		.tick = tick,
		.windows = { .batch = BATCH, .superbatch = 1, .n = 1 }
	};
	struct err err = { 0 };
	uint32_t pos, end;
	struct window *w;
	struct batch *b;
	struct flow *f;

	assert_int_equal(flow_new(&c, &f, &err), 0);
	flow_begin(f, 0, order, BATCH);
	assert_int_equal(flow_lease(f, BATCH, false, &w, &pos, &end), 0);
	b = flow_batch(f, w, 0);
	for (uint32_t i = 0; i < BATCH; i++) {
		memset(data[i], 'a' + (int)i, BYTES);
		b->place[i] = (struct place){ .data = data[i], .n = BYTES };
		if (windows_fill(b, 1))
			flow_complete(f, b);
	}
	return f;
}

static void takes_the_time_of_the_profile(void **state)
{
	uint64_t wanted = 3 * NS_PER_MS + BATCH * NS_PER_MS / 2;

	(void)state;
	for (int inlined = 0; inlined < 2; inlined++) {
		struct tick *tick = tick_new_fake();
		char data[BATCH][BYTES];
		struct flow *f = new_flow(tick, data);
		struct err err = { 0 };
		struct delivery d;
		struct pin *p;

		assert_int_equal(pin_new((struct supply){ &supply_flow, f }, f,
					 tick, &gpu, BATCH, BATCH * BYTES, MIB,
					 1, inlined, &p, &err),
				 0);
		assert_int_equal(pin_next(p, TICK_NEVER, &d), 0);
		assert_int_equal(d.pin_ns, wanted);
		assert_int_equal(d.ready_ns, wanted);
		assert_int_equal(tick_now(tick), wanted);
		for (uint32_t i = 0; i < BATCH; i++) {
			assert_ptr_not_equal(d.place[i].data, data[i]);
			assert_memory_equal(d.place[i].data, data[i], BYTES);
		}
		pin_release(p, &d);
		flow_stop(f, 0, &err);
		pin_free(p);
		flow_free(f);
		tick_free(tick);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(takes_the_time_of_the_profile),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: MIT */
/* One sweep for several readers, against a model that keeps every element and
 * computes the window anew. */
#include "tests/unit/test.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>

#include "common/rng.h"
#include "common/util.h"
#include "service/decide/sweep.h"

enum { MOST = 400, READERS = 5 };

struct model {
	uint64_t limit, end;
	uint64_t bytes[MOST];
	uint64_t next[READERS]; /* of each reader */
	bool dropped[MOST];
};

static struct model model;
static char element[MOST];

static void drop(void *which, void *ctx)
{
	size_t i = (size_t)((char *)which - element);

	assert_ptr_equal(ctx, &model);
	assert_false(model.dropped[i]);
	model.dropped[i] = true;
}

/* The longest end of the sweep that fits. */
static uint64_t model_start(void)
{
	uint64_t start = model.end, bytes = 0;

	while (start > 0) {
		bytes += MAX(model.bytes[start - 1], 1);
		if (bytes > model.limit)
			break;
		start--;
	}
	return start;
}

static void check_window(const struct sweep *s)
{
	uint64_t start = model_start(), bytes = 0;

	for (uint64_t i = 0; i < model.end; i++) {
		assert_int_equal(model.dropped[i], i < start);
		bytes += i < start ? 0 : MAX(model.bytes[i], 1);
	}
	assert_int_equal(sweep_made(s), model.end);
	assert_true(bytes <= model.limit);
}

static void extend(struct sweep *s, uint64_t bytes)
{
	model.bytes[model.end] = bytes;
	assert_int_equal(sweep_extend(s, &element[model.end], bytes), 0);
	model.end++;
	check_window(s);
}

/* One read; as in the service, whoever is at the end makes the next. */
static void one_read(struct sweep *s, struct sweep_reader *reader, size_t i,
		     struct rng *rng)
{
	uint64_t start = model_start(), at = MAX(model.next[i], start);
	void *got;
	int r = sweep_next(s, reader, &got);

	if (at == model.end) {
		assert_int_equal(r, -EAGAIN);
		if (model.end == MOST)
			return;
		extend(s, rng_below(rng, model.limit + 1));
		at = MAX(at, model_start());
		r = sweep_next(s, reader, &got);
	}
	assert_int_equal(r, 0);
	assert_ptr_equal(got, &element[at]);
	model.next[i] = at + 1;
}

static void readers_agree_with_the_model(void **state)
{
	struct rng rng = rng_stream(1, "sweep", 0);

	(void)state;
	for (int i = 0; i < 200; i++) {
		struct sweep_reader reader[READERS] = { 0 };
		uint64_t pace[READERS];
		struct sweep *s;

		model = (struct model){ .limit = 1 + rng_below(&rng, 5000) };
		assert_int_equal(sweep_new(model.limit, drop, &model, &s), 0);
		for (size_t k = 0; k < READERS; k++)
			pace[k] = 1 + rng_below(&rng, 20);
		for (int step = 0; step < 2000; step++) {
			size_t k = rng_below(&rng, READERS);

			/* slow ones, and those that join late */
			if (rng_below(&rng, pace[k]) == 0 &&
			    step > (int)(k * 200))
				one_read(s, &reader[k], k, &rng);
		}
		for (size_t k = 0; k < READERS; k++)
			assert_true(reader[k].n_read + reader[k].n_skipped <=
				    model.next[k]);
		sweep_free(s);
		for (uint64_t k = 0; k < model.end; k++)
			assert_true(model.dropped[k]);
	}
}

/* Readers that keep pace with each other share each element: the cost of one.
 */
static void an_element_is_made_once_for_all(void **state)
{
	struct sweep_reader reader[READERS] = { 0 };
	struct sweep *s;
	void *got;

	(void)state;
	model = (struct model){ .limit = 100 };
	assert_int_equal(sweep_new(model.limit, drop, &model, &s), 0);
	for (int i = 0; i < 50; i++) {
		extend(s, 10);
		for (size_t k = 0; k < READERS; k++)
			assert_int_equal(sweep_next(s, &reader[k], &got), 0);
	}
	for (size_t k = 0; k < READERS; k++) {
		assert_int_equal(reader[k].n_read, 50);
		assert_int_equal(reader[k].n_skipped, 0);
	}
	assert_int_equal(sweep_made(s), 50);
	sweep_free(s);
}

static void slow_readers_skip_and_late_ones_begin_in_the_window(void **state)
{
	struct sweep_reader slow = { 0 }, late = { 0 };
	struct sweep *s;
	void *got;

	(void)state;
	model = (struct model){ .limit = 30 };
	assert_int_equal(sweep_new(model.limit, drop, &model, &s), 0);
	extend(s, 10);
	assert_int_equal(sweep_next(s, &slow, &got), 0);
	for (int i = 0; i < 9; i++)
		extend(s, 10);
	assert_int_equal(sweep_next(s, &slow, &got), 0);
	assert_ptr_equal(got, &element[7]);
	assert_int_equal(slow.n_skipped, 6);
	assert_int_equal(sweep_next(s, &late, &got), 0);
	assert_ptr_equal(got, &element[7]);
	assert_int_equal(late.n_skipped, 0);
	sweep_free(s);
}

static void one_that_fails_leaves_the_element_to_another(void **state)
{
	struct sweep_reader reader = { 0 };
	struct sweep *s;
	void *got;

	(void)state;
	model = (struct model){ .limit = 30 };
	assert_int_equal(sweep_new(model.limit, drop, &model, &s), 0);
	assert_int_equal(sweep_next(s, &reader, &got), -EAGAIN);
	assert_int_equal(sweep_extend(s, &element[0], 31), -EFBIG);
	extend(s, 0);
	assert_int_equal(sweep_next(s, &reader, &got), 0);
	assert_int_equal(sweep_next(s, &reader, &got), -EAGAIN);
	sweep_free(s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(readers_agree_with_the_model),
		cmocka_unit_test(an_element_is_made_once_for_all),
		cmocka_unit_test(
			slow_readers_skip_and_late_ones_begin_in_the_window),
		cmocka_unit_test(one_that_fails_leaves_the_element_to_another),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

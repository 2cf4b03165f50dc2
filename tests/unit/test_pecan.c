/* SPDX-License-Identifier: MIT */
/* The order of transforms against every legal order and every split. */
#include "tests/unit/test.h"

#include <errno.h>
#include <math.h>
#include <stdbool.h>

#include "common/rng.h"
#include "common/util.h"
#include "service/decide/pecan.h"

enum { MOST = 6 };

struct search {
	const struct pecan_transform *t;
	uint32_t n, order[MOST];
	struct pecan_cost least; /* each by itself */
};

/* None that keeps its place has moved, and none has moved across it. */
static bool is_legal(const struct pecan_transform *t, const uint32_t *order,
		     uint32_t n)
{
	for (uint32_t i = 0; i < n; i++)
		for (uint32_t k = i + 1; k < n; k++)
			if (order[i] > order[k] &&
			    (!t[order[i]].commutes || !t[order[k]].commutes))
				return false;
	return true;
}

static void try_all(struct search *s, uint32_t i)
{
	if (i == s->n) {
		if (!is_legal(s->t, s->order, s->n))
			return;
		for (uint32_t k = 0; k <= s->n; k++) {
			struct pecan_cost c =
				pecan_cost(s->t, s->order, s->n, k);

			s->least.cpu = MIN(s->least.cpu, c.cpu);
			s->least.sent = MIN(s->least.sent, c.sent);
		}
		return;
	}
	for (uint32_t k = i; k < s->n; k++) {
		uint32_t x = s->order[i];

		s->order[i] = s->order[k];
		s->order[k] = x;
		try_all(s, i + 1);
		s->order[k] = s->order[i];
		s->order[i] = x;
	}
}

static struct search search(const struct pecan_transform *t, uint32_t n)
{
	struct search s = { .t = t, .n = n, .least = { INFINITY, INFINITY } };

	for (uint32_t i = 0; i < n; i++)
		s.order[i] = i;
	try_all(&s, 0);
	return s;
}

static struct pecan_transform random_transform(struct rng *rng)
{
	static const double size[] = { .25, .5, .9, 1, 1, 2, 4 };

	return (struct pecan_transform){
		.size = rng_below(rng, 2)
				? size[rng_below(rng, ARRAY_SIZE(size))]
				: 4 * rng_double(rng) + .01,
		.cost = rng_below(rng, 4) ? 10 * rng_double(rng) : 0,
		.commutes = rng_below(rng, 4),
	};
}

static void check_close(double got, double want)
{
	if (fabs(got - want) > 1e-9 * want)
		fail_msg("%.12g is not %.12g", got, want);
}

/* No legal order costs less, and no split of any sends less. */
static void the_plan_is_the_best(void **state)
{
	struct rng rng = rng_stream(1, "pecan", 0);

	(void)state;
	for (int i = 0; i < 3000; i++) {
		struct pecan_transform t[MOST];
		uint32_t n = (uint32_t)rng_below(&rng, MOST + 1);
		struct pecan_plan plan;
		struct search s;

		for (uint32_t k = 0; k < n; k++)
			t[k] = random_transform(&rng);
		s = search(t, n);
		assert_int_equal(pecan_plan(t, n, &plan), 0);
		assert_true(is_legal(t, plan.order, n));
		check_close(plan.cost.cpu, s.least.cpu);
		check_close(plan.cost.sent, s.least.sent);
	}
}

/* Decode inflates and keeps its place; the crop shrinks and goes right behind
 * it, normalising to floats inflates and goes last, behind the split. */
static void images_are_cropped_first_and_made_floats_last(void **state)
{
	enum { DECODE, FLOATS, FLIP, CROP };
	const struct pecan_transform t[] = {
		[DECODE] = { 10, 1, false },
		[FLOATS] = { 4, .1, true },
		[FLIP] = { 1, .1, true },
		[CROP] = { .08, .1, true },
	};
	struct pecan_plan p;

	(void)state;
	assert_int_equal(pecan_plan(t, 4, &p), 0);
	assert_int_equal(p.order[0], DECODE);
	assert_int_equal(p.order[1], CROP);
	assert_int_equal(p.order[2], FLIP);
	assert_int_equal(p.order[3], FLOATS);
	assert_int_equal(p.n_remote, 3);
	check_close(p.cost.sent, .8);
	check_close(p.cost.cpu, 1 + 10 * .1 + .8 * .1 + .8 * .1);
}

static void what_does_not_commute_stays(void **state)
{
	const struct pecan_transform fixed[] = { { 2, 1, false },
						 { .5, 1, false } };
	const struct pecan_transform wall[] = { { 2, 1, true },
						{ 1, 1, false },
						{ .5, 1, true } };
	const struct pecan_transform wrong[] = { { NAN, 1, true } };
	struct pecan_plan p;

	(void)state;
	assert_int_equal(pecan_plan(fixed, 2, &p), 0);
	assert_int_equal(p.order[0], 0);
	assert_int_equal(p.n_remote, 2); /* 1 byte, as before all of them */
	assert_int_equal(pecan_plan(wall, 3, &p), 0);
	for (uint32_t i = 0; i < 3; i++)
		assert_int_equal(p.order[i], i);
	assert_int_equal(pecan_plan(wrong, 1, &p), -EINVAL);
	assert_int_equal(pecan_plan(NULL, PECAN_MOST + 1, &p), -EINVAL);
	assert_int_equal(pecan_plan(NULL, 0, &p), 0);
	check_close(p.cost.sent, 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_plan_is_the_best),
		cmocka_unit_test(images_are_cropped_first_and_made_floats_last),
		cmocka_unit_test(what_does_not_commute_stays),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

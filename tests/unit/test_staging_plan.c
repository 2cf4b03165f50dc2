/* SPDX-License-Identifier: MIT */
/* Random members of a staging area, against what the rules promise. */
#include "tests/unit/test.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/rng.h"
#include "common/util.h"
#include "loader/staging/plan.h"

enum { MEMBERS = 4, ALL = 300, BYTES = 4096, LARGEST = 1500 };

static struct staging_plan *new_plan(void)
{
	struct staging_plan *p = calloc(1, sizeof(*p));

	p->jobs = MEMBERS;
	p->bytes = BYTES;
	p->phase = PLAN_RUNNING;
	for (uint32_t i = 0; i < MEMBERS; i++)
		p->member[i].life = PLAN_ALIVE;
	return p;
}

/* Sizes that do not divide the ring, so that batches wrap at any place. */
static uint64_t size_of(void *ctx, uint64_t index)
{
	(void)ctx;
	return 1 + index * 7919 % LARGEST;
}

/* The batches in the area are inside the ring, one beside the other. */
static void check_ring(struct staging_plan *p)
{
	char used[BYTES] = { 0 };

	assert_true(plan_valid(p));
	for (uint64_t i = p->first; i < p->next; i++) {
		const struct plan_batch *b = plan_find(p, i);

		assert_non_null(b);
		assert_true(b->bytes >= size_of(NULL, i));
		assert_true(b->offset + b->bytes <= BYTES);
		for (uint64_t k = b->offset; k < b->offset + b->bytes; k++)
			assert_int_equal(used[k]++, 0);
	}
	assert_true(p->most_bytes <= BYTES);
}

struct life {
	struct staging_plan *p;
	struct rng rng;
	uint64_t held[MEMBERS][PLAN_BATCHES]; /* claimed, by member */
	uint32_t n_held[MEMBERS];
	uint64_t used[MEMBERS];
	uint32_t times_made[ALL];
};

static void claim(struct life *l, uint32_t i)
{
	uint64_t index;

	plan_free(l->p);
	plan_grow(l->p, ALL, size_of, NULL);
	if (plan_claim(l->p, i, 3, ALL, &index) < 0)
		return;
	assert_true(index < ALL);
	l->held[i][l->n_held[i]++] = index;
	assert_true(l->n_held[i] <= 3);
}

static void publish(struct life *l, uint32_t i)
{
	uint32_t k;

	if (l->n_held[i] == 0)
		return;
	k = (uint32_t)rng_below(&l->rng, l->n_held[i]);
	assert_int_equal(plan_publish(l->p, i, l->held[i][k], 1, 0, 0.5), 0);
	l->times_made[l->held[i][k]]++;
	l->held[i][k] = l->held[i][--l->n_held[i]];
}

static void use(struct life *l, uint32_t i)
{
	if (plan_n_ready(l->p, l->used[i]) == 0)
		return;
	plan_use(l->p, i, ++l->used[i]);
	plan_free(l->p);
}

static void step(struct life *l)
{
	uint32_t i = (uint32_t)rng_below(&l->rng, MEMBERS);

	if (l->p->member[i].life != PLAN_ALIVE)
		return;
	switch (rng_below(&l->rng, 3)) {
	case 0: claim(l, i); break;
	case 1: publish(l, i); break;
	default: use(l, i);
	}
	check_ring(l->p);
}

static bool is_over(const struct life *l)
{
	for (uint32_t i = 0; i < MEMBERS; i++)
		if (l->p->member[i].life == PLAN_ALIVE && l->used[i] < ALL)
			return false;
	return true;
}

/* Members use all batches; `die`: one after the other is killed, until one is
 * left. */
static void live(uint64_t seed, bool die)
{
	struct life *l = calloc(1, sizeof(*l));
	uint32_t dead = die ? 0 : MEMBERS;

	l->p = new_plan();
	l->rng = rng_stream(seed, "plan", die);
	for (unsigned n = 0; !is_over(l); n++) {
		assert_true(n < 1000 * ALL); /* else they wait for ever */
		/* with a batch that it has not made yet */
		if (dead < n / 400 && dead < MEMBERS - 1 && l->n_held[dead]) {
			plan_leave(l->p, dead, PLAN_DIED);
			l->n_held[dead++] = 0;
		}
		step(l);
	}
	for (unsigned i = 0; i < ALL; i++)
		assert_int_equal(l->times_made[i], 1);
	assert_int_equal(l->p->first, l->p->next);
	free(l->p);
	free(l);
}

static void every_batch_is_made_once_and_used_by_all(void **state)
{
	(void)state;
	for (uint64_t seed = 1; seed <= 2; seed++)
		live(seed, false);
}

static void members_die_at_any_time(void **state)
{
	(void)state;
	for (uint64_t seed = 1; seed <= 2; seed++)
		live(seed, true);
}

static void a_member_makes_no_more_than_its_share(void **state)
{
	struct staging_plan *p = new_plan();
	uint64_t index;

	(void)state;
	p->bytes = 100 * PLAN_ALIGN * LARGEST;
	plan_grow(p, ALL, size_of, NULL);
	assert_int_equal(plan_claim(p, 0, 9, ALL, &index), 0);
	assert_int_equal(index, 0);
	/* the others have none yet */
	assert_int_equal(plan_claim(p, 0, 9, ALL, &index), -EAGAIN);
	for (uint32_t i = 1; i < MEMBERS; i++)
		assert_int_equal(plan_claim(p, i, 9, ALL, &index), 0);
	assert_int_equal(plan_claim(p, 0, 9, ALL, &index), 0);
	assert_int_equal(plan_claim(p, 0, 2, ALL, &index), -EAGAIN);
	/* but not of those that are gone */
	for (uint32_t i = 1; i < MEMBERS; i++)
		plan_leave(p, i, PLAN_LEFT);
	assert_int_equal(plan_claim(p, 0, 9, ALL, &index), 0);
	assert_int_equal(index, 1);
	assert_int_equal(p->member[0].taken_over, 1);
	/* nor another epoch's */
	assert_int_equal(plan_claim(p, 0, 9, 2, &index), -EAGAIN);
	free(p);
}

static void batches_that_all_leave_out_are_skipped(void **state)
{
	struct staging_plan *p = new_plan();
	uint64_t index;

	(void)state;
	plan_grow(p, 10, size_of, NULL);
	assert_int_equal(plan_claim(p, 0, 9, 10, &index), 0);
	for (uint32_t i = 0; i < MEMBERS; i++)
		plan_use(p, i, 20);
	/* its memory may still be written to */
	plan_free(p);
	assert_int_equal(p->first, 0);
	plan_give_back(p, 0);
	assert_true(plan_free(p));
	plan_grow(p, 30, size_of, NULL);
	assert_int_equal(p->first, 20);
	assert_int_equal(plan_claim(p, 0, 9, 30, &index), 0);
	assert_int_equal(index, 20);
	check_ring(p);
	free(p);
}

/* Another process writes anything, and is not told from a member. */
static void garbage_ends_no_loop_late_and_leaves_no_array(void **state)
{
	struct rng rng = rng_stream(1, "garbage", 0);
	struct staging_plan *p = new_plan();
	uint64_t index;

	(void)state;
	for (unsigned n = 0; n < 1000; n++) {
		char *bytes = (char *)p;
		size_t at = rng_below(&rng, sizeof(*p) - 64);

		if (n % 10 == 0)
			rng_bytes_at(rng_u64(&rng), 0, p, sizeof(*p));
		/* plausible numbers go further */
		p->jobs = MEMBERS;
		p->phase = PLAN_RUNNING;
		p->first = rng_u64(&rng) >> rng_below(&rng, 64);
		p->next = p->first + rng_below(&rng, PLAN_BATCHES + 2);
		rng_bytes_at(rng_u64(&rng), 0, bytes + at, 64);
		if (n % 3 == 0)
			plan_valid(p); /* else it comes after the check */
		plan_free(p);
		plan_grow(p, rng_u64(&rng), size_of, NULL);
		plan_claim(p, 0, 4, rng_u64(&rng), &index);
		plan_publish(p, 0, p->first, 1, 0, 0);
		plan_n_ready(p, p->first);
		plan_leave(p, 1, PLAN_DIED);
	}
	free(p);
}

/* The numbers change between the check and the loop. */
static void no_loop_is_longer_than_the_area(void **state)
{
	struct staging_plan *p = new_plan();

	(void)state;
	p->first = 7;
	p->next = UINT64_MAX;
	for (uint32_t i = 0; i < MEMBERS; i++)
		p->member[i].done = UINT64_MAX;
	plan_free(p);
	assert_in_range(p->first, 7, 7 + PLAN_BATCHES);
	free(p);
}

static void a_state_that_no_member_leaves_is_not_valid(void **state)
{
	struct staging_plan *p = new_plan(), *good = malloc(sizeof(*good));
	struct plan_batch *b = &p->batch[0];
	uint64_t index;

	(void)state;
	plan_grow(p, ALL, size_of, NULL);
	assert_int_equal(plan_claim(p, 1, 3, ALL, &index), 0);
	assert_true(plan_valid(p));
	memcpy(good, p, sizeof(*p));
	for (int how = 0; how < 8; how++) {
		memcpy(p, good, sizeof(*p));
		switch (how) {
		case 0: b->state = 77; break;
		case 1: b->maker = PLAN_MEMBERS; break;
		case 2: b->maker = PLAN_NOBODY; break; /* and held */
		case 3: b->index++; break;
		case 4: b->offset = BYTES + 1; break;
		case 5: b->bytes = BYTES - b->offset + 1; break;
		case 6: p->member[PLAN_MEMBERS - 1].life = 77; break;
		default: p->next = p->first + PLAN_BATCHES + 1;
		}
		if (plan_valid(p))
			fail_msg("case %d", how);
	}
	free(good);
	free(p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_batch_is_made_once_and_used_by_all),
		cmocka_unit_test(members_die_at_any_time),
		cmocka_unit_test(a_member_makes_no_more_than_its_share),
		cmocka_unit_test(batches_that_all_leave_out_are_skipped),
		cmocka_unit_test(garbage_ends_no_loop_late_and_leaves_no_array),
		cmocka_unit_test(no_loop_is_longer_than_the_area),
		cmocka_unit_test(a_state_that_no_member_leaves_is_not_valid),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

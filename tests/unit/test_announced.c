/* SPDX-License-Identifier: MIT */
/* What is next of an announced future, and what is staged of it. */
#include "tests/unit/future_rig.h"

#include "fs/layer/ahead.h"

/* --- what is next --------------------------------------------------------- */

static bool next(struct announced *n, struct cache_object *ret)
{
	unsigned looks = 100;

	return announced_next(n, &looks, ret);
}

static void expect(struct announced *n, uint32_t node, uint32_t extent)
{
	struct cache_object o;

	assert_true(next(n, &o));
	assert_int_equal(o.key, object_key(node, extent));
	announced_step(n);
}

/* Two epochs of files 1 to 3 of two extents each. */
static struct announced *plan_of(const struct tree *t)
{
	const uint32_t v[FUTURE_FIELDS] = { 1, 0, 1, 2, 3, 3, 0 };
	const uint32_t list[] = { 2, 3, 4, 4, 3, 2 };
	struct text x = make_text(v, list, 6);
	struct future_in in = { 0 };
	struct future *f;
	struct announced *n;
	struct err err;

	assert_int_equal(future_take(&in, t, 0, x.bytes, x.n, &f, &err), 0);
	n = announced_new(f, f->rank, t);
	assert_non_null(n);
	future_put(f);
	free(x.bytes);
	return n;
}

static void accesses_that_were_missed_are_skipped(void **state)
{
	struct cache_object o;
	struct announced *n;
	struct tree t;

	(void)state;
	make_tree(&t, OBJECT_EXTENT + BYTES);
	n = plan_of(&t);
	expect(n, 1, 0);
	announced_missed(n, object_key(1, 1)); /* in the middle of it */
	announced_missed(n, object_key(3, 0));
	announced_missed(n, object_key(3, 1));
	expect(n, 2, 0);
	expect(n, 2, 1);
	announced_met(n);
	/* 3 is skipped, but only in this epoch */
	assert_true(next(n, &o));
	assert_int_equal(announced_at(n), 3);
	expect(n, 3, 0);
	assert_int_equal(o.bytes, OBJECT_EXTENT);
	expect(n, 3, 1);
	expect(n, 2, 0);
	expect(n, 2, 1);
	announced_missed(n, object_key(1, 0));
	assert_int_equal(announced_left(n), 2);
	assert_false(next(n, &o));
	assert_int_equal(announced_left(n), 0);
	announced_free(n);
	tree_fini(&t);
}

/* The last access of an epoch and the first of the next. */
static void a_file_may_come_twice_in_a_row(void **state)
{
	struct announced *n;
	struct tree t;

	(void)state;
	make_tree(&t, BYTES);
	n = plan_of(&t);
	expect(n, 1, 0);
	expect(n, 2, 0);
	expect(n, 3, 0);
	announced_met(n);
	announced_missed(n, object_key(3, 0));
	expect(n, 2, 0);
	expect(n, 1, 0);
	announced_free(n);
	tree_fini(&t);
}

/* Far behind: nothing that was accessed is fetched again. */
static void accesses_ahead_of_an_epoch_are_skipped(void **state)
{
	static const uint32_t accesses[] = { 1, 2, 3, 3, 2 };
	struct cache_object o;
	struct announced *n;
	struct tree t;

	(void)state;
	make_tree(&t, BYTES);
	n = plan_of(&t);
	for (size_t i = 0; i < sizeof(accesses) / sizeof(accesses[0]); i++)
		announced_missed(n, object_key(accesses[i], 0));
	expect(n, 1, 0);
	assert_false(next(n, &o));
	announced_free(n);
	tree_fini(&t);
}

/* A file that is read twice in an epoch is announced once. */
static void what_is_owed_ends_with_the_epoch(void **state)
{
	struct announced *n;
	struct tree t;

	(void)state;
	make_tree(&t, BYTES);
	n = plan_of(&t);
	expect(n, 1, 0);
	expect(n, 2, 0);
	announced_missed(n, object_key(1, 0));
	announced_met(n);
	expect(n, 3, 0);
	expect(n, 3, 0);
	expect(n, 2, 0);
	expect(n, 1, 0);
	announced_free(n);
	tree_fini(&t);
}

/* However many have to be skipped: a few at a time. */
static void each_call_looks_at_a_few_accesses(void **state)
{
	enum { ALL = 1000, MOST = 64 };
	const uint32_t v[FUTURE_FIELDS] = { 1, 0, 1, 1, ALL, 0, 0 };
	uint32_t list[ALL] = { [ALL - 1] = 2 }; /* the others: no file */
	struct text x = make_text(v, list, ALL);
	struct future_in in = { 0 };
	struct cache_object o;
	unsigned looks = MOST;
	uint64_t at = 0;
	struct announced *n;
	struct future *f;
	struct err err;
	struct tree t;

	(void)state;
	make_tree(&t, BYTES);
	assert_int_equal(future_take(&in, &t, 0, x.bytes, x.n, &f, &err), 0);
	n = announced_new(f, f->rank, &t);
	for (; !announced_next(n, &looks, &o); looks = MOST) {
		assert_int_equal(looks, 0);
		assert_int_equal(announced_at(n), at + MOST);
		at = announced_at(n);
	}
	assert_int_equal(o.key, object_key(1, 0));
	assert_int_equal(announced_at(n), ALL - 1);
	announced_free(n);
	future_put(f);
	free(x.bytes);
	tree_fini(&t);
}

static void drop(struct ahead_item *x)
{
	x->at = UINT64_MAX;
}

/* A buffer of more than an epoch. Accesses of something else tell nothing about
 * what is staged. */
static void what_is_staged_serves_whichever_access_comes_first(void **state)
{
	const uint32_t v[FUTURE_FIELDS] = { 1, 0, 1, 2, 4, 4, 0 };
	/* of inodes: files 1 to 7, then 1 again */
	const uint32_t list[] = { 2, 3, 4, 5, 6, 7, 8, 2 };
	struct text x = make_text(v, list, 8);
	struct ahead a = { .limit = 100 * BYTES, .depth = 9, .drop = drop };
	struct ahead_item item[7] = { 0 };
	unsigned looks = 100;
	struct future_in in = { 0 };
	struct cache_object o;
	struct future *f;
	struct err err;
	struct tree t;

	(void)state;
	make_tree(&t, BYTES);
	assert_int_equal(future_take(&in, &t, 0, x.bytes, x.n, &f, &err), 0);
	ahead_announce(&a, announced_new(f, 0, &t));
	future_put(f);
	for (uint32_t i = 0; i < 7; i++) {
		assert_true(ahead_next(&a, &looks, &o));
		assert_int_equal(o.key, object_key(i + 1, 0));
		assert_true(ahead_stage(&a, &item[i], &o));
		ahead_landed(&a, AHEAD_FROM_STORAGE);
	}
	assert_false(ahead_next(&a, &looks, &o));
	ahead_miss(&a, object_key(9, 0));
	assert_false(ahead_next(&a, &looks, &o));
	for (uint32_t i = 0; i < 7; i++) {
		struct ahead_item *found = ahead_find(&a, object_key(i + 1, 0));

		assert_ptr_equal(found, &item[i]);
		ahead_use(&a, found, true);
	}
	assert_int_equal(a.counts[AHEAD_WASTED], 0);
	announced_free(a.plan);
	announced_free(a.over);
	free(x.bytes);
	tree_fini(&t);
}

static void a_plan_that_nobody_follows_is_wrong(void **state)
{
	enum announced_state r;
	unsigned drops = 0, n_accesses = 0;
	struct cache_object o;
	struct announced *n;
	struct tree t;

	(void)state;
	make_tree(&t, BYTES);
	n = plan_of(&t);
	expect(n, 1, 0);
	for (;
	     (r = announced_missed(n, object_key(9, 0))) != ANNOUNCED_IS_WRONG;
	     n_accesses++)
		drops += r == ANNOUNCED_STRAYS;
	assert_in_range(drops, 1, 5);
	assert_in_range(n_accesses, 4096, 10000);
	announced_free(n);
	/* an announced one, whether it was fetched or not, restores trust */
	n = plan_of(&t);
	for (uint32_t i = 0; i < 6; i++) {
		for (int k = 0; k < 500; k++)
			assert_int_equal(announced_missed(n, object_key(9, 0)),
					 ANNOUNCED_FITS);
		if (i)
			announced_met(n);
		else
			announced_missed(n, object_key(1, 0));
		next(n, &o);
	}
	announced_free(n);
	tree_fini(&t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(accesses_that_were_missed_are_skipped),
		cmocka_unit_test(a_file_may_come_twice_in_a_row),
		cmocka_unit_test(accesses_ahead_of_an_epoch_are_skipped),
		cmocka_unit_test(what_is_owed_ends_with_the_epoch),
		cmocka_unit_test(each_call_looks_at_a_few_accesses),
		cmocka_unit_test(
			what_is_staged_serves_whichever_access_comes_first),
		cmocka_unit_test(a_plan_that_nobody_follows_is_wrong),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

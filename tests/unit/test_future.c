/* SPDX-License-Identifier: MIT */
/* The future that a loader announces: how it arrives, and what follows from it
 * for the caches. */
#include "tests/unit/future_rig.h"

#include <errno.h>

/* --- arrival -------------------------------------------------------------- */

static void a_future_arrives_in_pieces_of_any_size(void **state)
{
	const uint32_t v[FUTURE_FIELDS] = { 1, 1, 2, 3, 2, 1, 1 };
	const uint32_t list[] = { 2, 3, 0, 5, 6, 7, 8, 9 };
	struct text x = make_text(v, list, 8);
	struct future_in in = { 0 };
	struct future *f = NULL;
	struct err err;
	struct tree t;

	(void)state;
	make_tree(&t, BYTES);
	for (size_t piece = 1; piece < x.n; piece += 3) {
		for (size_t at = 0; at < x.n; at += piece) {
			size_t n = x.n - at < piece ? x.n - at : piece;

			assert_null(f);
			assert_int_equal(future_take(&in, &t, at, x.bytes + at,
						     n, &f, &err),
					 0);
		}
		assert_non_null(f);
		assert_int_equal(f->n, 4);
		assert_true(f->continues && f->rank == 1 && f->world == 2);
		assert_int_equal(future_access(f, 1, 0), 2);
		assert_int_equal(future_access(f, 0, 1), TREE_NONE);
		assert_int_equal(future_access(f, 1, 3), 8);
		future_put(f);
		f = NULL;
	}
	free(x.bytes);
	tree_fini(&t);
}

static void a_bad_future_is_refused(void **state)
{
	static const struct {
		uint32_t v[FUTURE_FIELDS], list;
		int r;
	} bad[] = {
		{ { 2, 0, 1, 1, 1, 1, 0 }, 2, -EINVAL }, /* version */
		{ { 1, 1, 1, 1, 1, 1, 0 }, 2, -EINVAL }, /* rank */
		{ { 1, 0, 0, 1, 1, 1, 0 }, 2, -EINVAL }, /* world */
		{ { 1, 0, 1 << 17, 1, 1, 1, 0 }, 2, -EINVAL },
		{ { 1, 0, 1, 0, 1, 1, 0 }, 2, -EINVAL }, /* epochs */
		{ { 1, 0, 1, 1, 0, 1, 0 }, 2, -EINVAL }, /* accesses */
		{ { 1, 0, 1, 1, 1, 1, 2 }, 2, -EINVAL }, /* flags */
		{ { 1, 0, 1, 1, 1, 1, 0 }, 1, -EINVAL }, /* a folder */
		{ { 1, 0, 1, 1, 1, 1, 0 }, N_FILES + 2, -EINVAL },
		{ { 1, 0, 1, 1, 1, 1, 0 }, UINT32_MAX, -EINVAL },
		{ { 1, 0, 1, 1, FUTURE_MOST + 1, 1, 0 }, 2, -E2BIG },
		{ { 1, 0, 2, UINT32_MAX, 1, UINT32_MAX, 0 }, 2, -E2BIG },
		{ { 1, 0, 1, 1, 1, 1, 0 }, 2, 0 },
	};
	struct future_in in = { 0 };
	struct future *f;
	struct tree t;

	(void)state;
	make_tree(&t, BYTES);
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		struct text x = make_text(bad[i].v, &bad[i].list, 1);
		struct err err = { 0 };

		assert_int_equal(future_take(&in, &t, 0, x.bytes, x.n, &f,
					     &err),
				 bad[i].r);
		assert_int_equal(!f, bad[i].r < 0);
		assert_int_equal(in.bytes, 0);
		assert_null(in.future);
		future_put(f);
		/* more than announced, a gap, no magic */
		x.bytes = realloc(x.bytes, x.n + 1);
		x.bytes[x.n] = 0;
		assert_true(future_take(&in, &t, 0, x.bytes, x.n + 1, &f,
					&err) < 0);
		assert_int_equal(future_take(&in, &t, 5, x.bytes, x.n, &f,
					     &err),
				 -EINVAL);
		x.bytes[0] = 'G';
		assert_int_equal(future_take(&in, &t, 0, x.bytes, x.n, &f,
					     &err),
				 -EINVAL);
		free(x.bytes);
	}
	tree_fini(&t);
}

static void a_future_can_begin_anew(void **state)
{
	const uint32_t v[FUTURE_FIELDS] = { 1, 0, 1, 1, 2, 2, 0 };
	const uint32_t list[] = { 2, 3 };
	struct text x = make_text(v, list, 2);
	struct future_in in = { 0 };
	struct future *f;
	struct err err;
	struct tree t;

	(void)state;
	make_tree(&t, BYTES);
	for (size_t n = 1; n < x.n; n++) {
		assert_int_equal(future_take(&in, &t, 0, x.bytes, n, &f, &err),
				 0);
		assert_null(f);
	}
	assert_int_equal(future_take(&in, &t, 0, x.bytes, x.n, &f, &err), 0);
	assert_non_null(f);
	future_put(f);
	assert_int_equal(future_take(&in, &t, 0, x.bytes, x.n - 1, &f, &err),
			 0);
	future_in_fini(&in);
	free(x.bytes);
	tree_fini(&t);
}

static void a_future_that_ends_early_is_refused(void **state)
{
	const uint32_t v[FUTURE_FIELDS] = { 1, 0, 1, 1, 2, 2, 0 };
	const uint32_t list[] = { 2, 3 };
	struct text x = make_text(v, list, 2);
	struct future_in in = { 0 };
	struct future *f;
	struct tree t;

	(void)state;
	make_tree(&t, BYTES);
	for (size_t n = 0; n <= x.n; n++) {
		struct err err = { 0 };
		bool whole = n == 0 || n == x.n;

		assert_int_equal(future_take(&in, &t, 0, x.bytes, n, &f, &err),
				 0);
		future_put(f);
		assert_int_equal(future_end(&in, &err), whole ? 0 : -EINVAL);
		assert_int_equal(!strstr(err.text, "ends after"), whole);
		/* what follows is no part of a list */
		assert_true(future_take(&in, &t, n ? n : 1, x.bytes, 1, &f,
					&err) < 0);
	}
	free(x.bytes);
	tree_fini(&t);
}

/* --- placement ------------------------------------------------------------ */

static struct place *start(const struct tree *t, uint32_t n, uint32_t self)
{
	const struct place_config c = { .tree = t,
					.seed = 1,
					.n_nodes = n,
					.self = self,
					.capacity_bytes = t->file_bytes / 2,
					.extent_bytes = OBJECT_EXTENT };
	struct place *p;

	assert_int_equal(place_new(&c, &p), 0);
	return p;
}

/* By definition: how often a rank accesses a file, and when first. */
static void accesses_of(const struct future *f, uint32_t rank, uint32_t node,
			uint32_t *ret_n, uint64_t *ret_first)
{
	*ret_n = 0;
	*ret_first = UINT64_MAX;
	for (uint64_t i = f->n; i-- > 0;)
		if (future_access(f, rank, i) == node) {
			++*ret_n;
			*ret_first = i;
		}
}

static unsigned tier_of(const struct place *p, uint64_t key)
{
	for (unsigned t = 0; t < 2; t++)
		if (place_keeps(p, key, t))
			return t;
	return 2;
}

/* Of two files, the one in the faster tier is accessed more often, or as often
 * and earlier. Files are of one size, so that no gap is left. */
static void check_kept(const struct place *p, const struct future *f,
		       uint32_t rank)
{
	uint32_t n[N_FILES], tier[N_FILES], kept = 0;
	uint64_t first[N_FILES];

	for (uint32_t i = 0; i < N_FILES; i++) {
		accesses_of(f, rank, i + 1, &n[i], &first[i]);
		tier[i] = tier_of(p, object_key(i + 1, 0));
		kept += tier[i] < 2;
	}
	assert_int_equal(kept, N_FILES / 2);
	for (uint32_t i = 0; i < N_FILES; i++)
		for (uint32_t k = 0; k < N_FILES; k++)
			if (tier[i] < tier[k])
				assert_true(
					n[i] > n[k] ||
					(n[i] == n[k] && first[i] < first[k]));
}

/* The owner keeps it, and no other one keeps it in a faster tier, or in the
 * same and accesses it earlier. */
static void check_owner(struct place *const *p, const struct future *f,
			uint32_t n, uint32_t node)
{
	uint64_t key = object_key(node, 0), best_at = UINT64_MAX;
	uint32_t best = PLACE_NONE, count;
	unsigned best_tier = 2;

	for (uint32_t k = 0; k < n; k++) {
		unsigned tier = tier_of(p[k], key);
		uint64_t at;

		accesses_of(f, k, node, &count, &at);
		if (tier < best_tier ||
		    (tier == best_tier && tier < 2 && at < best_at)) {
			best = k;
			best_tier = tier;
			best_at = at;
		}
	}
	for (uint32_t k = 0; k < n; k++)
		assert_int_equal(place_owner(p[k], key), best);
}

static void a_node_keeps_what_it_accesses_most_and_first(void **state)
{
	static const uint32_t worlds[] = { 2, 4 };
	const uint64_t bytes[] = { 20 * BYTES, 80 * BYTES };
	const struct foresee_tiers tiers = { bytes, 2 };
	struct err err;
	struct tree t;

	(void)state;
	make_tree(&t, BYTES);
	for (size_t w = 0; w < 2; w++) {
		uint32_t n = worlds[w];
		struct place *p[4];
		struct future *f[4];

		for (uint32_t k = 0; k < n; k++) {
			p[k] = start(&t, n, k);
			f[k] = shuffled(&t, k, n, EPOCHS);
			assert_int_equal(foresee(p[k], f[k], &tiers, &err), 1);
			/* the same again changes nothing */
			assert_int_equal(foresee(p[k], f[k], &tiers, &err), 0);
			check_kept(p[k], f[k], k);
		}
		for (uint32_t i = 0; i < N_FILES; i++)
			check_owner(p, f[0], n, i + 1);
		for (uint32_t k = 0; k < n; k++) {
			place_free(p[k]);
			future_put(f[k]);
		}
	}
	tree_fini(&t);
}

struct all_kept {
	unsigned tier[4][N_FILES + 1]; /* of each rank and object */
};

static void note(void *ctx, uint32_t rank, uint32_t object, unsigned tier)
{
	struct all_kept *all = ctx;

	all->tier[rank][object] = tier;
}

/* A simulator's placement of all nodes is that of each mount. */
static void one_computation_places_for_all_nodes(void **state)
{
	enum { NODES = 4 };
	const uint64_t bytes[] = { 20 * BYTES, 80 * BYTES };
	const struct foresee_tiers tiers = { bytes, 2 };
	struct place *all;
	struct all_kept kept;
	uint16_t *owner;
	struct err err;
	struct tree t;

	(void)state;
	make_tree(&t, BYTES);
	memset(&kept, 0xff, sizeof(kept));
	all = start(&t, NODES, PLACE_NONE);
	for (uint32_t k = 0; k < NODES; k++) {
		struct place *p = start(&t, NODES, k);
		struct future *f = shuffled(&t, k, NODES, EPOCHS);

		if (k == 0) {
			assert_int_equal(foresee_all(all, f, &tiers, note,
						     &kept, &owner),
					 0);
			place_reown(all, owner);
		}
		assert_int_equal(foresee(p, f, &tiers, &err), 1);
		for (uint32_t i = 1; i <= N_FILES; i++) {
			uint64_t key = object_key(i, 0);

			assert_int_equal(place_owner(p, key),
					 place_owner(all, key));
			assert_int_equal(MIN(kept.tier[k][place_first(p, i)],
					     2u),
					 tier_of(p, key));
		}
		place_free(p);
		future_put(f);
	}
	place_free(all);
	tree_fini(&t);
}

static void the_future_of_other_nodes_is_refused(void **state)
{
	const uint64_t bytes = 10 * BYTES;
	const struct foresee_tiers tiers = { &bytes, 1 };
	struct err err = { 0 };
	struct future *f;
	struct place *p;
	struct tree t;

	(void)state;
	make_tree(&t, BYTES);
	p = start(&t, 2, 0);
	f = shuffled(&t, 1, 2, 1);
	assert_int_equal(foresee(p, f, &tiers, &err), -EINVAL);
	assert_non_null(strstr(err.text, "rank 1 of 2"));
	future_put(f);
	f = shuffled(&t, 0, 4, 1);
	assert_int_equal(foresee(p, f, &tiers, &err), -EINVAL);
	future_put(f);
	place_free(p);
	tree_fini(&t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_future_arrives_in_pieces_of_any_size),
		cmocka_unit_test(a_bad_future_is_refused),
		cmocka_unit_test(a_future_can_begin_anew),
		cmocka_unit_test(a_future_that_ends_early_is_refused),
		cmocka_unit_test(a_node_keeps_what_it_accesses_most_and_first),
		cmocka_unit_test(one_computation_places_for_all_nodes),
		cmocka_unit_test(the_future_of_other_nodes_is_refused),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

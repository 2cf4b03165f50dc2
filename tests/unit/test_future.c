/* SPDX-License-Identifier: MIT */
/* The future that a loader announces: how it arrives, what follows from it for
 * the caches, and which object of it is next. */
#include "tests/unit/test.h"

#include <endian.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "common/rng.h"
#include "common/util.h"
#include "fs/layer/ahead.h"
#include "fs/peer/foresee.h"
#include "fs/server/object.h"

enum { N_FILES = 200, BYTES = 1000, EPOCHS = 8 };

/* Files of `bytes` in the root: node i + 1 is file i. */
static void make_tree(struct tree *t, uint64_t bytes)
{
	struct tree_child files[N_FILES] = { 0 };
	char names[N_FILES][8];

	assert_int_equal(tree_init(t), 0);
	for (uint32_t i = 0; i < N_FILES; i++) {
		snprintf(names[i], sizeof(names[i]), "f%03u", i);
		files[i] = (struct tree_child){ .name = names[i],
						.bytes = bytes,
						.mode = S_IFREG | 0444 };
	}
	assert_int_equal(tree_add_children(t, TREE_ROOT, files, N_FILES), 0);
}

struct text {
	unsigned char *bytes;
	size_t n;
};

static void put(struct text *x, uint32_t v)
{
	v = htole32(v);
	memcpy(x->bytes + x->n, &v, sizeof(v));
	x->n += sizeof(v);
}

/* `list`: `world * (first + (epochs - 1) * rest)` inode numbers. */
static struct text make_text(const uint32_t v[FUTURE_FIELDS],
			     const uint32_t *list, size_t n)
{
	struct text x = { malloc(FUTURE_HEAD + n * 4), 8 };

	memcpy(x.bytes, FUTURE_MAGIC, 8);
	for (int i = 0; i < FUTURE_FIELDS; i++)
		put(&x, v[i]);
	for (size_t i = 0; i < n; i++)
		put(&x, list[i]);
	return x;
}

/* Shuffled epochs of all files, seen by one rank. */
static struct future *shuffled(const struct tree *t, uint32_t rank,
			       uint32_t world, uint32_t epochs)
{
	const uint32_t v[FUTURE_FIELDS] = {
		FUTURE_IS_VERSION, rank, world, epochs, N_FILES / world,
		N_FILES / world,   0
	};
	uint32_t list[EPOCHS * N_FILES];
	struct future_in in = { 0 };
	struct future *f;
	struct err err;
	struct text x;

	for (uint32_t e = 0; e < epochs; e++) {
		struct rng rng = rng_stream(3, "epoch", e);

		for (uint32_t i = 0; i < N_FILES; i++)
			list[e * N_FILES + i] = i + 2;
		rng_shuffle_u32(&rng, list + (size_t)e * N_FILES, N_FILES);
	}
	x = make_text(v, list, (size_t)epochs * N_FILES);
	assert_int_equal(future_take(&in, t, 0, x.bytes, x.n, &f, &err), 0);
	assert_non_null(f);
	free(x.bytes);
	return f;
}

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
		cmocka_unit_test(a_future_arrives_in_pieces_of_any_size),
		cmocka_unit_test(a_bad_future_is_refused),
		cmocka_unit_test(a_future_can_begin_anew),
		cmocka_unit_test(a_future_that_ends_early_is_refused),
		cmocka_unit_test(a_node_keeps_what_it_accesses_most_and_first),
		cmocka_unit_test(one_computation_places_for_all_nodes),
		cmocka_unit_test(the_future_of_other_nodes_is_refused),
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

/* SPDX-License-Identifier: MIT */
/* Who keeps which object of a partitioned cache. */
#include "tests/unit/test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "fs/peer/place.h"

enum { N_FILES = 400, EXTENT = 1000 };

/* Files of 1 to 3000 bytes in the root; some are empty. */
static void make_tree(struct tree *t, uint64_t skew)
{
	struct tree_child files[N_FILES] = { 0 };
	char names[N_FILES][8];

	assert_int_equal(tree_init(t), 0);
	for (uint32_t i = 0; i < N_FILES; i++) {
		snprintf(names[i], sizeof(names[i]), "f%03u", i);
		files[i] = (struct tree_child){
			.name = names[i],
			.bytes = i % 50 ? 1 + (i * 7919 + skew) % 3000 : 0,
			.mode = S_IFREG | 0444,
		};
	}
	assert_int_equal(tree_add_children(t, TREE_ROOT, files, N_FILES), 0);
}

static struct place *start(const struct tree *t, uint32_t n, uint32_t self,
			   uint64_t seed, double fraction)
{
	const struct place_config c = {
		.tree = t,
		.seed = seed,
		.n_nodes = n,
		.self = self,
		.capacity_bytes = (uint64_t)((double)t->file_bytes * fraction),
		.extent_bytes = EXTENT,
	};
	struct place *p;

	assert_int_equal(place_new(&c, &p), 0);
	return p;
}

/* Of node `self`: what it keeps fits, and all of its own is kept. */
static uint64_t check_kept(const struct tree *t, const struct place *p,
			   uint32_t self, double fraction)
{
	struct place_sums sums = place_sums(p);
	uint64_t kept = 0;

	for (uint32_t i = 1; i < t->n_nodes; i++) {
		for (uint32_t e = 0; e * EXTENT < t->nodes[i].bytes; e++) {
			uint64_t key = (uint64_t)i << 32 | e;

			if (place_keeps(p, key, 0))
				kept += place_bytes(p, key);
			else
				assert_int_not_equal(place_owner(p, key), self);
		}
	}
	assert_int_equal(kept, sums.owned + sums.surplus);
	assert_true((double)kept <= (double)t->file_bytes * fraction);
	return sums.none;
}

static void all_nodes_agree_and_nothing_is_too_much(void **state)
{
	static const struct {
		uint32_t n;
		double fraction;
	} cases[] = { { 2, .65 }, { 2, .5 },  { 3, .4 },
		      { 2, .35 }, { 4, .25 }, { 5, 1.5 } };
	struct tree t;

	(void)state;
	make_tree(&t, 0);
	for (size_t c = 0; c < sizeof(cases) / sizeof(cases[0]); c++) {
		struct place *first =
			start(&t, cases[c].n, 0, 7, cases[c].fraction);
		uint64_t owned_by_all = 0;

		for (uint32_t k = 0; k < cases[c].n; k++) {
			struct place *p =
				start(&t, cases[c].n, k, 7, cases[c].fraction);
			uint64_t none;

			for (uint32_t i = 1; i < t.n_nodes; i++)
				if (t.nodes[i].bytes)
					assert_int_equal(
						place_owner(p,
							    (uint64_t)i << 32),
						place_owner(first,
							    (uint64_t)i << 32));
			none = check_kept(&t, p, k, cases[c].fraction);
			if (cases[c].n * cases[c].fraction > 1.01)
				assert_int_equal(none, 0);
			owned_by_all += place_sums(p).owned;
			if (k == cases[c].n - 1)
				assert_int_equal(owned_by_all + none,
						 t.file_bytes);
			place_free(p);
		}
		place_free(first);
	}
	tree_fini(&t);
}

/* Exactly what there is: the least is left over. */
static void a_tight_fit_leaves_next_to_nothing(void **state)
{
	struct place_sums sums;
	struct place *p;
	struct tree t;

	(void)state;
	make_tree(&t, 0);
	p = start(&t, 2, 0, 1, .5);
	assert_in_range(place_sums(p).none, 0, 20);
	place_free(p);
	/* and a node that has room for all keeps all */
	p = start(&t, 2, 0, 1, 1);
	sums = place_sums(p);
	assert_int_equal(sums.owned + sums.surplus, t.file_bytes);
	assert_in_range(sums.owned, t.file_bytes / 2 - 20,
			t.file_bytes / 2 + 20);
	place_free(p);
	tree_fini(&t);
}

static void the_seed_decides(void **state)
{
	struct place *a, *b;
	uint32_t same = 0, n = 0;
	struct tree t;

	(void)state;
	make_tree(&t, 0);
	a = start(&t, 2, 0, 1, .3);
	b = start(&t, 2, 0, 2, .3);
	for (uint32_t i = 1; i < t.n_nodes; i++) {
		if (!t.nodes[i].bytes)
			continue;
		n++;
		same += place_owner(a, (uint64_t)i << 32) ==
			place_owner(b, (uint64_t)i << 32);
	}
	assert_in_range(same, n / 5, n / 2);
	place_free(a);
	place_free(b);
	tree_fini(&t);
}

static void any_key_is_safe(void **state)
{
	struct place *p;
	struct tree t;

	(void)state;
	make_tree(&t, 0);
	p = start(&t, 2, 0, 1, 1);
	assert_int_equal(place_bytes(p, 0), 0); /* a folder */
	assert_int_equal(place_bytes(p, UINT64_MAX), 0);
	assert_int_equal(place_bytes(p, (uint64_t)t.n_nodes << 32), 0);
	assert_int_equal(place_bytes(p, 1ull << 32 | UINT32_MAX), 0);
	for (uint32_t i = 1; i < t.n_nodes; i++) {
		uint64_t sum = 0, bytes, key = (uint64_t)i << 32;

		while ((bytes = place_bytes(p, key++)))
			sum += bytes;
		assert_int_equal(sum, t.nodes[i].bytes);
	}
	place_free(p);
	tree_fini(&t);
}

/* Nodes of different builds share a cache (PEER_VERSION): the placement must
 * not change. The values are those of the first release of the protocol. */
static void the_placement_is_that_of_the_protocol(void **state)
{
	static const struct {
		uint32_t n, self;
		double fraction;
		uint64_t want;
	} cases[] = {
		{ 3, 1, .4, 0xf04bdfde12d2628a },
		{ 5, 4, .1, 0xc48cff993741cb10 },
		{ 2, 0, .9, 0x5c64d6dfd084357e },
	};
	struct tree t;

	(void)state;
	make_tree(&t, 0);
	for (size_t c = 0; c < sizeof(cases) / sizeof(cases[0]); c++) {
		struct place *p = start(&t, cases[c].n, cases[c].self, 7,
					cases[c].fraction);
		uint64_t hash = 0;

		for (uint32_t i = 1; i < t.n_nodes; i++)
			for (uint32_t e = 0; e * EXTENT < t.nodes[i].bytes;
			     e++) {
				uint64_t key = (uint64_t)i << 32 | e;

				hash = hash * 31 + place_owner(p, key) * 2 +
				       place_keeps(p, key, 0);
			}
		assert_int_equal(hash, cases[c].want);
		place_free(p);
	}
	tree_fini(&t);
}

/* One placement answers for all nodes. */
static void one_placement_knows_what_each_node_keeps(void **state)
{
	static const uint32_t nodes[] = { 3, PLACE_NODES };
	struct tree t;

	(void)state;
	make_tree(&t, 0);
	for (size_t c = 0; c < 2; c++) {
		struct place *first = start(&t, nodes[c], 0, 7, .4);
		uint32_t *sizes = place_sizes(first);

		for (uint32_t k = 0; k < nodes[c]; k += nodes[c] / 3) {
			struct place *own = start(&t, nodes[c], k, 7, .4);
			uint64_t *kept, surplus;

			assert_int_equal(place_keep(first, sizes, k, &kept,
						    &surplus),
					 0);
			assert_int_equal(surplus, place_sums(own).surplus);
			for (uint32_t i = 1; i < t.n_nodes; i++)
				if (t.nodes[i].bytes)
					assert_int_equal(
						place_has(first, kept,
							  (uint64_t)i << 32),
						place_keeps(own,
							    (uint64_t)i << 32,
							    0));
			free(kept);
			place_free(own);
		}
		free(sizes);
		place_free(first);
	}
	tree_fini(&t);
}

static void the_fingerprint_is_of_names_sizes_and_times(void **state)
{
	unsigned char a[PLACE_FINGERPRINT], b[PLACE_FINGERPRINT];
	struct tree t, other;

	(void)state;
	make_tree(&t, 0);
	make_tree(&other, 0);
	assert_int_equal(place_fingerprint(&t, a), 0);
	assert_int_equal(place_fingerprint(&other, b), 0);
	assert_memory_equal(a, b, sizeof(a));
	other.nodes[5].mtime_ns++;
	assert_int_equal(place_fingerprint(&other, b), 0);
	assert_memory_not_equal(a, b, sizeof(a));
	tree_fini(&other);
	make_tree(&other, 1);
	assert_int_equal(place_fingerprint(&other, b), 0);
	assert_memory_not_equal(a, b, sizeof(a));
	other = (tree_fini(&other), t);
	other.names[other.nodes[9].name] ^= 1;
	assert_int_equal(place_fingerprint(&other, b), 0);
	assert_memory_not_equal(a, b, sizeof(a));
	tree_fini(&t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(all_nodes_agree_and_nothing_is_too_much),
		cmocka_unit_test(a_tight_fit_leaves_next_to_nothing),
		cmocka_unit_test(the_seed_decides),
		cmocka_unit_test(any_key_is_safe),
		cmocka_unit_test(the_placement_is_that_of_the_protocol),
		cmocka_unit_test(one_placement_knows_what_each_node_keeps),
		cmocka_unit_test(the_fingerprint_is_of_names_sizes_and_times),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

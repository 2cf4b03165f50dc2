/* SPDX-License-Identifier: MIT */
/* A list of future accesses, in two pieces; and what follows from one that is
 * accepted. */
#include <string.h>
#include <sys/stat.h>

#include "fs/layer/announced.h"
#include "fs/peer/foresee.h"
#include "fs/server/object.h"
#include "tests/fuzz/fuzz.h"

static void make_tree(struct tree *t)
{
	struct tree_child files[] = {
		{ .name = "a", .bytes = 1, .mode = S_IFREG | 0444 },
		{ .name = "b", .bytes = 0, .mode = S_IFREG | 0444 },
		{ .name = "c", .bytes = 9000000, .mode = S_IFREG | 0444 },
		{ .name = "d", .mode = S_IFDIR | 0555 },
	};

	PROMISED(tree_init(t) == 0);
	PROMISED(tree_add_children(t, TREE_ROOT, files, 4) == 0);
}

static void place(struct future *f, const struct tree *t)
{
	const uint64_t bytes[] = { 1, OBJECT_EXTENT };
	const struct foresee_tiers tiers = { bytes, 2 };
	const struct place_config c = { .tree = t,
					.n_nodes = f->world,
					.self = f->rank,
					.capacity_bytes = bytes[0] + bytes[1],
					.extent_bytes = OBJECT_EXTENT };
	struct place_sums sums;
	struct err err;
	struct place *p;

	if (f->world > PLACE_NODES)
		return;
	PROMISED(place_new(&c, &p) == 0);
	PROMISED(foresee(p, f, &tiers, &err) >= 0);
	sums = place_sums(p);
	PROMISED(sums.owned + sums.surplus <= bytes[0] + bytes[1]);
	place_free(p);
}

/* A few looks at a time. */
static bool next(struct announced *n, struct cache_object *ret)
{
	unsigned looks;

	do {
		looks = 3;
		if (announced_next(n, &looks, ret))
			return true;
	} while (!looks);
	return false;
}

static void walk(struct future *f, const struct tree *t)
{
	struct announced *n = announced_new(f, f->rank, t);
	struct cache_object o;
	uint64_t objects = 0;

	PROMISED(n && announced_left(n) == f->n);
	for (; next(n, &o); announced_step(n)) {
		PROMISED(o.bytes > 0 && o.bytes <= OBJECT_EXTENT);
		if (++objects % 5 == 0)
			announced_missed(n, o.key ^ (objects & 1));
	}
	PROMISED(announced_left(n) == 0 && objects <= f->n * 3);
	announced_free(n);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	struct future_in in = { 0 };
	size_t half = n ? data[n - 1] % n : 0;
	struct future *f;
	struct err err = { 0 };
	struct tree t;
	int r;

	make_tree(&t);
	r = future_take(&in, &t, 0, data, half, &f, &err);
	if (r == 0 && !f)
		r = future_take(&in, &t, half, data + half, n - half, &f, &err);
	PROMISED(r == 0 || (err.text[0] && !f && !in.future));
	if (f) {
		place(f, &t);
		walk(f, &t);
	}
	/* the rest never comes */
	PROMISED((future_end(&in, &err) < 0) == (r == 0 && !f && n));
	future_put(f);
	tree_fini(&t);
	return 0;
}

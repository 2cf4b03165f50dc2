/* SPDX-License-Identifier: MIT */
/* Records of .gpemu/importance, and the policy that follows them. */
#include <math.h>
#include <sys/stat.h>

#include "common/system/importance.h"
#include "fs/cache/cache.h"
#include "fs/server/object.h"
#include "fs/source/importance.h"
#include "tests/fuzz/fuzz.h"

extern const struct policy_ops policy_shade;

enum { N_FILES = 5, CAPACITY = 3 };

static void make_tree(struct tree *t)
{
	struct tree_child files[N_FILES + 1] = {
		{ .name = "a", .bytes = 1, .mode = S_IFREG | 0444 },
		{ .name = "b", .bytes = 1, .mode = S_IFREG | 0444 },
		{ .name = "c", .bytes = 2, .mode = S_IFREG | 0444 },
		{ .name = "d", .mode = S_IFDIR | 0555 },
		{ .name = "e", .bytes = 3, .mode = S_IFREG | 0444 },
		{ .name = "f", .bytes = 1, .mode = S_IFREG | 0444 },
	};

	PROMISED(tree_init(t) == 0);
	PROMISED(tree_add_children(t, TREE_ROOT, files, N_FILES + 1) == 0);
}

/* A record is announced, and its file is read. */
static void follow(const struct tree *t, struct importance *of, struct cache *c,
		   const uint8_t *at)
{
	struct cache_entry *e;
	uint32_t inode;
	float v;

	importance_get(at, &inode, &v);
	PROMISED(inode && inode <= t->n_nodes && isfinite(v) && v >= 0);
	PROMISED(S_ISREG(t->nodes[inode - 1].mode));
	of->v[inode - 1] = v;

	struct cache_object o = { .key = object_key(inode - 1, 0),
				  .bytes = t->nodes[inode - 1].bytes,
				  .file_bytes = t->nodes[inode - 1].bytes };

	PROMISED(importance_of(of, o.key) == (double)v);
	cache_reweigh(c, o.key);
	cache_access(c, &o, &e);
	PROMISED(cache_used(c) <= CAPACITY);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	struct importance of = { 0 };
	struct policy_params params = { .capacity_bytes = CAPACITY,
					.importance = importance_of,
					.importance_ctx = &of };
	struct err err = { 0 };
	struct cache *c;
	struct tree t;
	int r;

	make_tree(&t);
	PROMISED(cache_new(&policy_shade, &params, NULL, NULL, &c, &err) == 0);
	r = importance_check(&t, data, n, &err);
	PROMISED(r == 0 || (r < 0 && err.text[0]));
	PROMISED(importance_init(&of, t.n_nodes) == 0);
	for (size_t i = 0; r == 0 && i < n; i += IMPORTANCE_RECORD)
		follow(&t, &of, c, data + i);
	cache_free(c);
	importance_fini(&of);
	tree_fini(&t);
	return 0;
}

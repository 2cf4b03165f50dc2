/* SPDX-License-Identifier: MIT */
/* Sources of a malicious owner, or nested too deep. */
#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/posix_acl.h>
#include <linux/posix_acl_xattr.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <xxhash.h>

#include "common/pack/pack.h"
#include "common/util.h"
#include "fs/source/acl.h"
#include "fs/source/source.h"
#include "tests/unit/test.h"

extern const struct source_ops source_dir, source_pack;

struct rig {
	const struct source_ops *ops;
	void *state;
	struct tree tree;
	struct err err;
};

static int scan(struct rig *s, const struct source_ops *ops, const char *arg)
{
	*s = (struct rig){ .ops = ops, .state = calloc(1, 4096) };
	assert_true(ops->plugin.state_size <= 4096);
	assert_int_equal(tree_init(&s->tree), 0);
	assert_int_equal(ops->init(s->state, arg, &s->err), 0);
	return ops->scan(s->state, &s->tree, &s->err);
}

static void end(struct rig *s)
{
	s->ops->fini(s->state);
	free(s->state);
	tree_fini(&s->tree);
}

/* --- a pack with a folder of the mount's name ----------------------------- */

static const char *const paths[] = { ".gpemu/control", "a/x", ".gpemu/stats",
				     "a/.gpemu", "b" };

/* groups {control} {x, stats} {.gpemu, b}, no file has bytes */
static void write_pack(const char *path)
{
	struct pack_file files[5] = { 0 };
	uint32_t first[] = { 0, 1, 3, 5 }, sorted[] = { 0, 2, 3, 1, 4 };
	unsigned char header[PACK_HEADER_BYTES], *index;
	struct pack p = { .files = files,
			  .n_files = 5,
			  .n_groups = 3,
			  .first = first,
			  .group_size = 2,
			  .order = "random" };
	struct pack_header h = { .index_offset = 4 * PACK_ALIGN };
	int fd = open(path, O_WRONLY | O_CREAT, 0640);
	size_t n;

	for (uint32_t i = 0, g = 0; i < 5; i++) {
		g += g < 3 && first[g] == i;
		files[i] = (struct pack_file){ .path = paths[i],
					       .offset = g * PACK_ALIGN,
					       .mtime_ns = -1500000000,
					       .mode = 0777 };
	}
	p.n_classes = pack_classify(files, sorted, 5);
	assert_int_equal(pack_write_index(&p, &index, &n), 0);
	h.index_bytes = n;
	h.index_sum = XXH3_64bits(index, n);
	pack_write_header(&h, header);
	assert_int_equal(pwrite(fd, header, sizeof(header), 0), sizeof(header));
	assert_int_equal(pwrite(fd, index, n, (off_t)h.index_offset), n);
	assert_int_equal(fchmod(fd, 0640), 0);
	close(fd);
	free(index);
}

static void check_groups(struct rig *s)
{
	const struct tree *t = &s->tree;
	struct grouping g;

	assert_int_equal(s->ops->groups(s->state, t, &g), 0);
	assert_int_equal(g.n_files, 3);
	assert_int_equal(g.n_groups, 2);
	assert_int_equal(g.first[0], 0);
	assert_int_equal(g.first[1], 1);
	assert_int_equal(g.first[2], 3);
	assert_int_equal(g.file[0], tree_find(t, "a/x"));
	assert_int_equal(g.file[1], tree_find(t, "a/.gpemu"));
	assert_int_equal(g.file[2], tree_find(t, "b"));
	grouping_free(&g);
}

static void test_pack_hides(void **state)
{
	char path[] = "/tmp/sources.XXXXXX";
	const struct tree_node *node;
	struct rig s;

	(void)state;
	close(mkstemp(path));
	write_pack(path);
	assert_int_equal(scan(&s, &source_pack, path), 0);
	assert_int_equal(s.tree.n_hidden, 1);
	assert_int_equal(s.tree.n_files, 3);
	assert_int_equal(tree_find(&s.tree, ".gpemu"), TREE_NONE);
	check_groups(&s);
	/* who may read the pack, and no others, may enter its folders */
	node = &s.tree.nodes[TREE_ROOT];
	assert_int_equal(node->mode, S_IFDIR | 0550);
	assert_int_equal(node->uid, geteuid());
	node = &s.tree.nodes[tree_find(&s.tree, "a")];
	assert_int_equal(node->mode, S_IFDIR | 0550);
	node = &s.tree.nodes[tree_find(&s.tree, "a/x")];
	assert_int_equal(node->mode, S_IFREG | 0555);
	assert_int_equal(node->mtime_s, -2);
	assert_int_equal(node->mtime_ns, 500000000);
	end(&s);
	unlink(path);
}

/* --- a path too long ------------------------------------------------------ */

enum { DEEP = PATH_MAX / NAME_MAX + 2 };

static void test_too_deep(void **state)
{
	char top[] = "/tmp/sources.XXXXXX", name[NAME_MAX + 1], want[PATH_MAX];
	int fds[DEEP + 1];
	struct rig s;

	(void)state;
	assert_non_null(mkdtemp(top));
	memset(name, 'd', NAME_MAX);
	name[NAME_MAX] = 0;
	fds[0] = open(top, O_RDONLY | O_DIRECTORY);
	for (int i = 0; i < DEEP; i++) {
		assert_int_equal(mkdirat(fds[i], name, 0755), 0);
		fds[i + 1] = openat(fds[i], name, O_RDONLY | O_DIRECTORY);
	}
	assert_int_equal(scan(&s, &source_dir, top), -ENAMETOOLONG);
	snprintf(want, sizeof(want), "%s/.../%s", top, name);
	/* a text may be cut off */
	assert_int_equal(strncmp(s.err.text, want, strlen(top) + 100), 0);
	end(&s);
	for (int i = DEEP; i-- > 0;) {
		close(fds[i + 1]);
		unlinkat(fds[i], name, AT_REMOVEDIR);
	}
	close(fds[0]);
	assert_int_equal(rmdir(top), 0);
}

/* --- classes -------------------------------------------------------------- */

static void put(int at, const char *path)
{
	int fd = openat(at, path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);

	assert_true(fd >= 0);
	close(fd);
}

static uint32_t label_at(const struct rig *s, const char *path)
{
	return tree_label(&s->tree,
			  tree_file(&s->tree, tree_find(&s->tree, path)));
}

/* Policies have memory for each class: files of a flat dataset are one. */
static void test_labels(void **state)
{
	static const char *const put_at[] = { "a0", "b/x", "b/c/y", "d/x",
					      "e0", "e1",  "e2" };
	char top[] = "/tmp/sources.XXXXXX";
	struct rig s;
	int at;

	(void)state;
	assert_non_null(mkdtemp(top));
	at = open(top, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	put(at, "a0");
	put(at, "e0");
	assert_int_equal(scan(&s, &source_dir, top), 0);
	assert_int_equal(tree_labels(&s.tree), 1);
	assert_int_equal(label_at(&s, "e0"), 0);
	end(&s);
	mkdirat(at, "b", 0700);
	mkdirat(at, "b/c", 0700);
	mkdirat(at, "d", 0700);
	for (size_t i = 0; i < ARRAY_SIZE(put_at); i++)
		put(at, put_at[i]);
	assert_int_equal(linkat(at, "b/x", at, "d/also", 0), 0);
	assert_int_equal(scan(&s, &source_dir, top), 0);
	/* up to the last folder */
	assert_int_equal(tree_labels(&s.tree), 4);
	assert_int_equal(label_at(&s, "a0"), 0);
	assert_int_equal(label_at(&s, "e2"), 0);
	assert_int_equal(tree_label(&s.tree, TREE_ROOT), 0);
	assert_int_equal(tree_label(&s.tree, s.tree.n_nodes), 0);
	assert_int_equal(label_at(&s, "b/x"), label_at(&s, "b/c/y"));
	assert_int_equal(label_at(&s, "b/x"), label_at(&s, "d/also"));
	assert_int_not_equal(label_at(&s, "b/x"), label_at(&s, "d/x"));
	for (uint32_t i = 0; i < s.tree.n_nodes; i++)
		assert_true(tree_label(&s.tree, i) < tree_labels(&s.tree));
	end(&s);
	unlinkat(at, "d/also", 0);
	for (size_t i = 0; i < ARRAY_SIZE(put_at); i++)
		unlinkat(at, put_at[i], 0);
	unlinkat(at, "b/c", AT_REMOVEDIR);
	unlinkat(at, "b", AT_REMOVEDIR);
	unlinkat(at, "d", AT_REMOVEDIR);
	close(at);
	assert_int_equal(rmdir(top), 0);
}

/* --- access control lists ------------------------------------------------- */

/* A list with the owner's entry, and these of others. */
static uint32_t limit(uint32_t mode, size_t n,
		      const struct posix_acl_xattr_entry *others)
{
	struct {
		struct posix_acl_xattr_header h;
		struct posix_acl_xattr_entry e[8];
	} list = { { htole32(POSIX_ACL_XATTR_VERSION) },
		   { { htole16(ACL_USER_OBJ), htole16(6), 0 } } };

	for (size_t i = 0; i < n; i++)
		list.e[i + 1] = (struct posix_acl_xattr_entry){
			.e_tag = htole16(others[i].e_tag),
			.e_perm = htole16(others[i].e_perm)
		};
	return acl_limit(S_IFREG | mode, &list,
			 sizeof(list.h) + (n + 1) * sizeof(list.e[0])) &
	       07777;
}

#define LIMIT(mode, ...)                                                \
	limit(mode,                                                     \
	      sizeof((struct posix_acl_xattr_entry[]){ __VA_ARGS__ }) / \
		      sizeof(struct posix_acl_xattr_entry),             \
	      (struct posix_acl_xattr_entry[]){ __VA_ARGS__ })

static void test_lists(void **state)
{
	char damaged[7] = { 2 };

	(void)state;
	/* one more may read: the group may not, though the mask says so */
	assert_int_equal(LIMIT(0640, { ACL_USER, 4, 0 },
			       { ACL_GROUP_OBJ, 0, 0 }, { ACL_MASK, 4, 0 },
			       { ACL_OTHER, 0, 0 }),
			 0600);
	/* nobody gets less than the others */
	assert_int_equal(LIMIT(0755, { ACL_USER, 5, 0 },
			       { ACL_GROUP_OBJ, 5, 0 }, { ACL_MASK, 5, 0 },
			       { ACL_OTHER, 5, 0 }),
			 0755);
	/* one user, or a group, is denied: nothing here maps them to clients */
	assert_int_equal(LIMIT(0644, { ACL_USER, 0, 0 },
			       { ACL_GROUP_OBJ, 4, 0 }, { ACL_MASK, 4, 0 },
			       { ACL_OTHER, 4, 0 }),
			 0600);
	assert_int_equal(LIMIT(0644, { ACL_GROUP_OBJ, 4, 0 },
			       { ACL_GROUP, 0, 0 }, { ACL_MASK, 4, 0 },
			       { ACL_OTHER, 4, 0 }),
			 0600);
	/* the mask limits the named users */
	assert_int_equal(LIMIT(0604, { ACL_USER, 4, 0 },
			       { ACL_GROUP_OBJ, 4, 0 }, { ACL_MASK, 0, 0 },
			       { ACL_OTHER, 4, 0 }),
			 0600);
	assert_int_equal(acl_limit(0755, damaged, sizeof(damaged)), 0700);
	assert_int_equal(acl_limit(0755, damaged, 0), 0700);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_pack_hides),
		cmocka_unit_test(test_too_deep),
		cmocka_unit_test(test_labels),
		cmocka_unit_test(test_lists),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: MIT */
/* The writable folder, without a mount: the test is the kernel. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/rng.h"
#include "common/util.h"
#include "fs/upper/upper.h"
#include "test.h"

enum { N_KNOWN = 24, N_OPEN = 8, N_NAMES = 4, N_OPS = 20000 };

/* What the kernel knows, and has open. */
struct kernel {
	struct upper *u;
	struct tree tree;
	char dir[32];
	uint64_t ino[N_KNOWN]; /* the first: the root; 0: none */
	uint64_t lookups[N_KNOWN];
	struct upper_file *open[N_OPEN];
	struct rng rng;
};

static int setup(void **state)
{
	struct kernel *k = calloc(1, sizeof(*k));
	struct err err = { 0 };

	snprintf(k->dir, sizeof(k->dir), "/tmp/gpemu-upper-XXXXXX");
	assert_non_null(mkdtemp(k->dir));
	assert_int_equal(tree_init(&k->tree), 0);
	assert_int_equal(upper_new(k->dir, &k->tree, &k->u, &err), 0);
	k->ino[0] = TREE_ROOT + 1;
	k->rng = rng_stream(1, "upper", 0);
	*state = k;
	return 0;
}

static int teardown(void **state)
{
	char command[64];
	struct kernel *k = *state;

	upper_free(k->u);
	tree_fini(&k->tree);
	snprintf(command, sizeof(command), "rm -r %s", k->dir);
	assert_int_equal(system(command), 0);
	free(k);
	return 0;
}

static void a_create_that_fails_takes_back_its_own_lookup(void **state)
{
	struct kernel *k = *state;
	const struct upper_at at = { TREE_ROOT + 1, "pipe" };
	const struct upper_owner owner = { 0 };
	struct upper_entry known = { 0 }, e = { 0 };
	struct upper_file *file;
	struct stat st;

	assert_int_equal(
		upper_mknod(k->u, &at, S_IFIFO | 0600, 0, &owner, &known), 0);
	assert_int_equal(upper_create(k->u, &at, 0600, O_RDWR, &owner, &e,
				      &file),
			 -ESTALE);
	assert_int_equal(e.ino, 0);
	assert_int_equal(upper_stat(k->u, known.ino, &st), 0);
	upper_forget(k->u, known.ino, 1);
	assert_int_equal(upper_stat(k->u, known.ino, &st), -ESTALE);
}

/* --- any calls in any order ----------------------------------------------- */

static size_t any(struct kernel *k, size_t n)
{
	return rng_below(&k->rng, n);
}

static void forget(struct kernel *k, size_t i)
{
	upper_forget(k->u, k->ino[i], k->lookups[i]);
	k->ino[i] = k->lookups[i] = 0;
}

static void learn(struct kernel *k, const struct upper_entry *e)
{
	size_t i = 1;

	while (i < N_KNOWN && k->ino[i] != e->ino)
		i++;
	if (i == N_KNOWN) {
		i = 1 + any(k, N_KNOWN - 1);
		if (k->ino[i])
			forget(k, i);
	}
	k->ino[i] = e->ino;
	k->lookups[i]++;
}

static struct upper_at any_name(struct kernel *k)
{
	static const char *const names[N_NAMES] = { "a", "b", "c", "d" };
	uint64_t folder = k->ino[any(k, N_KNOWN)];

	return (struct upper_at){ folder ? folder : k->ino[0],
				  names[any(k, N_NAMES)] };
}

static void shut(struct kernel *k, size_t i)
{
	if (k->open[i])
		upper_close(k->u, k->open[i]);
	k->open[i] = NULL;
}

/* The kernel looks up both names first. */
static void move(struct upper *u, const struct upper_at *at,
		 const struct upper_at *to, unsigned flags)
{
	struct upper_entry a = { 0 }, b = { 0 };

	upper_lookup(u, at, &a);
	upper_lookup(u, to, &b);
	upper_rename(u, at, to, flags);
	upper_forget(u, a.ino, 1);
	upper_forget(u, b.ino, 1);
}

static void change(struct kernel *k, const struct upper_at *at)
{
	const struct upper_owner owner = { 0 };
	const struct upper_at to = any_name(k);
	size_t known = any(k, N_KNOWN), file = any(k, N_OPEN);
	struct upper_entry e = { 0 };
	struct upper *u = k->u;

	switch (any(k, 12)) {
	case 0: upper_lookup(u, at, &e); break;
	case 1:
		shut(k, file);
		upper_create(u, at, 0600, O_RDWR, &owner, &e, &k->open[file]);
		break;
	case 2: upper_mkdir(u, at, 0700, &owner, &e); break;
	case 3: upper_symlink(u, at, "x", &owner, &e); break;
	case 4: upper_mknod(u, at, S_IFIFO | 0600, 0, &owner, &e); break;
	case 5:
		if (known && k->ino[known])
			upper_link(u, k->ino[known], at, &e);
		break;
	case 6: upper_remove(u, at, false); break;
	case 7: upper_remove(u, at, true); break;
	case 8: move(u, at, &to, 0); break;
	case 9: move(u, at, &to, RENAME_EXCHANGE); break;
	case 10:
		if (known)
			forget(k, known);
		break;
	default:
		if (k->open[file])
			upper_sync(u, k->open[file], false);
		shut(k, file);
	}
	if (e.ino)
		learn(k, &e);
}

/* Every name leads to its file; and what the kernel has forgotten is gone. */
static void nodes_go_with_the_last_of_names_lookups_and_opens(void **state)
{
	struct kernel *k = *state;

	for (int i = 0; i < N_OPS; i++) {
		const struct upper_at at = any_name(k);

		change(k, &at);
	}
	for (size_t i = 0; i < N_OPEN; i++)
		shut(k, i);
	for (size_t i = 1; i < N_KNOWN; i++)
		forget(k, i);
	assert_null(k->u->inos);
	assert_null(k->u->reals);
	assert_null(k->u->names);
	assert_int_equal(k->u->n_fds, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(
			a_create_that_fails_takes_back_its_own_lookup, setup,
			teardown),
		cmocka_unit_test_setup_teardown(
			nodes_go_with_the_last_of_names_lookups_and_opens,
			setup, teardown),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: MIT */
/* The writable folder, without a mount: the test is the kernel. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/rng.h"
#include "common/thread.h"
#include "common/units.h"
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

/* --- a limit -------------------------------------------------------------- */

enum { LIMIT = 200 }; /* blocks */

static void limit(struct kernel *k, double scale)
{
	struct err err = { 0 };

	assert_int_equal(upper_limit(k->u, LIMIT * UPPER_BLOCK, scale, &err),
			 0);
}

static uint64_t free_blocks(struct kernel *k)
{
	struct statvfs st;

	assert_int_equal(upper_statvfs(k->u, &st), 0);
	assert_int_equal(st.f_blocks, LIMIT);
	assert_true(st.f_bavail <= st.f_bfree);
	return st.f_bfree;
}

/* What the files in the folder have. */
static uint64_t blocks_there(struct kernel *k)
{
	struct upper_space *s = &k->u->space, now = { 0 };
	struct err err = { 0 };

	upper_space_init(&now);
	assert_int_equal(upper_space_limit(&now, s->capacity * UPPER_BLOCK,
					   s->scale, &k->tree, k->u->dir.fd,
					   &err),
			 0);
	upper_space_fini(&now);
	return now.used;
}

static struct upper_file *create(struct kernel *k, const char *name,
				 uint64_t *ret_ino)
{
	const struct upper_at at = { TREE_ROOT + 1, name };
	const struct upper_owner owner = { 0 };
	struct upper_entry e = { 0 };
	struct upper_file *f = NULL;
	int r = upper_create(k->u, &at, 0600, O_RDWR, &owner, &e, &f);

	errno = -r;
	if (ret_ino)
		*ret_ino = e.ino;
	return r < 0 ? NULL : f;
}

static int drop(struct kernel *k, const char *name)
{
	const struct upper_at at = { TREE_ROOT + 1, name };

	return upper_remove(k->u, &at, false);
}

static int resize(struct kernel *k, uint64_t ino, struct upper_file *f,
		  int64_t bytes)
{
	const struct upper_change c = { .bytes = bytes,
					.uid = (uid_t)-1,
					.gid = (gid_t)-1,
					.times = { { 0, UTIME_OMIT },
						   { 0, UTIME_OMIT } } };

	return upper_change(k->u, ino, f, &c);
}

static ssize_t put(const struct upper_file *f, const void *bytes, size_t n,
		   uint64_t offset)
{
	ssize_t room = upper_reserve(f, n, offset);

	return room < 0 ? room : upper_write(f, bytes, (size_t)room, offset);
}

static void a_full_device_writes_what_fits(void **state)
{
	static char bytes[LIMIT * UPPER_BLOCK + 1];
	struct kernel *k = *state;
	struct upper_file *f, *again;
	uint64_t ino;

	limit(k, 1);
	f = create(k, "f", &ino);
	assert_int_equal(put(f, bytes, 3, UPPER_BLOCK - 1), 3);
	assert_int_equal(free_blocks(k), LIMIT - 2);
	assert_int_equal(put(f, bytes, sizeof(bytes), 0), sizeof(bytes) - 1);
	assert_int_equal(free_blocks(k), 0);
	assert_int_equal(put(f, bytes, 1, sizeof(bytes) - 1), -ENOSPC);
	assert_int_equal(put(f, bytes, 5000, 7), 5000);
	assert_int_equal(upper_sync(k->u, f, false), 0);
	assert_null(create(k, "g", NULL));
	assert_int_equal(errno, ENOSPC);
	/* one that is there is no new one */
	again = create(k, "f", NULL);
	assert_non_null(again);
	upper_close(k->u, again);
	assert_int_equal(resize(k, ino, f, sizeof(bytes)), -ENOSPC);
	assert_int_equal(upper_allocate(f, 0, 0, sizeof(bytes)), -ENOSPC);
	assert_int_equal(resize(k, ino, f, 10), 0);
	assert_int_equal(free_blocks(k), LIMIT - 1);
	assert_int_equal(upper_allocate(f, FALLOC_FL_KEEP_SIZE, 0, 4096),
			 -EOPNOTSUPP);
	assert_int_equal(upper_allocate(f, 0, 0, sizeof(bytes) - 1), 0);
	assert_int_equal(free_blocks(k), 0);
	assert_int_equal(upper_open(k->u, ino, O_RDONLY | O_TRUNC, &again), 0);
	assert_int_equal(free_blocks(k), LIMIT);
	upper_close(k->u, again);
	/* not open */
	upper_close(k->u, f);
	assert_int_equal(resize(k, ino, NULL, sizeof(bytes)), -ENOSPC);
	assert_int_equal(resize(k, ino, NULL, 2 * UPPER_BLOCK), 0);
	assert_int_equal(free_blocks(k), LIMIT - 2);
	assert_int_equal(drop(k, "f"), 0);
	assert_int_equal(free_blocks(k), LIMIT);
}

static void what_is_removed_counts_until_it_is_closed(void **state)
{
	const struct upper_at at = { TREE_ROOT + 1, "g" };
	const struct upper_at from = { TREE_ROOT + 1, "f" };
	struct kernel *k = *state;
	struct upper_file *f, *again;
	struct upper_entry e;
	uint64_t ino;

	limit(k, 1);
	f = create(k, "f", &ino);
	assert_int_equal(put(f, "x", 1, 0), 1);
	assert_int_equal(upper_link(k->u, ino, &at, &e), 0);
	assert_int_equal(drop(k, "f"), 0);
	assert_int_equal(free_blocks(k), LIMIT - 1);
	assert_int_equal(drop(k, "g"), 0);
	assert_int_equal(free_blocks(k), LIMIT - 1);
	assert_int_equal(put(f, "x", 1, UPPER_BLOCK), 1);
	assert_int_equal(free_blocks(k), LIMIT - 2);
	upper_close(k->u, f);
	assert_int_equal(free_blocks(k), LIMIT);
	/* by /proc: it has no name */
	assert_int_equal(upper_open(k->u, ino, O_RDONLY, &again), 0);
	assert_int_equal(free_blocks(k), LIMIT - 2);
	upper_close(k->u, again);
	assert_int_equal(free_blocks(k), LIMIT);
	/* a rename replaces */
	f = create(k, "f", NULL);
	again = create(k, "g", NULL);
	assert_int_equal(put(f, "x", 1, 0), 1);
	assert_int_equal(put(again, "x", 1, 5 * UPPER_BLOCK), 1);
	upper_close(k->u, again);
	assert_int_equal(free_blocks(k), LIMIT - 7);
	assert_int_equal(upper_rename(k->u, &from, &at, 0), 0);
	assert_int_equal(free_blocks(k), LIMIT - 1);
	upper_close(k->u, f);
}

static void what_is_reserved_and_not_written_is_free_again(void **state)
{
	struct kernel *k = *state;
	struct upper_file *f;

	limit(k, 1);
	f = create(k, "f", NULL);
	assert_int_equal(upper_reserve(f, 1000 * UPPER_BLOCK, UPPER_BLOCK),
			 (LIMIT - 1) * UPPER_BLOCK);
	assert_int_equal(free_blocks(k), 0);
	assert_int_equal(upper_write(f, NULL, 0, 0), 0);
	assert_int_equal(free_blocks(k), LIMIT);
	upper_close(k->u, f);
}

static void a_full_device_makes_no_links(void **state)
{
	const struct upper_at at = { TREE_ROOT + 1, "g" };
	struct kernel *k = *state;
	struct upper_file *f;
	struct upper_entry e;
	uint64_t ino;

	limit(k, 1);
	f = create(k, "f", &ino);
	assert_int_equal(resize(k, ino, f, LIMIT * UPPER_BLOCK), 0);
	assert_int_equal(upper_link(k->u, ino, &at, &e), -ENOSPC);
	assert_int_equal(resize(k, ino, f, (LIMIT - 1) * UPPER_BLOCK), 0);
	assert_int_equal(upper_link(k->u, ino, &at, &e), 0);
	assert_int_equal(resize(k, ino, f, LIMIT * UPPER_BLOCK), 0);
	assert_int_equal(upper_link(k->u, ino, &at, &e), -EEXIST);
	assert_int_equal(drop(k, "g"), 0);
	assert_int_equal(free_blocks(k), 0);
	upper_close(k->u, f);
	assert_int_equal(drop(k, "f"), 0);
	assert_int_equal(free_blocks(k), LIMIT);
}

/* Names that another folder has of files of ours. */
struct outside {
	char dir[40];
	int fd;
};

static struct outside outside_new(void)
{
	struct outside o;

	snprintf(o.dir, sizeof(o.dir), "/tmp/gpemu-upper-out-XXXXXX");
	assert_non_null(mkdtemp(o.dir));
	o.fd = open(o.dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	assert_true(o.fd >= 0);
	return o;
}

static void outside_free(struct outside *o)
{
	char command[64];

	close(o->fd);
	snprintf(command, sizeof(command), "rm -r %s", o->dir);
	assert_int_equal(system(command), 0);
}

static void a_link_outside_of_the_folder_keeps_no_blocks(void **state)
{
	const struct upper_at at = { TREE_ROOT + 1, "linked" };
	const struct upper_at from = { TREE_ROOT + 1, "late" };
	struct outside o = outside_new();
	struct upper_entry e = { 0 };
	struct kernel *k = *state;
	int dir = k->u->dir.fd;
	struct upper_file *f;
	char command[256];
	uint64_t ino;

	/* made before, with a name of each side, and with two of this one */
	snprintf(command, sizeof(command),
		 "cd %s && head -c 5000 /dev/zero >a && ln a %s/a &&"
		 " head -c 9 /dev/zero >b && ln b c && ln b %s/b",
		 k->dir, o.dir, o.dir);
	assert_int_equal(system(command), 0);
	limit(k, 1);
	assert_int_equal(free_blocks(k), LIMIT - 3);
	assert_int_equal(drop(k, "a"), 0);
	assert_int_equal(free_blocks(k), LIMIT - 1);
	assert_int_equal(drop(k, "b"), 0);
	assert_int_equal(free_blocks(k), LIMIT - 1);
	assert_int_equal(drop(k, "c"), 0);
	assert_int_equal(free_blocks(k), LIMIT);

	/* linked by others meanwhile; removed while it is open */
	f = create(k, "late", &ino);
	assert_int_equal(put(f, "x", 1, 0), 1);
	assert_int_equal(linkat(dir, "late", o.fd, "late", 0), 0);
	assert_int_equal(upper_link(k->u, ino, &at, &e), 0);
	assert_int_equal(drop(k, "linked"), 0);
	assert_int_equal(free_blocks(k), LIMIT - 1);
	assert_int_equal(upper_rename(k->u, &from, &at, 0), 0);
	assert_int_equal(drop(k, "linked"), 0);
	assert_int_equal(free_blocks(k), LIMIT - 1);
	upper_close(k->u, f);
	assert_int_equal(free_blocks(k), LIMIT);
	/* by /proc it has a name again */
	assert_int_equal(upper_link(k->u, ino, &at, &e), 0);
	assert_int_equal(free_blocks(k), LIMIT - 1);
	assert_int_equal(drop(k, "linked"), 0);
	assert_int_equal(free_blocks(k), LIMIT);
	outside_free(&o);
}

/* Whatever is done, also with names that others make outside. */
static void what_counts_is_what_a_later_mount_finds(void **state)
{
	static const char bytes[3 * UPPER_BLOCK];
	struct outside o = outside_new();
	struct kernel *k = *state;

	limit(k, 1);
	for (int i = 0; i < N_OPS; i++) {
		const struct upper_at at = any_name(k);
		struct upper_file *f = k->open[any(k, N_OPEN)];
		char there[8];

		change(k, &at);
		if (f && f == k->open[any(k, N_OPEN)])
			put(f, bytes, 1 + any(k, sizeof(bytes)),
			    any(k, 9 * UPPER_BLOCK));
		snprintf(there, sizeof(there), "%zu", any(k, 5));
		if (any(k, 9) == 0)
			linkat(k->u->dir.fd, at.name, o.fd, there, 0);
		if (any(k, 9) == 0)
			unlinkat(o.fd, there, 0);
	}
	for (size_t i = 0; i < N_OPEN; i++)
		shut(k, i);
	assert_int_equal(k->u->space.used, blocks_there(k));
	outside_free(&o);
}

static void scaled_bytes_count_as_those_of_the_device(void **state)
{
	static char bytes[LIMIT * UPPER_BLOCK];
	struct kernel *k = *state;
	struct upper_file *f;
	ssize_t n;

	limit(k, .01);
	f = create(k, "f", NULL);
	/* 41 bytes are 4,100 of the device */
	assert_int_equal(put(f, bytes, 40, 0), 40);
	assert_int_equal(free_blocks(k), LIMIT - 1);
	assert_int_equal(put(f, bytes, 1, 40), 1);
	assert_int_equal(free_blocks(k), LIMIT - 2);
	n = put(f, bytes, sizeof(bytes), 0);
	assert_int_equal(n, LIMIT * UPPER_BLOCK / 100);
	assert_int_equal(free_blocks(k), 0);
	assert_int_equal(put(f, bytes, 1, (uint64_t)n), -ENOSPC);
	assert_int_equal(put(f, bytes, 1, INT64_MAX - 1), -ENOSPC);
	upper_close(k->u, f);
	assert_int_equal(blocks_there(k), LIMIT);
}

struct hand {
	struct kernel *k;
	struct upper_file *shared;
	unsigned i;
};

/* Writes, cuts and removes a file of its own, and writes to a shared one. */
static void *work(void *arg)
{
	static const char bytes[16 * UPPER_BLOCK];
	const struct hand *h = arg;
	struct kernel *k = h->k;
	struct rng rng = rng_stream(2, "hand", h->i);
	char name[8];

	snprintf(name, sizeof(name), "own%u", h->i);
	for (int i = 0; i < 300; i++) {
		struct upper_file *f;
		uint64_t ino, bytes_at = rng_below(&rng, sizeof(bytes));

		put(h->shared, bytes, 1 + rng_below(&rng, 4000),
		    rng_below(&rng, 100 * UPPER_BLOCK));
		if (rng_below(&rng, 9) == 0)
			resize(k, h->shared->node->ino, h->shared, 0);
		f = create(k, name, &ino);
		if (!f)
			continue;
		put(f, bytes, sizeof(bytes), bytes_at);
		pthread_mutex_lock(&k->u->space.lock);
		assert_true(k->u->space.used <= LIMIT);
		pthread_mutex_unlock(&k->u->space.lock);
		resize(k, ino, f, (int64_t)bytes_at);
		if (rng_below(&rng, 2))
			drop(k, name);
		upper_close(k->u, f);
		upper_forget(k->u, ino, 1);
	}
	return NULL;
}

static void writers_together_never_exceed_it(void **state)
{
	struct kernel *k = *state;
	struct hand hands[4];
	pthread_t threads[4];

	limit(k, 1);
	k->open[0] = create(k, "shared", NULL);
	for (unsigned i = 0; i < 4; i++) {
		hands[i] = (struct hand){ k, k->open[0], i };
		assert_int_equal(
			thread_start(&threads[i], NULL, work, &hands[i]), 0);
	}
	for (unsigned i = 0; i < 4; i++)
		pthread_join(threads[i], NULL);
	shut(k, 0);
	assert_int_equal(k->u->space.used, blocks_there(k));
}

static void what_is_there_counts_once(void **state)
{
	struct kernel *k = *state;
	struct err err = { 0 };
	char command[256];

	snprintf(command, sizeof(command),
		 "cd %s && mkdir -p a/b && head -c 5000 /dev/zero >a/b/f &&"
		 " ln a/b/f a/g && ln -s f a/l && mkfifo p && truncate -s 1M h",
		 k->dir);
	assert_int_equal(system(command), 0);
	assert_int_equal(upper_limit(k->u, MIB + UPPER_BLOCK, 1, &err),
			 -ENOSPC);
	assert_non_null(strstr(err.text, "capacity of 1"));
	assert_int_equal(upper_limit(k->u, MIB + 2 * UPPER_BLOCK, 1, &err), 0);
	assert_int_equal(k->u->space.used, 258);
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
		cmocka_unit_test_setup_teardown(
			what_is_reserved_and_not_written_is_free_again, setup,
			teardown),
		cmocka_unit_test_setup_teardown(a_full_device_makes_no_links,
						setup, teardown),
		cmocka_unit_test_setup_teardown(
			a_link_outside_of_the_folder_keeps_no_blocks, setup,
			teardown),
		cmocka_unit_test_setup_teardown(
			what_counts_is_what_a_later_mount_finds, setup,
			teardown),
		cmocka_unit_test_setup_teardown(a_full_device_writes_what_fits,
						setup, teardown),
		cmocka_unit_test_setup_teardown(
			what_is_removed_counts_until_it_is_closed, setup,
			teardown),
		cmocka_unit_test_setup_teardown(
			scaled_bytes_count_as_those_of_the_device, setup,
			teardown),
		cmocka_unit_test_setup_teardown(
			writers_together_never_exceed_it, setup, teardown),
		cmocka_unit_test_setup_teardown(what_is_there_counts_once,
						setup, teardown),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

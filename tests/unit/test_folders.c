/* SPDX-License-Identifier: MIT */
/* Which folders are synced for a name: fsync(2) is one of the test's own. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/util.h"
#include "s3/store/folders.h"
#include "test.h"

struct rig {
	char top[32];
	struct beneath dir;
	struct folders folders;
	char synced[256]; /* names with a space behind each; "." is the top */
	const char *fails;
	int error;
	const char *remade; /* by another, while the top is synced */
};

static struct rig *rig;

static void add_folder(const char *path)
{
	const char *name;
	int fd = folders_make(&rig->folders, path, &name);

	assert_true(fd >= 0);
	assert_string_equal(name, strrchr(path, '/') + 1);
	close(fd);
}

int fsync(int fd)
{
	char link[32], path[PATH_MAX];
	const char *name;
	ssize_t n;

	snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	n = readlink(link, path, sizeof(path) - 1);
	assert_true(n > 0);
	path[n] = 0;
	name = path + strlen(rig->top);
	name = *name ? name + 1 : ".";
	strcat(rig->synced, name);
	strcat(rig->synced, " ");
	if (rig->remade && !strcmp(name, ".")) {
		folders_remove(&rig->folders, rig->remade);
		add_folder(rig->remade);
		rig->remade = NULL;
	}
	if (!rig->fails || strcmp(rig->fails, name) != 0)
		return 0;
	errno = rig->error;
	return -1;
}

static void check_sync(const char *path, int error, const char *synced)
{
	*rig->synced = 0;
	assert_int_equal(folders_sync(&rig->folders, path), error);
	assert_string_equal(rig->synced, synced);
}

static int setup(void **state)
{
	(void)state;
	rig = calloc(1, sizeof(*rig));
	assert_non_null(rig);
	strcpy(rig->top, "/tmp/folders-XXXXXX");
	assert_non_null(mkdtemp(rig->top));
	beneath_init(&rig->dir, open(rig->top, O_RDONLY | O_DIRECTORY));
	folders_init(&rig->folders, &rig->dir);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	folders_fini(&rig->folders);
	close(rig->dir.fd);
	assert_int_equal(rmdir(rig->top), 0);
	free(rig);
	return 0;
}

static void test_made(void **state)
{
	(void)state;
	check_sync("x", 0, ". ");
	add_folder("a/b/x");
	check_sync("a/b/x", 0, "a/b a . ");
	check_sync("a/b/x", 0, "a/b ");
	add_folder("a/c/x");
	check_sync("a/c/x", 0, "a/c a ");
	folders_remove(&rig->folders, "a/b/x");
	/* its name has gone from the one above it */
	check_sync("a/b/x", 0, "a ");
	folders_remove(&rig->folders, "a/c/x");
	check_sync("a/c/x", 0, ". ");
}

/* Made for one object, synced for another. */
static void test_shared(void **state)
{
	(void)state;
	add_folder("a/x");
	add_folder("a/y");
	check_sync("a/y", 0, "a . ");
	check_sync("a/x", 0, "a ");
	folders_remove(&rig->folders, "a/x");
	check_sync("a/x", 0, ". ");
}

static void test_errors(void **state)
{
	(void)state;
	add_folder("a/x");
	rig->fails = ".";
	rig->error = EIO;
	check_sync("a/x", -EIO, "a . ");
	rig->fails = "a";
	check_sync("a/x", -EIO, "a ");
	/* a file system without it */
	rig->error = EINVAL;
	check_sync("a/x", 0, "a . ");
	rig->fails = NULL;
	check_sync("a/x", 0, "a ");
	folders_remove(&rig->folders, "a/x");
	assert_null(rig->folders.unsynced);
}

/* What is made again needs a sync again. */
static void test_again(void **state)
{
	(void)state;
	add_folder("a/x");
	folders_remove(&rig->folders, "a/x");
	assert_null(rig->folders.unsynced);
	add_folder("a/x");
	rig->remade = "a/x";
	check_sync("a/x", 0, "a . ");
	check_sync("a/x", 0, "a . ");
	check_sync("a/x", 0, "a ");
	folders_remove(&rig->folders, "a/x");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_made, setup, teardown),
		cmocka_unit_test_setup_teardown(test_shared, setup, teardown),
		cmocka_unit_test_setup_teardown(test_errors, setup, teardown),
		cmocka_unit_test_setup_teardown(test_again, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

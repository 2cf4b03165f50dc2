/* SPDX-License-Identifier: MIT */
#include "common/system/walk.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/util.h"
#include "tests/unit/test.h"

/* Each test has a folder "in" to walk, and one next to it. */
static char base[64];

static int begin(void **state)
{
	(void)state;
	strcpy(base, "/tmp/gpemu-walk-XXXXXX");
	if (!mkdtemp(base) || chdir(base) < 0)
		return -1;
	return chmod(base, 0755) | mkdir("in", 0755) | mkdir("out", 0755);
}

static int end(void **state)
{
	char command[200];

	(void)state;
	snprintf(command, sizeof(command), "chmod -R u+rwx %s; rm -r %s", base,
		 base);
	return chdir("/") | system(command);
}

static void make_file(const char *path, size_t bytes)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_EXCL, 0644);

	assert_true(fd >= 0);
	assert_int_equal(ftruncate(fd, (off_t)bytes), 0);
	close(fd);
}

static void make_folder(const char *path)
{
	assert_int_equal(mkdir(path, 0755), 0);
}

static void make_link(const char *target, const char *path)
{
	assert_int_equal(symlink(target, path), 0);
}

/* --- what a walk has seen ------------------------------------------------- */

struct seen {
	char text[8192]; /* "a/ a/x=10 a/l@3 " */
	int end_with, left;
	void (*change)(const char *path);
};

static int stop(struct seen *s, const char *path)
{
	if (s->change)
		s->change(path);
	return s->end_with && s->left-- == 0 ? s->end_with : 0;
}

static int see_folder(void *ctx, const char *path, const struct statx *st,
		      struct err *err)
{
	struct seen *s = ctx;
	size_t n = strlen(s->text);

	(void)err;
	assert_true(S_ISDIR(st->stx_mode));
	snprintf(s->text + n, sizeof(s->text) - n, "%s/ ", path);
	return stop(s, path);
}

static int see_file(void *ctx, const char *path, const struct walk_entry *e,
		    struct err *err)
{
	struct seen *s = ctx;
	size_t n = strlen(s->text);

	(void)err;
	assert_true(S_ISREG(e->mode) || S_ISLNK(e->mode));
	snprintf(s->text + n, sizeof(s->text) - n, "%s%c%llu ", path,
		 S_ISREG(e->mode) ? '=' : '@', (unsigned long long)e->bytes);
	return stop(s, path);
}

static int walk(unsigned flags, struct seen *s, struct err *err)
{
	_cleanup_close_ int fd = open("in", O_RDONLY | O_DIRECTORY);
	struct walk w = {
		.flags = flags, .ctx = s, .folder = see_folder, .file = see_file
	};

	return walk_tree(&w, fd, "", err);
}

static void expect(unsigned flags, const char *want)
{
	struct seen s = { .text = "" };

	assert_int_equal(walk(flags, &s, NULL), 0);
	assert_string_equal(s.text, want);
}

static void expect_failure(unsigned flags, int code, const char *text)
{
	struct seen s = { .text = "" };
	struct err err = { 0 };

	assert_int_equal(walk(flags, &s, &err), code);
	assert_string_equal(err.text, text);
}

/* --- the rules ------------------------------------------------------------ */

static void names_are_in_byte_order_files_before_folders(void **state)
{
	(void)state;
	make_folder("in/a");
	make_folder("in/a-b");
	make_folder("in/a/b");
	make_folder("in/B");
	make_file("in/b", 3);
	make_file("in/a.x", 2);
	make_file("in/a/z", 1);
	make_file("in/a/b/y", 4);
	make_file("in/B/\xc3\xa4", 0);
	make_file("in/B/z", 0);
	expect(WALK_FILES, "/ a.x=2 b=3 B/ B/z=0 B/\xc3\xa4=0 a/ a/z=1 a/b/ "
			   "a/b/y=4 a-b/ ");
}

static void hidden_names_are_left_out_unless_asked_for(void **state)
{
	(void)state;
	make_folder("in/.h");
	make_file("in/.h/x", 1);
	make_file("in/.x", 2);
	make_file("in/...", 3);
	make_file("in/x", 4);
	expect(WALK_FILES, "/ x=4 ");
	expect(WALK_FILES | WALK_HIDDEN, "/ ...=3 .x=2 x=4 .h/ .h/x=1 ");
}

static void special_files_are_left_out(void **state)
{
	(void)state;
	assert_int_equal(mkfifo("in/pipe", 0644), 0);
	make_link("pipe", "in/to-pipe");
	make_link("/dev/null", "in/to-device");
	make_file("in/x", 1);
	expect(WALK_FILES | WALK_FOLLOW, "/ to-device@0 to-pipe@0 x=1 ");
	expect(WALK_FILES, "/ to-device@9 to-pipe@4 x=1 ");
	expect(WALK_FOLLOW, "/ to-device@0 to-pipe@0 x=0 ");
}

static void links_are_links_or_what_they_lead_to(void **state)
{
	(void)state;
	make_file("in/x", 5);
	make_folder("in/d");
	make_file("in/d/y", 6);
	make_file("out/z", 7);
	make_link("d", "in/folder");
	make_link("x", "in/inside");
	make_link("../out/z", "in/outside");
	make_link("../out", "in/outside-folder");
	expect(WALK_FILES, "/ folder@1 inside@1 outside@8 outside-folder@6 x=5 "
			   "d/ d/y=6 ");
	expect(WALK_FILES | WALK_FOLLOW,
	       "/ inside=5 outside=7 x=5 d/ d/y=6 folder/ folder/y=6 "
	       "outside-folder/ outside-folder/z=7 ");
}

static void a_link_to_nowhere_stays_a_link_of_no_bytes(void **state)
{
	(void)state;
	make_link("none", "in/dangling");
	make_link("itself", "in/itself");
	make_link("/proc/self/fd/-1/x", "in/through");
	expect(WALK_FILES | WALK_FOLLOW, "/ dangling@0 itself@0 through@0 ");
	expect(WALK_FOLLOW, "/ dangling@0 itself@0 through@0 ");
}

static void a_loop_ends_the_walk(void **state)
{
	static const char *const targets[] = { ".", "..", "../..",
					       "../../../in/a", "../a/b" };

	(void)state;
	make_folder("in/a");
	make_folder("in/a/b");
	for (size_t i = 0; i < ARRAY_SIZE(targets); i++) {
		make_link(targets[i], "in/a/b/link");
		/* "../a/b" leads nowhere from there */
		if (i + 1 < ARRAY_SIZE(targets))
			expect_failure(WALK_FOLLOW, -ELOOP,
				       "a/b/link: a link to one of its "
				       "parent folders");
		else
			expect(WALK_FOLLOW, "/ a/ a/b/ a/b/link@0 ");
		expect(0, "/ a/ a/b/ a/b/link@0 ");
		assert_int_equal(unlink("in/a/b/link"), 0);
	}
	/* back in through the folder above the root */
	make_link("../..", "in/a/up");
	expect_failure(WALK_FOLLOW, -ELOOP,
		       "a/up/in: a link to one of its parent folders");
}

/* `n` nested folders in "in". */
static void make_deep(const char *name, int n)
{
	int fd = open("in", O_PATH | O_DIRECTORY);

	while (n--) {
		int next;

		assert_int_equal(mkdirat(fd, name, 0755), 0);
		next = openat(fd, name, O_PATH | O_DIRECTORY);
		assert_true(next >= 0);
		close(fd);
		fd = next;
	}
	close(fd);
}

static void depth_has_a_limit(void **state)
{
	struct seen s = { .text = "" };
	char text[4 * WALK_DEPTH];
	size_t n = 0;

	(void)state;
	make_deep("d", WALK_DEPTH);
	assert_int_equal(walk(0, &s, NULL), 0);
	make_folder("in/e");
	assert_int_equal(rename("in/d", "in/e/d"), 0);
	n += (size_t)sprintf(text, "e");
	for (int i = 0; i < WALK_DEPTH; i++)
		n += (size_t)sprintf(text + n, "/d");
	sprintf(text + n, ": folders nested more than 64 deep");
	expect_failure(0, -ELOOP, text);
	expect_failure(WALK_FOLLOW, -ELOOP, text);
}

static void a_path_has_a_limit(void **state)
{
	char name[NAME_MAX + 1];
	struct seen s = { .text = "" };

	(void)state;
	memset(name, 'n', NAME_MAX);
	name[NAME_MAX] = 0;
	make_deep(name, PATH_MAX / (NAME_MAX + 1) + 1);
	assert_int_equal(walk(0, &s, NULL), -ENAMETOOLONG);
}

static void an_unreadable_folder_ends_the_walk(void **state)
{
	bool root = geteuid() == 0;

	(void)state;
	make_folder("in/a");
	make_folder("in/a/shut");
	make_file("in/a/shut/y", 1);
	assert_int_equal(chmod("in/a/shut", 0), 0);
	assert_true(!root || seteuid(12345) == 0);
	expect_failure(WALK_FILES, -EACCES, "a/shut: Permission denied");
	expect_failure(WALK_FOLLOW, -EACCES, "a/shut: Permission denied");
	assert_true(!root || seteuid(0) == 0);
	/* its names can be read, and no more */
	assert_int_equal(chmod("in/a/shut", 0444), 0);
	assert_true(!root || seteuid(12345) == 0);
	expect_failure(WALK_FILES, -EACCES, "a/shut/y: Permission denied");
	assert_true(!root || seteuid(0) == 0);
}

static int remove_others(void *ctx, const char *name,
			 const struct walk_entry *e)
{
	(void)e;
	++*(int *)ctx;
	if (strcmp(name, "a"))
		assert_int_equal(unlink("in/a"), 0);
	if (strcmp(name, "b"))
		assert_int_equal(unlink("in/b"), 0);
	if (strcmp(name, "c"))
		assert_int_equal(unlink("in/c"), 0);
	return 0;
}

static void a_name_that_is_gone_is_left_out(void **state)
{
	_cleanup_close_ int fd = open("in", O_RDONLY | O_DIRECTORY);
	int n = 0;
	struct walk_names w = { .flags = WALK_FILES,
				.name = remove_others,
				.ctx = &n };

	(void)state;
	make_file("in/a", 0);
	make_file("in/b", 0);
	make_file("in/c", 0);
	assert_int_equal(walk_names(&w, fd), 0);
	assert_int_equal(n, 1);
}

/* While its own files are listed, a folder becomes a link. */
static void swap(const char *path)
{
	if (strcmp(path, "x") != 0)
		return;
	assert_int_equal(rename("in/d", "away"), 0);
	make_link("../out", "in/d");
}

static void nothing_beyond_the_tree_is_opened(void **state)
{
	struct seen s = { .change = swap };
	struct err err = { 0 };

	(void)state;
	make_file("in/x", 1);
	make_folder("in/d");
	make_file("out/secret", 1);
	assert_int_equal(walk(WALK_FILES, &s, &err), -ENOTDIR);
	assert_string_equal(err.text, "d: Not a directory");
	assert_string_equal(s.text, "/ x=1 ");
}

static void a_callback_ends_the_walk(void **state)
{
	static const int codes[] = { -EINTR, 1 };

	(void)state;
	make_file("in/a", 1);
	make_folder("in/d");
	make_file("in/d/b", 2);
	for (size_t i = 0; i < ARRAY_SIZE(codes); i++)
		for (int at = 0; at < 4; at++) {
			static const char *const want[] = { "/ ", "/ a=1 ",
							    "/ a=1 d/ ",
							    "/ a=1 d/ d/b=2 " };
			struct seen s = { .end_with = codes[i], .left = at };

			assert_int_equal(walk(WALK_FILES, &s, NULL), codes[i]);
			assert_string_equal(s.text, want[at]);
		}
}

static void a_part_has_paths_below_the_root(void **state)
{
	_cleanup_close_ int fd = open("in", O_RDONLY | O_DIRECTORY);
	struct seen s = { .text = "" };
	struct walk w = { .ctx = &s, .folder = see_folder, .file = see_file };
	struct err err = { 0 };

	(void)state;
	make_folder("in/a");
	make_folder("in/a/b");
	make_file("in/a/b/x", 0);
	assert_int_equal(walk_tree(&w, fd, "a/b", NULL), 0);
	assert_string_equal(s.text, "a/b/ a/b/x=0 ");
	assert_int_equal(walk_tree(&w, fd, "none", &err), -ENOENT);
	assert_string_equal(err.text, "none: No such file or directory");
}

/* Many more entries than one call of getdents64 returns. */
static void a_large_folder_is_listed_whole(void **state)
{
	enum { N = 5000 };
	_cleanup_close_ int fd = open("in", O_RDONLY | O_DIRECTORY);
	_cleanup_(walk_list_fini) struct walk_list l;
	char name[40];

	(void)state;
	for (int i = 0; i < N; i++) {
		snprintf(name, sizeof(name), "in/%05d", N - 1 - i);
		make_file(name, (size_t)(N - 1 - i));
	}
	assert_int_equal(walk_list(fd, WALK_FILES, &l), 0);
	assert_int_equal(l.n, N);
	for (int i = 0; i < N; i++) {
		snprintf(name, sizeof(name), "%05d", i);
		assert_string_equal(walk_name(&l, &l.entry[i]), name);
		assert_int_equal(l.entry[i].bytes, i);
	}
}

#define RULE(f) cmocka_unit_test_setup_teardown(f, begin, end)

int main(void)
{
	const struct CMUnitTest tests[] = {
		RULE(names_are_in_byte_order_files_before_folders),
		RULE(hidden_names_are_left_out_unless_asked_for),
		RULE(special_files_are_left_out),
		RULE(links_are_links_or_what_they_lead_to),
		RULE(a_link_to_nowhere_stays_a_link_of_no_bytes),
		RULE(a_loop_ends_the_walk),
		RULE(depth_has_a_limit),
		RULE(a_path_has_a_limit),
		RULE(an_unreadable_folder_ends_the_walk),
		RULE(a_name_that_is_gone_is_left_out),
		RULE(nothing_beyond_the_tree_is_opened),
		RULE(a_callback_ends_the_walk),
		RULE(a_part_has_paths_below_the_root),
		RULE(a_large_folder_is_listed_whole),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

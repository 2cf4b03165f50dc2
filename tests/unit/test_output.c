/* SPDX-License-Identifier: MIT */
/* Files written in folders where other users may write. */
#include "tests/unit/test.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/util.h"

enum { NOBODY = 65534 };

static char folder[] = "/tmp/gpemu-output-XXXXXX";

static void put(const char *name, const char *text)
{
	int fd = open(name, O_WRONLY | O_CREAT | O_TRUNC, 0600);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, strlen(text)), strlen(text));
	close(fd);
}

static const char *content(const char *name)
{
	static char text[64];
	int fd = open(name, O_RDONLY | O_NONBLOCK);
	ssize_t n = read(fd, text, sizeof(text) - 1);

	assert_true(fd >= 0 && n >= 0);
	text[n] = '\0';
	close(fd);
	return text;
}

static int clean(void **state)
{
	static const char *const names[] = { "file", "link", "pipe" };

	(void)state;
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		unlink(names[i]);
	return 0;
}

static void a_file_is_made_emptied_or_added_to(void **state)
{
	FILE *f;
	int fd;

	(void)state;
	assert_int_equal(util_open_output("file", 0), -ENOENT);
	fd = util_open_output("file", O_CREAT | O_APPEND);
	assert_int_equal(write(fd, "one", 3), 3);
	close(fd);
	fd = util_open_output("file", O_CREAT | O_APPEND);
	assert_int_equal(write(fd, "two", 3), 3);
	close(fd);
	assert_string_equal(content("file"), "onetwo");
	assert_int_equal(util_output_stream("file", O_CREAT | O_TRUNC, &f), 0);
	fputs("three", f);
	fclose(f);
	assert_string_equal(content("file"), "three");
}

static void a_link_of_ones_own_is_followed(void **state)
{
	int fd;

	(void)state;
	assert_int_equal(symlink("file", "link"), 0);
	fd = util_open_output("link", O_CREAT | O_TRUNC);
	assert_true(fd >= 0);
	assert_int_equal(write(fd, "new", 3), 3);
	close(fd);
	assert_string_equal(content("file"), "new");
}

static void a_link_of_another_user_is_not(void **state)
{
	FILE *f = NULL;

	(void)state;
	put("file", "kept");
	assert_int_equal(symlink("file", "link"), 0);
	if (lchown("link", NOBODY, NOBODY) < 0)
		skip_because("only root can give a link to another user");
	assert_int_equal(util_open_output("link", O_CREAT | O_TRUNC), -EACCES);
	assert_int_equal(util_open_output("link", O_APPEND), -EACCES);
	assert_int_equal(util_output_stream("link", O_TRUNC, &f), -EACCES);
	assert_null(f);
	assert_string_equal(content("file"), "kept");
}

static void a_new_file_takes_the_place_of_anything(void **state)
{
	struct stat st;
	FILE *f;

	(void)state;
	put("file", "kept");
	assert_int_equal(symlink("file", "link"), 0);
	assert_int_equal(util_new_stream("link", &f), 0);
	fputs("new", f);
	fclose(f);
	assert_string_equal(content("file"), "kept");
	assert_string_equal(content("link"), "new");
	assert_int_equal(mkfifo("pipe", 0600), 0);
	close(util_new_file("pipe", O_APPEND));
	assert_int_equal(lstat("pipe", &st), 0);
	assert_true(S_ISREG(st.st_mode) && st.st_size == 0);
	assert_int_equal(util_new_file(".", 0), -EISDIR);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(a_file_is_made_emptied_or_added_to,
					  clean),
		cmocka_unit_test_teardown(a_link_of_ones_own_is_followed,
					  clean),
		cmocka_unit_test_teardown(a_link_of_another_user_is_not, clean),
		cmocka_unit_test_teardown(
			a_new_file_takes_the_place_of_anything, clean),
	};
	int r;

	if (!mkdtemp(folder) || chdir(folder) < 0)
		return 1;
	r = cmocka_run_group_tests(tests, NULL, NULL);
	rmdir(folder);
	return r;
}

/* SPDX-License-Identifier: MIT */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <setjmp.h>

#include <cmocka.h>

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/json.h"
#include "common/replace.h"
#include "common/util.h"

static char dir[] = "/tmp/gpemu-replace.XXXXXX";
static int dirfd_;

static int n_names(void)
{
	DIR *d = opendir(dir);
	int n = 0;

	assert_non_null(d);
	while (readdir(d))
		n++;
	closedir(d);
	return n - 2;
}

static void assert_content(const char *name, const char *want, mode_t mode)
{
	_cleanup_close_ int fd = openat(dirfd_, name, O_RDONLY | O_CLOEXEC);
	struct stat st;
	char buf[16] = "";

	assert_true(fd >= 0 && fstat(fd, &st) == 0);
	assert_int_equal(read(fd, buf, sizeof(buf) - 1), strlen(want));
	assert_string_equal(buf, want);
	assert_int_equal(st.st_mode & 07777, mode);
}

static void put(const char *text, int code, mode_t mask)
{
	mode_t before = umask(mask);
	struct replace r;
	_cleanup_close_ int fd = replace_begin(&r, dirfd_, "file", 0666);

	umask(before);
	assert_true(fd >= 0);
	assert_int_equal(r.beside[0], '.');
	assert_int_equal(util_write_all(fd, text, strlen(text)), 0);
	assert_int_equal(replace_end(&r, code), code);
}

static void it_is_there_whole_or_not_at_all(void **state)
{
	struct replace r;

	(void)state;
	put("first", -EIO, 022);
	assert_int_equal(n_names(), 0);
	put("first", 0, 022);
	assert_content("file", "first", 0644);
	put("second", -EIO, 022);
	assert_content("file", "first", 0644);
	put("second", 0, 027);
	assert_content("file", "second", 0640);
	assert_int_equal(n_names(), 1);
	assert_int_equal(unlinkat(dirfd_, "file", 0), 0);
	assert_int_equal(replace_begin(&r, dirfd_, "no/file", 0666), -ENOENT);
}

/* A record's temporary name was PATH.PID.tmp, and a link there was followed. */
static void a_record_follows_no_link_beside_it(void **state)
{
	char path[64], trap[96], prey[64];
	json_t *j = json_object();
	struct err err;

	(void)state;
	snprintf(path, sizeof(path), "%s/record", dir);
	snprintf(trap, sizeof(trap), "%s.%d.tmp", path, (int)getpid());
	snprintf(prey, sizeof(prey), "%s/prey", dir);
	assert_int_equal(symlink(prey, trap), 0);
	assert_int_equal(json_write(j, path, &err), 0);
	assert_int_equal(access(prey, F_OK), -1);
	assert_int_equal(n_names(), 2);
	assert_int_equal(unlink(trap) | unlink(path), 0);
	json_decref(j);
}

static void a_sweep_takes_its_own_names_alone(void **state)
{
	static const char *const names[] = {
		".file.0123456789abcdef.tmp", /* those of the file first */
		".file.fedcba9876543210.tmp",  ".file.0123456789abcde.tmp",
		".file.0123456789abcdef.tmp2", ".file.0123456789abcdeg.tmp",
		".file2.0123456789abcdef.tmp", "file.0123456789abcdef.tmp",
	};
	char path[64];

	(void)state;
	snprintf(path, sizeof(path), "%s/file", dir);
	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		close(openat(dirfd_, names[i], O_CREAT | O_CLOEXEC | O_WRONLY,
			     0600));
	replace_sweep(path);
	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		assert_int_equal(unlinkat(dirfd_, names[i], 0), i < 2 ? -1 : 0);
	assert_int_equal(n_names(), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(it_is_there_whole_or_not_at_all),
		cmocka_unit_test(a_record_follows_no_link_beside_it),
		cmocka_unit_test(a_sweep_takes_its_own_names_alone),
	};
	int n;

	if (!mkdtemp(dir))
		return 77;
	dirfd_ = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	n = cmocka_run_group_tests(tests, NULL, NULL);
	close(dirfd_);
	rmdir(dir);
	return n;
}

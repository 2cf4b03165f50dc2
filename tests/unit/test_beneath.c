/* SPDX-License-Identifier: MIT */
/* Opens below a directory, by openat2 and, where a filter refuses it, by a
 * walk: both follow the same paths and stop at the same links. */
#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/util.h"
#include "fs/source/beneath.h"
#include "test.h"

/* in/a/file, and next to it the targets of links in it */
static void make(char *top)
{
	assert_non_null(mkdtemp(top));
	assert_int_equal(chdir(top), 0);
	assert_int_equal(mkdir("in", 0755), 0);
	assert_int_equal(mkdir("in/a", 0755), 0);
	assert_int_equal(mkdir("out", 0755), 0);
	close(open("in/a/file", O_CREAT | O_WRONLY, 0644));
	close(open("out/file", O_CREAT | O_WRONLY, 0644));
	assert_int_equal(mkfifo("in/pipe", 0644), 0);
	assert_int_equal(symlink("../out", "in/away"), 0);
	assert_int_equal(symlink("a", "in/within"), 0);
	assert_int_equal(symlink("file", "in/a/link"), 0);
}

static void clean(const char *top)
{
	const char *const names[] = { "in/a/link", "in/within", "in/away",
				      "in/pipe",   "in/a/file", "out/file" };

	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		unlink(names[i]);
	rmdir("in/a");
	rmdir("in");
	rmdir("out");
	assert_int_equal(chdir("/"), 0);
	assert_int_equal(rmdir(top), 0);
}

/* 0 or the error. */
static int result(const struct beneath *b, const char *path, int flags)
{
	int fd = beneath_open(b, path, flags, false);

	if (fd >= 0)
		close(fd);
	return fd < 0 ? fd : 0;
}

static void check_ways(const struct beneath *b)
{
	char text[16] = "";
	int fd;

	assert_int_equal(result(b, ".", O_RDONLY | O_DIRECTORY), 0);
	assert_int_equal(result(b, "a", O_RDONLY | O_DIRECTORY), 0);
	assert_int_equal(result(b, "a/file", O_RDONLY), 0);
	assert_int_equal(result(b, "pipe", O_RDONLY | O_NONBLOCK), 0);
	assert_int_equal(result(b, "a/none", O_RDONLY), -ENOENT);
	/* no link, neither inside the path nor at its end, wherever it
	 * points */
	assert_int_equal(result(b, "a/link", O_RDONLY), -ELOOP);
	assert_true(result(b, "away/file", O_RDONLY) < 0);
	assert_true(result(b, "within/file", O_RDONLY) < 0);
	assert_true(result(b, "away", O_RDONLY | O_DIRECTORY) < 0);
	/* but the link itself */
	fd = beneath_open(b, "a/link", O_PATH, false);
	assert_true(fd >= 0);
	assert_int_equal(readlinkat(fd, "", text, sizeof(text) - 1), 4);
	assert_string_equal(text, "file");
	close(fd);
}

static void test_call(void **state)
{
	char top[] = "/tmp/beneath.XXXXXX";
	struct beneath b;
	int fd;

	(void)state;
	make(top);
	beneath_init(&b, open("in", O_RDONLY | O_DIRECTORY));
	if (!b.no_call) {
		check_ways(&b);
		fd = beneath_open(&b, "a/file", O_RDONLY, true);
		assert_true(fd >= 0 || fd == -EAGAIN);
		if (fd >= 0)
			close(fd);
	}
	close(b.fd);
	clean(top);
	if (b.no_call)
		skip_because("no openat2(2) here");
}

/* False: there are no filters, as under qemu. */
static bool refuse_call(int error)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS,
			 offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_openat2, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | (unsigned)error),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog prog = { ARRAY_SIZE(code), code };

	assert_int_equal(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), 0);
	if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &prog) == 0)
		return true;
	assert_int_equal(errno, EINVAL);
	return false;
}

enum { SKIPPED = 77 };

/* A filter cannot be removed: use a process of its own. */
static void check_walk(int error)
{
	char top[] = "/tmp/beneath.XXXXXX";
	struct beneath b;
	int status;
	pid_t pid;

	make(top);
	pid = fork();
	if (pid == 0) {
		bool refused = refuse_call(error);

		beneath_init(&b, open("in", O_RDONLY | O_DIRECTORY));
		if (!refused && !b.no_call)
			_exit(SKIPPED);
		assert_true(b.no_call);
		check_ways(&b);
		assert_int_equal(beneath_open(&b, "a/file", O_RDONLY, true),
				 -EAGAIN);
		_exit(0);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	clean(top);
	if (WIFEXITED(status) && WEXITSTATUS(status) == SKIPPED)
		skip_because("openat2(2) cannot be refused here");
	assert_int_equal(status, 0);
}

static void test_walk(void **state)
{
	(void)state;
	check_walk(ENOSYS);
	check_walk(EPERM);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_call),
		cmocka_unit_test(test_walk),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

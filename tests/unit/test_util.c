/* SPDX-License-Identifier: MIT */
#include "common/util.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <string.h>

#include "tests/unit/test.h"

static char folder[] = "/tmp/gpemu-util-XXXXXX";

static int in_folder(void **state)
{
	(void)state;
	return mkdtemp(folder) ? chdir(folder) : -1;
}

static int remove_folder(void **state)
{
	(void)state;
	return unlink("file") | chdir("/") | rmdir(folder);
}

static void make_file(size_t n)
{
	_cleanup_fclose_ FILE *f = fopen("file", "w");

	assert_non_null(f);
	for (size_t i = 0; i < n; i++)
		fputc('a' + (int)(i % 26), f);
}

static void a_file_is_read_whole_with_a_nul_behind(void **state)
{
	static const size_t sizes[] = { 0, 1, 4095, 4096, 4097, 1 << 20 };

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(sizes); i++) {
		_cleanup_free_ char *text = NULL;
		size_t n = 7;

		make_file(sizes[i]);
		assert_int_equal(util_read_file("file", sizes[i], &text, &n),
				 0);
		assert_int_equal(n, sizes[i]);
		assert_int_equal(strlen(text), n);
		for (size_t k = 0; k < n; k++)
			assert_int_equal(text[k], 'a' + k % 26);
	}
}

static void no_more_than_the_most_is_read(void **state)
{
	static const size_t most[] = { 0, 1, 4095, 4999 };
	char *text = NULL;
	size_t n;

	(void)state;
	make_file(5000);
	for (size_t i = 0; i < ARRAY_SIZE(most); i++)
		assert_int_equal(util_read_file("file", most[i], &text, &n),
				 -EFBIG);
	/* which ends an endless file */
	assert_int_equal(util_read_file("/dev/zero", 100000, &text, &n),
			 -EFBIG);
	assert_null(text);
}

static void the_end_counts_and_not_the_size_it_says(void **state)
{
	_cleanup_free_ char *text = NULL;
	size_t n;

	(void)state;
	assert_int_equal(
		util_read_file("/proc/self/status", 1 << 20, &text, &n), 0);
	assert_true(n > 100);
	assert_non_null(strstr(text, "Pid:"));
}

static void what_cannot_be_read_says_why(void **state)
{
	char *text = NULL;
	size_t n;

	(void)state;
	assert_int_equal(util_read_file("none", 10, &text, &n), -ENOENT);
	assert_int_equal(util_read_file("/", 10, &text, &n), -EISDIR);
	assert_null(text);
}

static void *feed(void *arg)
{
	for (int i = 0; i < 1000; i++)
		assert_int_equal(write(*(int *)arg, "0123456789", 10), 10);
	close(*(int *)arg);
	return NULL;
}

/* A pipe returns short reads. */
static void a_pipe_is_read_to_its_end(void **state)
{
	_cleanup_free_ char *text = NULL;
	pthread_t writer;
	char first[25];
	int fd[2];
	size_t n;

	(void)state;
	assert_int_equal(pipe(fd), 0);
	assert_int_equal(pthread_create(&writer, NULL, feed, &fd[1]), 0);
	assert_int_equal(util_read_all(fd[0], first, 25, UTIL_HERE), 25);
	assert_memory_equal(first, "0123456789012345678901234", 25);
	assert_int_equal(util_read_whole(fd[0], 1 << 20, &text, &n), 0);
	assert_int_equal(n, 10000 - 25);
	assert_int_equal(text[0], '5');
	pthread_join(writer, NULL);
	close(fd[0]);
}

/* As a shell passes <(command). */
static void a_pipe_is_a_file_as_a_descriptor_only(void **state)
{
	_cleanup_free_ char *text = NULL, *path = NULL;
	pthread_t writer;
	int fd[2], r;
	size_t n;

	(void)state;
	assert_int_equal(mkfifo("pipe", 0600), 0);
	r = util_read_file("pipe", 1 << 20, &text, &n);
	unlink("pipe");
	assert_int_equal(r, -ESPIPE);
	assert_int_equal(pipe(fd), 0);
	assert_int_equal(pthread_create(&writer, NULL, feed, &fd[1]), 0);
	assert_true(asprintf(&path, "/dev/fd/%d", fd[0]) > 0);
	assert_int_equal(util_read_file(path, 1 << 20, &text, &n), 0);
	assert_int_equal(n, 10000);
	pthread_join(writer, NULL);
	close(fd[0]);
}

/* A terminal that has no line yet is waited for. */
static void a_device_is_read_with_blocking_reads(void **state)
{
	FILE *f;
	int fd;

	(void)state;
	fd = posix_openpt(O_RDWR | O_NOCTTY);
	if (fd < 0 || grantpt(fd) < 0 || unlockpt(fd) < 0)
		skip();
	f = util_open_stream(ptsname(fd));
	assert_non_null(f);
	assert_int_equal(fcntl(fileno(f), F_GETFL) & O_NONBLOCK, 0);
	fclose(f);
	close(fd);
}

static void a_part_is_read_up_to_the_end(void **state)
{
	char buf[20];

	(void)state;
	make_file(30);
	_cleanup_close_ int fd = open("file", O_RDONLY);

	assert_int_equal(util_read_all(fd, buf, 20, 3), 20);
	assert_memory_equal(buf, "defghijklmnopqrstuvw", 20);
	assert_int_equal(util_read_all(fd, buf, 20, 25), 5);
	assert_int_equal(util_read_all(fd, buf, 20, 30), 0);
	/* and the file position is unchanged */
	assert_int_equal(util_read_all(fd, buf, 1, UTIL_HERE), 1);
	assert_int_equal(buf[0], 'a');
	assert_int_equal(util_read_all(-1, buf, 1, 0), -EBADF);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_file_is_read_whole_with_a_nul_behind),
		cmocka_unit_test(no_more_than_the_most_is_read),
		cmocka_unit_test(the_end_counts_and_not_the_size_it_says),
		cmocka_unit_test(what_cannot_be_read_says_why),
		cmocka_unit_test(a_pipe_is_read_to_its_end),
		cmocka_unit_test(a_pipe_is_a_file_as_a_descriptor_only),
		cmocka_unit_test(a_device_is_read_with_blocking_reads),
		cmocka_unit_test(a_part_is_read_up_to_the_end),
	};

	return cmocka_run_group_tests(tests, in_folder, remove_folder);
}

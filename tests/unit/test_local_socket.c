/* SPDX-License-Identifier: MIT */
/* Servers' Unix sockets: who sees the file can connect. */
#include "tests/unit/test.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/program/local_socket.h"
#include "common/util.h"

enum { N_STARTS = 300 };

static char dir[] = "/tmp/gpemu-socket.XXXXXX";
static char path[64];

static int dial(const char *at)
{
	_cleanup_close_ int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	struct sockaddr_un a;
	struct err err = { 0 };

	assert_int_equal(local_socket_address(at, &a, &err), 0);
	return connect(fd, (struct sockaddr *)&a, sizeof(a)) < 0 ? -errno : 0;
}

static atomic_uint n_refused, n_connected;
static atomic_bool over;

static void *watch(void *unused)
{
	(void)unused;
	while (!over) {
		int r = dial(path);

		if (r == 0)
			n_connected++;
		else if (r == -ECONNREFUSED)
			n_refused++;
	}
	return NULL;
}

static void whoever_sees_it_can_connect(void **state)
{
	pthread_t thread;

	(void)state;
	assert_int_equal(pthread_create(&thread, NULL, watch, NULL), 0);
	for (int i = 0; i < N_STARTS; i++) {
		struct local_socket s = { 0 };
		struct err err = { 0 };
		int fd = local_socket_listen(path, 0600, &s, &err);

		assert_true(fd >= 0);
		usleep(50);
		local_socket_leave(path, &s);
		usleep(200); /* of whoever has found it before */
		close(fd);
	}
	over = true;
	pthread_join(thread, NULL);
	assert_true(n_connected > 0);
	assert_int_equal(n_refused, 0);
}

static void the_file_has_the_mode_and_no_other_is_left(void **state)
{
	struct local_socket s = { 0 };
	struct err err = { 0 };
	int fd = local_socket_listen(path, 0620, &s, &err);
	struct stat st;

	(void)state;
	assert_true(fd >= 0 && stat(path, &st) == 0);
	assert_int_equal(st.st_mode, S_IFSOCK | 0620);
	assert_int_equal(st.st_nlink, 1);
	assert_true(local_socket_there(path, &s));
	local_socket_leave(path, &s);
	assert_false(local_socket_there(path, &s));
	close(fd);
}

static void what_is_not_a_dead_servers_stays(void **state)
{
	struct local_socket first = { 0 }, second = { 0 };
	struct err err = { 0 };
	FILE *f = fopen(path, "we");
	int fd, other;

	(void)state;
	assert_non_null(f);
	fclose(f);
	assert_int_equal(local_socket_listen(path, 0600, &first, &err),
			 -EADDRINUSE);
	assert_non_null(strstr(err.text, "not a socket"));
	unlink(path);
	err = (struct err){ 0 };
	fd = local_socket_listen(path, 0600, &first, &err);
	assert_int_equal(local_socket_listen(path, 0600, &second, &err),
			 -EADDRINUSE);
	assert_non_null(strstr(err.text, "another server listens"));
	/* it dies and leaves its file; a second takes the place */
	close(fd);
	assert_int_equal(dial(path), -ECONNREFUSED);
	other = local_socket_listen(path, 0600, &second, &err);
	assert_true(other >= 0);
	if (second.ino != first.ino)
		local_socket_leave(path, &first);
	assert_int_equal(dial(path), 0);
	/* while it lives, nothing else has its number */
	unlink(path);
	fd = local_socket_listen(path, 0600, &first, &err);
	assert_true(fd >= 0);
	local_socket_leave(path, &second);
	assert_int_equal(dial(path), 0);
	close(other);
	local_socket_leave(path, &first);
	assert_int_equal(access(path, F_OK), -1);
	close(fd);
}

static void a_long_path_is_an_error(void **state)
{
	struct local_socket s = { 0 };
	struct err err = { 0 };
	char at[sizeof(((struct sockaddr_un *)0)->sun_path) + 20];

	(void)state;
	for (size_t n = strlen(dir) + 2; n < sizeof(at); n++) {
		int fd;

		memset(at, 'x', n);
		at[n] = '\0';
		memcpy(at, path, strlen(dir) + 1);
		fd = local_socket_listen(at, 0600, &s, &err);
		/* with a byte for the name before */
		if (n + 1 < sizeof(((struct sockaddr_un *)0)->sun_path)) {
			assert_true(fd >= 0);
			local_socket_leave(at, &s);
			close(fd);
		} else {
			assert_int_equal(fd, -ENAMETOOLONG);
		}
	}
}

/* In a folder for all, another user can make the lock first: it is not used. */
static void a_lock_that_another_made_is_named(void **state)
{
	struct local_socket s = { 0 };
	struct err err = { 0 };
	char lock[80], other[80];
	FILE *f;

	(void)state;
	snprintf(lock, sizeof(lock), "%s/.s.lock", dir);
	snprintf(other, sizeof(other), "%s/other", dir);
	assert_int_equal(symlink(other, lock), 0);
	assert_int_equal(local_socket_listen(path, 0600, &s, &err), -ELOOP);
	assert_non_null(strstr(err.text, lock));
	assert_int_equal(access(other, F_OK), -1);
	unlink(lock);
	if (geteuid())
		return;
	f = fopen(lock, "we");
	assert_non_null(f);
	fclose(f);
	assert_int_equal(chown(lock, 65534, 65534), 0);
	err = (struct err){ 0 };
	assert_int_equal(local_socket_listen(path, 0600, &s, &err), -EACCES);
	assert_non_null(strstr(err.text, lock));
	unlink(lock);
}

enum { N_AT_ONCE = 3, N_ROUNDS = 400 };

/* Listens until `end` is closed, if it may; says so with a byte. */
static _Noreturn void start(int begin, int done, int end)
{
	struct local_socket s = { 0 };
	struct err err = { 0 };
	char byte;
	int fd;

	/* all at once: the writers' end is closed */
	if (read(begin, &byte, 1) != 0)
		_exit(1);
	fd = local_socket_listen(path, 0600, &s, &err);
	byte = fd >= 0 && local_socket_there(path, &s) ? 'y' : 'n';
	if (fd < 0 && fd != -EADDRINUSE)
		byte = '?';
	if (write(done, &byte, 1) != 1 || read(end, &byte, 1) != 0)
		_exit(1);
	_exit(0);
}

static void leave_a_dead_servers_file(void)
{
	struct local_socket s = { 0 };
	struct err err = { 0 };
	int fd = local_socket_listen(path, 0600, &s, &err);

	assert_true(fd >= 0);
	close(fd);
}

/* One of several that start at once has the name, and can be reached; the
 * others say that it is there. */
static void one_of_several_that_start_has_the_name(void **state)
{
	(void)state;
	for (int round = 0; round < N_ROUNDS; round++) {
		int begin[2], done[2], end[2], n = 0;
		pid_t pid[N_AT_ONCE];
		char said[N_AT_ONCE];

		leave_a_dead_servers_file();
		assert_true(pipe2(begin, O_CLOEXEC) == 0 &&
			    pipe2(done, O_CLOEXEC) == 0 &&
			    pipe2(end, O_CLOEXEC) == 0);
		for (int i = 0; i < N_AT_ONCE; i++) {
			pid[i] = fork();
			if (pid[i] == 0) {
				close(begin[1]);
				close(end[1]);
				start(begin[0], done[1], end[0]);
			}
			assert_true(pid[i] > 0);
		}
		close(begin[0]);
		close(begin[1]);
		for (int i = 0; i < N_AT_ONCE; i++) {
			assert_int_equal(read(done[0], &said[i], 1), 1);
			n += said[i] == 'y';
			assert_int_not_equal(said[i], '?');
		}
		assert_int_equal(n, 1);
		assert_int_equal(dial(path), 0);
		close(end[0]);
		close(end[1]);
		close(done[0]);
		close(done[1]);
		for (int i = 0; i < N_AT_ONCE; i++)
			assert_int_equal(waitpid(pid[i], NULL, 0), pid[i]);
	}
	unlink(path);
}

static int make_folder(void **state)
{
	(void)state;
	if (!mkdtemp(dir))
		return -1;
	snprintf(path, sizeof(path), "%s/s", dir);
	return 0;
}

static int remove_folder(void **state)
{
	(void)state;
	return rmdir(dir);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(whoever_sees_it_can_connect),
		cmocka_unit_test(the_file_has_the_mode_and_no_other_is_left),
		cmocka_unit_test(what_is_not_a_dead_servers_stays),
		cmocka_unit_test(a_long_path_is_an_error),
		cmocka_unit_test(a_lock_that_another_made_is_named),
		cmocka_unit_test(one_of_several_that_start_has_the_name),
	};

	return cmocka_run_group_tests(tests, make_folder, remove_folder);
}

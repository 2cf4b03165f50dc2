/* SPDX-License-Identifier: MIT */
/* Who may say that a child is ready (common/program/child.h). */
#include "tests/unit/test.h"

#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/program/child.h"
#include "common/units.h"

enum { NOBODY = 65534 };

/* As this user, to the socket in `env`. */
static void say(const char *env, uid_t user, const char *text)
{
	struct sockaddr_un to = { .sun_family = AF_UNIX };
	const char *name = strchr(env, '@') + 1;
	pid_t pid = fork();
	int status, fd;

	assert_true(pid >= 0);
	if (pid == 0) {
		if (user && setuid(user) < 0)
			_exit(1);
		memcpy(to.sun_path + 1, name, strlen(name));
		fd = socket(AF_UNIX, SOCK_DGRAM, 0);
		_exit(sendto(fd, text, strlen(text), 0, (void *)&to,
			     (socklen_t)(offsetof(struct sockaddr_un,
						  sun_path) +
					 1 + strlen(name))) < 0);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
}

static void another_user_does_not_say_that_it_is_ready(void **state)
{
	char sleeps[] = "sleep", seconds[] = "100";
	char *argv[] = { sleeps, seconds, NULL };
	struct stop none = { .fd = -1 };
	struct child_ready ready;
	struct child child;
	struct err err = { 0 };
	int status;

	(void)state;
	assert_int_equal(child_ready_init(&ready, &err), 0);
	assert_int_equal(child_start(&child, argv, NULL, STDOUT_FILENO,
				     STDERR_FILENO, &err),
			 0);
	if (geteuid() == 0) {
		say(ready.env, NOBODY, "READY=1");
		assert_int_equal(child_wait_ready(&child, &none, &ready,
						  20 * NS_PER_MS, &status),
				 -ETIMEDOUT);
	}
	say(ready.env, 0, "STATUS=soon\nREADY=1\n");
	assert_int_equal(child_wait_ready(&child, &none, &ready, 10 * NS_PER_S,
					  &status),
			 0);
	child_end(&child, 0);
	child_ready_fini(&ready);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(another_user_does_not_say_that_it_is_ready),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

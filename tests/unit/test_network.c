/* SPDX-License-Identifier: MIT */
/* The network between the nodes of a cell, without its mounts. */
#include "tests/unit/test.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "runner/run/run_network.h"

enum { NODES = 3 };

static int in_folder(void **state)
{
	static char dir[32];

	strcpy(dir, "/tmp/gpemu-network-XXXXXX");
	assert_non_null(mkdtemp(dir));
	*state = dir;
	return 0;
}

/* Nothing is left in it. */
static int remove_folder(void **state)
{
	return *state ? rmdir(*state) : 0;
}

static ino_t namespace(void)
{
	struct stat st;

	assert_int_equal(stat("/proc/self/ns/net", &st), 0);
	return st.st_ino;
}

/* Wherever the making of namespaces ends, this process is back in its own. */
static void a_failure_leaves_the_process_where_it_was(void **state)
{
	struct stop stop = { .fd = -1 };
	int least = open("/dev/null", O_RDONLY);
	ino_t before = namespace();
	struct rlimit all, few;
	struct network net;
	struct err err = { 0 };

	close(least);
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &all), 0);
	for (int n = 1; n <= 3; n++) {
		int r;

		few = all;
		few.rlim_cur = (rlim_t)(least + n);
		assert_int_equal(setrlimit(RLIMIT_NOFILE, &few), 0);
		r = network_open(&net, NODES, NETWORK_NAMESPACES, *state, &stop,
				 &err);
		setrlimit(RLIMIT_NOFILE, &all);
		network_close(&net);
		if (r == -EPERM)
			skip_because("network namespaces are not permitted");
		assert_int_equal(namespace(), before);
		assert_true(r < 0);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_failure_leaves_the_process_where_it_was),
	};

	return cmocka_run_group_tests(tests, in_folder, remove_folder);
}

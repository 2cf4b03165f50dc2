/* SPDX-License-Identifier: MIT */
/* The network between the nodes of a cell, without its mounts. */
#include "tests/unit/test.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
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

/* Listen at HOST:PORT, as gpemu-fs does or as a stranger. -errno. */
static int listen_at(const char *address, int reuse)
{
	struct sockaddr_in a = { .sin_family = AF_INET };
	int fd = socket(AF_INET, SOCK_STREAM, 0), r = fd;
	char host[NETWORK_ADDRESS], *colon;

	strcpy(host, address);
	colon = strchr(host, ':');
	assert_non_null(colon);
	*colon = 0;
	a.sin_port = htons((uint16_t)atoi(colon + 1));
	assert_int_equal(inet_pton(AF_INET, host, &a.sin_addr), 1);
	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &reuse, sizeof(reuse));
	if (bind(fd, (void *)&a, sizeof(a)) < 0 || listen(fd, 1) < 0) {
		r = -errno;
		close(fd);
	}
	return r;
}

/* One of the ports that the nodes used at first. */
static void nodes_on_loopback_have_ports_that_are_free(void **state)
{
	int stranger = listen_at("0.0.0.0:7640", 0), fd[NODES];
	struct stop stop = { .fd = -1 };
	struct network net;
	struct err err = { 0 };

	if (network_open(&net, NODES, NETWORK_LOOPBACK, *state, &stop, &err) <
	    0)
		fail_msg("%s", err.text);
	for (uint32_t i = 0; i < NODES; i++) {
		char address[NETWORK_ADDRESS];

		network_address(&net, i, address);
		assert_int_equal(listen_at(address, 0), -EADDRINUSE);
		fd[i] = listen_at(address, 1);
		if (fd[i] < 0)
			fail_msg("%s: %s", address, strerror(-fd[i]));
	}
	for (uint32_t i = 0; i < NODES; i++)
		close(fd[i]);
	if (stranger >= 0)
		close(stranger);
	network_close(&net);
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
		cmocka_unit_test(nodes_on_loopback_have_ports_that_are_free),
		cmocka_unit_test(a_failure_leaves_the_process_where_it_was),
	};

	return cmocka_run_group_tests(tests, in_folder, remove_folder);
}

/* SPDX-License-Identifier: MIT */
/* Ranks that die; each is a process of its own. */
#include <arpa/inet.h>
#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include "tests/unit/test.h"
#include "common/tick.h"
#include "common/units.h"
#include "loader/comm/comm.h"
#include "loader/comm/watch.h"

static void dead(void *ctx, uint32_t rank)
{
	*(uint32_t *)ctx = rank;
}

static void wait_until(struct comm_watch *w, const uint32_t *seen,
		       uint32_t none)
{
	for (uint64_t end = tick_wall() + 20 * NS_PER_S;
	     *seen == none && tick_wall() < end;)
		watch_wait(w, -1, NS_PER_MS);
}

enum { NONE = 99, REFUSED = 100 };

/* A rank that connects; it ends with the rank that it hears has died, or, if it
 * leaves, in order. */
static pid_t rank_of(const struct watch_door *door, uint32_t rank, bool leaves)
{
	uint32_t seen = NONE;
	struct comm_watch w = { .died = dead, .ctx = &seen };
	pid_t pid = fork();

	if (pid)
		return pid;
	if (watch_init(&w, 3) < 0 || watch_connect(&w, door, rank, NULL) < 0)
		_exit(REFUSED);
	if (!leaves)
		wait_until(&w, &seen, NONE);
	watch_close(&w);
	_exit((int)seen);
}

static int status_of(pid_t pid)
{
	int status = 0;

	assert_int_equal(waitpid(pid, &status, 0), pid);
	return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static void a_killed_rank_is_named_to_all(void **state)
{
	uint32_t seen = NONE;
	struct comm_watch w = { .died = dead, .ctx = &seen };
	struct watch_door door;
	pid_t one, two;

	(void)state;
	assert_int_equal(watch_init(&w, 3), 0);
	assert_int_equal(watch_listen(&w, true, &door, NULL), 0);
	assert_int_equal(door.address[0].sin_addr.s_addr,
			 htonl(INADDR_LOOPBACK));
	one = rank_of(&door, 1, false);
	two = rank_of(&door, 2, false);
	assert_int_equal(watch_accept(&w, 2, NULL), 0);
	kill(two, SIGKILL);
	wait_until(&w, &seen, NONE);
	assert_int_equal(seen, 2);
	assert_int_equal(status_of(one), 2);
	assert_int_equal(status_of(two), -1);
	watch_close(&w);
}

/* Over the loopback, and over what other machines could reach. */
static void who_leaves_in_order_has_not_died(void **state)
{
	(void)state;
	for (int local = 0; local < 2; local++) {
		uint32_t seen = NONE;
		struct comm_watch w = { .died = dead, .ctx = &seen };
		struct watch_door door;
		pid_t one, two;

		assert_int_equal(watch_init(&w, 3), 0);
		assert_int_equal(watch_listen(&w, local, &door, NULL), 0);
		if (door.n == 0) { /* a machine without a network */
			watch_close(&w);
			continue;
		}
		one = rank_of(&door, 1, true);
		two = rank_of(&door, 2, true);
		assert_int_equal(watch_accept(&w, 2, NULL), 0);
		assert_int_equal(status_of(one), NONE);
		assert_int_equal(status_of(two), NONE);
		while (w.n > 1)
			watch_wait(&w, -1, NS_PER_MS);
		assert_int_equal(seen, NONE);
		watch_close(&w);
	}
}

/* A stranger is no rank; the rank behind it is let in. */
static void the_door_needs_its_key(void **state)
{
	uint32_t seen = NONE;
	struct comm_watch w = { .died = dead, .ctx = &seen };
	struct watch_door door, wrong;
	pid_t stranger, one;

	(void)state;
	assert_int_equal(watch_init(&w, 2), 0);
	assert_int_equal(watch_listen(&w, true, &door, NULL), 0);
	wrong = door;
	wrong.key[0] ^= 1;
	stranger = rank_of(&wrong, 1, true);
	one = rank_of(&door, 1, true);
	assert_int_equal(watch_accept(&w, 1, NULL), 0);
	assert_int_equal(w.n, 2);
	assert_int_equal(w.rank[1], 1);
	assert_int_equal(status_of(one), NONE);
	assert_int_equal(status_of(stranger), REFUSED);
	watch_close(&w);
}

/* They were there before, hold their connections, and say nothing. */
static void strangers_cost_no_time(void **state)
{
	enum { CROWD = 40 };
	uint32_t seen = NONE;
	struct comm_watch w = { .died = dead, .ctx = &seen };
	struct watch_door door;
	int crowd[CROWD];
	pid_t one;

	(void)state;
	assert_int_equal(watch_init(&w, 2), 0);
	assert_int_equal(watch_listen(&w, true, &door, NULL), 0);
	for (int i = 0; i < CROWD; i++) {
		crowd[i] = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
		assert_int_equal(connect(crowd[i], (void *)door.address,
					 sizeof(door.address[0])),
				 0);
	}
	one = rank_of(&door, 1, true);
	assert_int_equal(watch_accept(&w, 1, NULL), 0);
	assert_int_equal(w.rank[1], 1);
	assert_int_equal(status_of(one), NONE);
	watch_close(&w);
	for (int i = 0; i < CROWD; i++)
		close(crowd[i]);
}

/* Behind the first address is somebody else. */
static void who_answers_has_to_be_rank_0(void **state)
{
	uint32_t seen = NONE;
	struct comm_watch w = { .died = dead, .ctx = &seen }, other = w;
	struct watch_door door, both;
	pid_t one;

	(void)state;
	assert_int_equal(watch_init(&w, 2), 0);
	assert_int_equal(watch_init(&other, 2), 0);
	assert_int_equal(watch_listen(&other, true, &both, NULL), 0);
	assert_int_equal(watch_listen(&w, true, &door, NULL), 0);
	memcpy(both.key, door.key, sizeof(door.key));
	memcpy(both.own, door.own, sizeof(door.own));
	memcpy(other.key, door.key, sizeof(door.key));
	both.address[both.n++] = door.address[0];
	one = rank_of(&both, 1, true);
	/* it shows the wrong key in return */
	assert_int_equal(watch_accept(&other, 1, NULL), 0);
	assert_int_equal(watch_accept(&w, 1, NULL), 0);
	assert_int_equal(status_of(one), NONE);
	watch_close(&other);
	watch_close(&w);
}

/* No argument becomes a program of mpirun's. */
static void a_colon_starts_nothing(void **state)
{
	char *argv[] = { (char *)"train", (char *)":", (char *)"true", NULL };
	pid_t pid = fork();

	(void)state;
	if (pid == 0)
		_exit(comm_launch(1, 3, argv, NULL) == -EINVAL ? 7 : 8);
	assert_int_equal(status_of(pid), 7);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_killed_rank_is_named_to_all),
		cmocka_unit_test(who_leaves_in_order_has_not_died),
		cmocka_unit_test(the_door_needs_its_key),
		cmocka_unit_test(strangers_cost_no_time),
		cmocka_unit_test(who_answers_has_to_be_rank_0),
		cmocka_unit_test(a_colon_starts_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: MIT */
/* Jobs that take turns on resources: as threads, each with its own description
 * of the file of locks. */
#include "tests/unit/test.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

#include "common/tick.h"
#include "common/units.h"
#include "emu/node/turns.h"

struct rig {
	atomic_int in[TURNS]; /* jobs that use the resource */
	atomic_int collisions, failures;
};

struct member {
	struct rig *rig;
	struct turns turns;
	unsigned iterations;
	bool dies; /* without leaving */
	pthread_t thread;
};

static void *run(void *arg)
{
	struct member *m = arg;
	struct rig *rig = m->rig;

	for (unsigned i = 0; i < m->iterations; i++)
		for (unsigned t = 0; t < TURNS; t++) {
			if (turns_take(&m->turns, (enum turn)t) < 0)
				atomic_fetch_add(&rig->failures, 1);
			if (atomic_fetch_add(&rig->in[t], 1))
				atomic_fetch_add(&rig->collisions, 1);
			if (i % 4 == t)
				tick_pause(NS_PER_MS / 5);
			atomic_fetch_sub(&rig->in[t], 1);
		}
	if (!m->dies)
		turns_leave(&m->turns);
	close((int)m->turns.fd);
	return NULL;
}

static void take_turns(struct rig *rig, struct member *m, unsigned n)
{
	static const unsigned offsets[] = { 0, 2, 3, 1 };
	int file = memfd_create("turns", MFD_CLOEXEC);
	char path[40];

	assert_true(file >= 0);
	snprintf(path, sizeof(path), "/proc/self/fd/%d", file);
	for (unsigned i = 0; i < n; i++) {
		int fd = open(path, O_RDWR | O_CLOEXEC);

		assert_true(fd >= 0);
		m[i].rig = rig;
		m[i].turns = (struct turns){ .fd = (uint64_t)fd,
					     .index = i,
					     .members = n,
					     .offset = offsets[i] };
		assert_int_equal(turns_enter(fd, i), 0);
	}
	for (unsigned i = 0; i < n; i++)
		assert_int_equal(pthread_create(&m[i].thread, NULL, run, &m[i]),
				 0);
	for (unsigned i = 0; i < n; i++)
		pthread_join(m[i].thread, NULL);
	close(file);
	assert_int_equal(rig->failures, 0);
	assert_int_equal(rig->collisions, 0);
}

static void no_two_use_the_same(void **state)
{
	(void)state;
	for (unsigned n = 1; n <= TURNS; n++) {
		struct member m[TURNS] = { 0 };
		struct rig rig = { 0 };

		for (unsigned i = 0; i < n; i++)
			m[i].iterations = 50;
		take_turns(&rig, m, n);
	}
}

/* One has less to do, one ends in the middle of it. */
static void one_that_ends_holds_up_nobody(void **state)
{
	struct member m[TURNS] = {
		{ .iterations = 50 },
		{ .iterations = 3 },
		{ .iterations = 7, .dies = true },
		{ .iterations = 50 },
	};
	struct rig rig = { 0 };

	(void)state;
	take_turns(&rig, m, TURNS);
}

static void options_are_checked(void **state)
{
	static const char *const bad[] = {
		"",	   "fd=99999,members=1",      "members=2,index=2",
		"index=4", "fd=0,members=2,offset=4", "fd=x,members=1",
	};
	struct turns_stages s;
	struct err err = { 0 };

	(void)state;
	assert_int_equal(turns_parse_stages("storage=80ms,load=1s", &s, &err),
			 0);
	assert_int_equal(s.storage_ns, 80 * NS_PER_MS);
	assert_int_equal(s.load_ns, NS_PER_S);
	assert_int_equal(s.cpu_ns, 0);
	assert_int_equal(turns_parse_stages("gpu=1s", &s, &err), -EINVAL);
	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
		struct turns t;

		err = (struct err){ 0 };
		assert_true(turns_parse(bad[i], &t, &err) < 0);
		assert_true(*err.text);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(no_two_use_the_same),
		cmocka_unit_test(one_that_ends_holds_up_nobody),
		cmocka_unit_test(options_are_checked),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

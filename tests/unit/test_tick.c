/* SPDX-License-Identifier: MIT */
/* The mutexes of threads that wait for deadlines (common/tick.h). */
#include "tests/unit/test.h"

#include <limits.h>
#include <poll.h>
#include <semaphore.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <unistd.h>

#include "common/tick.h"
#include "common/units.h"

enum { NICEST = 19, PATIENCE_MS = 20000 };

struct holder {
	pthread_mutex_t lock;
	pthread_t thread;
	sem_t holds, may_go;
	pid_t tid;
};

static void *hold(void *arg)
{
	struct holder *h = arg;

	h->tid = (pid_t)syscall(SYS_gettid);
	setpriority(PRIO_PROCESS, (id_t)h->tid, NICEST);
	pthread_mutex_lock(&h->lock);
	sem_post(&h->holds);
	sem_wait(&h->may_go);
	pthread_mutex_unlock(&h->lock);
	return NULL;
}

static void *want(void *arg)
{
	struct holder *h = arg;

	pthread_mutex_lock(&h->lock);
	pthread_mutex_unlock(&h->lock);
	return NULL;
}

/* Its priority in the kernel's scheduler: 20 plus its niceness, unless
 * boosted. */
static int priority(pid_t tid)
{
	char path[64], text[1024], *p;
	int priority;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/self/task/%d/stat", (int)tid);
	f = fopen(path, "re");
	assert_non_null(f);
	text[fread(text, 1, sizeof(text) - 1, f)] = '\0';
	fclose(f);
	p = strrchr(text, ')'); /* the name may have blanks */
	assert_non_null(p);
	assert_int_equal(sscanf(p + 1,
				" %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u "
				"%*u %*u %*d %*d %d",
				&priority),
			 1);
	return priority;
}

/* Waiters lend their priority to the holder, so that no other thread can
 * preempt it on that processor. */
static void a_holder_has_the_priority_of_who_waits(void **state)
{
	struct holder h;
	pthread_t waiter;
	bool lent = false;

	(void)state;
	if (getpriority(PRIO_PROCESS, 0) >= NICEST)
		skip_because("the tests run at the lowest priority");
	tick_mutex_init(&h.lock);
	sem_init(&h.holds, 0, 0);
	sem_init(&h.may_go, 0, 0);
	assert_int_equal(pthread_create(&h.thread, NULL, hold, &h), 0);
	sem_wait(&h.holds);
	assert_int_equal(priority(h.tid), 20 + NICEST);
	assert_int_equal(pthread_create(&waiter, NULL, want, &h), 0);
	for (int i = 0; !lent && i < PATIENCE_MS; i++) {
		lent = priority(h.tid) < 20 + NICEST;
		tick_pause(NS_PER_MS);
	}
	sem_post(&h.may_go);
	pthread_join(h.thread, NULL);
	pthread_join(waiter, NULL);
	pthread_mutex_destroy(&h.lock);
	assert_true(lent);
}

/* It neither wraps into the past, where a timer would end at once again and
 * again, nor leaves the range of the type. */
static void a_deadline_that_is_too_far_is_in_the_future(void **state)
{
	static const double scales[] = { 1, 1e-3, 1e3 };

	(void)state;
	for (size_t i = 0; i < 3; i++) {
		struct tick *t = tick_new(scales[i], 0);

		assert_non_null(t);
		assert_true(tick_to_wall(t, UINT64_MAX - 1) > tick_wall());
		tick_free(t);
	}
}

/* Of a month there are more ms than an int can hold. */
static void a_wait_is_no_shorter_than_its_deadline(void **state)
{
	int pipes[2];
	struct pollfd fd = { .events = POLLIN };
	uint64_t now = tick_wall(), month = 30 * 86400 * NS_PER_S;
	int left = tick_ms_until(now + 90 * NS_PER_S);
	uint64_t late_ms = (tick_wall() - now) / NS_PER_MS;

	(void)state;
	assert_int_equal(tick_ms_until(now), 0);
	assert_in_range(left, 90000 - late_ms, 90001);
	assert_int_equal(tick_ms_until(now + month), INT_MAX);
	assert_int_equal(tick_ms_until(now + 2 * month), INT_MAX);
	assert_int_equal(tick_ms_until(TICK_NEVER), INT_MAX);
	assert_int_equal(pipe(pipes), 0);
	fd.fd = pipes[0];
	assert_int_equal(tick_poll(&fd, 1, now + NS_PER_MS), 0);
	assert_true(tick_wall() >= now + NS_PER_MS);
	assert_int_equal(write(pipes[1], "", 1), 1);
	assert_int_equal(tick_poll(&fd, 1, now), 1);
	assert_int_equal(tick_poll(&fd, 1, now + 2 * month), 1);
	assert_int_equal(tick_poll(&fd, 1, TICK_NEVER), 1);
	close(pipes[0]);
	close(pipes[1]);
}

static volatile sig_atomic_t n_alarms;

static void count_alarm(int signal)
{
	(void)signal;
	n_alarms++;
}

static void signals_do_not_cut_a_wait_short(void **state)
{
	static const struct itimerval each_ms = { { 0, 1000 }, { 0, 1000 } };
	static const struct itimerval never = { 0 };
	struct sigaction count = { .sa_handler = count_alarm }, old;
	uint64_t until;

	(void)state;
	assert_int_equal(sigaction(SIGALRM, &count, &old), 0);
	assert_int_equal(setitimer(ITIMER_REAL, &each_ms, NULL), 0);
	until = tick_wall() + 20 * NS_PER_MS;
	assert_int_equal(tick_poll(NULL, 0, until), 0);
	assert_true(tick_wall() >= until);
	assert_int_equal(setitimer(ITIMER_REAL, &never, NULL), 0);
	assert_int_equal(sigaction(SIGALRM, &old, NULL), 0);
	assert_true(n_alarms > 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_deadline_that_is_too_far_is_in_the_future),
		cmocka_unit_test(a_wait_is_no_shorter_than_its_deadline),
		cmocka_unit_test(signals_do_not_cut_a_wait_short),
		cmocka_unit_test(a_holder_has_the_priority_of_who_waits),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

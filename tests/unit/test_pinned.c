/* SPDX-License-Identifier: MIT */
#include "tests/unit/test.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/units.h"
#include "common/util.h"
#include "emu/gpu/pinned.h"

/* Small enough for the smallest usual limit, 64 KiB for all of these. */
enum { SMALL = 4096 };

/* Under sanitizers mlock does nothing and succeeds. gcc defines a macro, clang
 * has a feature. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
enum { REAL = 0 };
#elif !defined(__has_feature)
enum { REAL = 1 };
#elif __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
enum { REAL = 0 };
#else
enum { REAL = 1 };
#endif

/* Bytes that this process has locked. */
static uint64_t locked(void)
{
	_cleanup_fclose_ FILE *f = fopen("/proc/self/status", "re");
	unsigned long kib = 0;
	char line[256];

	assert_non_null(f);
	while (fgets(line, sizeof(line), f))
		if (sscanf(line, "VmLck: %lu kB", &kib) == 1)
			return (uint64_t)kib * KIB;
	fail();
	return 0;
}

static void assert_locked(uint64_t before, uint64_t bytes)
{
	if (REAL)
		assert_int_equal(locked() - before, bytes);
}

static struct pinned_pool *pool(size_t n, size_t bytes, uint64_t budget)
{
	struct pinned_pool *p = NULL;
	struct err err = { 0 };

	assert_int_equal(pinned_new(n, bytes, budget, &p, &err), 0);
	return p;
}

static struct pinned_buffer *get(struct pinned_pool *p, size_t bytes)
{
	struct pinned_buffer *b = NULL;
	struct err err = { 0 };

	assert_int_equal(pinned_get(p, bytes, &b, &err), 0);
	assert_true(b->size >= bytes);
	assert_int_equal((uintptr_t)b->data % 4096, 0);
	if (b->size)
		memset(b->data, 1, b->size);
	return b;
}

static int try(struct pinned_pool *p, size_t bytes, struct pinned_buffer **ret)
{
	struct err err = { 0 };

	return pinned_try_get(p, bytes, ret, &err);
}

static void memory_is_really_locked(void **state)
{
	uint64_t before = locked();
	struct pinned_pool *p = pool(3, SMALL + 1, MIB);
	struct pinned_buffer *b;

	(void)state;
	assert_locked(before, 3 * 2 * SMALL);
	assert_int_equal(pinned_most_bytes(p), 3 * 2 * SMALL);
	b = get(p, 3 * SMALL);
	assert_true(pinned_most_bytes(p) > 3 * 2 * SMALL);
	assert_locked(before, pinned_most_bytes(p));
	pinned_put(p, b);
	pinned_free(p);
	assert_int_equal(locked(), before);
}

static void as_many_as_the_budget_holds(void **state)
{
	struct pinned_pool *p = pool(3, SMALL, 2 * SMALL + 100);
	struct pinned_buffer *a = get(p, 1), *b = get(p, SMALL), *c;

	(void)state;
	assert_ptr_not_equal(a->data, b->data);
	assert_int_equal(try(p, 1, &c), -EAGAIN);
	pinned_put(p, a);
	assert_int_equal(try(p, 1, &c), 0);
	assert_ptr_equal(a, c); /* the warmest */
	pinned_put(p, b);
	pinned_put(p, c);
	pinned_free(p);
}

static void run_on(int cpu)
{
	cpu_set_t one;

	CPU_ZERO(&one);
	CPU_SET(cpu, &one);
	assert_int_equal(sched_setaffinity(0, sizeof(one), &one), 0);
}

/* Two processors of those that this process may use. */
static bool two_processors(const cpu_set_t *may, int cpu[2])
{
	int n = 0;

	for (int i = 0; i < CPU_SETSIZE && n < 2; i++)
		if (CPU_ISSET(i, may))
			cpu[n++] = i;
	return n == 2;
}

static void a_processor_gets_back_what_it_filled(void **state)
{
	struct pinned_pool *p = pool(2, SMALL, MIB);
	struct pinned_buffer *a, *b;
	cpu_set_t may;
	int cpu[2];

	(void)state;
	assert_int_equal(sched_getaffinity(0, sizeof(may), &may), 0);
	if (!two_processors(&may, cpu)) {
		pinned_free(p);
		skip_because("one processor");
	}
	run_on(cpu[0]);
	a = get(p, 1);
	run_on(cpu[1]);
	b = get(p, 1);
	/* the last one put back is not its own */
	pinned_put(p, b);
	pinned_put(p, a);
	assert_ptr_equal(get(p, 1), b);
	pinned_put(p, b);
	run_on(cpu[0]);
	assert_ptr_equal(get(p, 1), a);
	/* nothing is left idle for its sake */
	assert_ptr_equal(get(p, 1), b);
	pinned_put(p, a);
	pinned_put(p, b);
	assert_int_equal(sched_setaffinity(0, sizeof(may), &may), 0);
	pinned_free(p);
}

static void one_must_fit(void **state)
{
	struct pinned_pool *p = NULL;
	struct pinned_buffer *b;
	struct err err = { 0 };

	(void)state;
	assert_int_equal(pinned_new(2, 3 * SMALL, 2 * SMALL, &p, &err), -E2BIG);
	assert_non_null(strstr(err.text, "12 KiB"));
	assert_non_null(strstr(err.text, "--pin-budget allows 8"));
	p = pool(2, SMALL, 2 * SMALL);
	assert_int_equal(pinned_get(p, 2 * SMALL + 1, &b, &err), -E2BIG);
	/* that loses nothing */
	b = get(p, 2 * SMALL);
	pinned_put(p, b);
	pinned_free(p);
}

static void unused_buffers_make_room(void **state)
{
	uint64_t before = locked();
	struct pinned_pool *p = pool(3, SMALL, 4 * SMALL);
	struct pinned_buffer *a = get(p, 1), *big;

	(void)state;
	/* 4 - 1 that is in use */
	assert_int_equal(try(p, 4 * SMALL, &big), -EAGAIN);
	big = get(p, 3 * SMALL);
	assert_locked(before, 4 * SMALL);
	assert_int_equal(pinned_most_bytes(p), 4 * SMALL);
	/* the third has lost its memory, and gets none */
	pinned_put(p, a);
	a = get(p, 1);
	assert_locked(before, 4 * SMALL);
	pinned_put(p, a);
	pinned_put(p, big);
	big = get(p, 4 * SMALL);
	assert_locked(before, 4 * SMALL);
	pinned_put(p, big);
	pinned_free(p);
}

static void nothing_at_first(void **state)
{
	struct pinned_pool *p = pool(2, 0, MIB);
	struct pinned_buffer *a = get(p, 0), *b;

	(void)state;
	assert_int_equal(pinned_most_bytes(p), 0);
	b = get(p, 100);
	assert_int_equal(b->size, SMALL);
	pinned_put(p, a);
	pinned_put(p, b);
	pinned_free(p);
}

/* Of the mapping that begins there: has it the flag? */
static bool has_flag(const void *at, const char *flag)
{
	_cleanup_fclose_ FILE *f = fopen("/proc/self/smaps", "re");
	bool here = false;
	char line[512];

	assert_non_null(f);
	while (fgets(line, sizeof(line), f)) {
		unsigned long from, to;

		if (sscanf(line, "%lx-%lx ", &from, &to) == 2)
			here = from <= (uintptr_t)at && (uintptr_t)at < to;
		else if (here && !strncmp(line, "VmFlags:", 8))
			return strstr(line, flag);
	}
	fail();
	return false;
}

/* qemu ignores what a process asks for. */
static bool may_ask_for_huge_pages(void)
{
	enum { BYTES = 4 << 20 };
	void *p = mmap(NULL, BYTES, PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	bool may;

	assert_ptr_not_equal(p, MAP_FAILED);
	may = madvise(p, BYTES, MADV_HUGEPAGE) == 0 && has_flag(p, " hg");
	munmap(p, BYTES);
	return may;
}

static void large_ones_ask_for_huge_pages(void **state)
{
	enum { HUGE = 2 << 20, SIZE = HUGE + SMALL };
	uint64_t before = locked();
	struct pinned_pool *p = NULL;
	struct err err = { 0 };
	struct pinned_buffer *b;

	(void)state;
	if (!may_ask_for_huge_pages() ||
	    pinned_new(3, SIZE, 3 * SIZE, &p, &err) < 0)
		skip_because("no huge pages, or no memory to lock");
	/* no more than requested */
	assert_locked(before, 3 * SIZE);
	b = get(p, SIZE);
	assert_int_equal(b->size, SIZE);
	assert_int_equal((uintptr_t)b->data % HUGE, 0);
	assert_true(has_flag(b->data, " hg"));
	pinned_put(p, b);
	pinned_free(p);
	assert_int_equal(locked(), before);
}

struct waiter {
	struct pinned_pool *pool;
	size_t bytes;
	struct pinned_buffer *got;
	int r;
	pthread_t thread;
};

static void *wait_for_one(void *arg)
{
	struct waiter *w = arg;
	struct err err = { 0 };

	w->r = pinned_get(w->pool, w->bytes, &w->got, &err);
	return NULL;
}

static void start(struct waiter *w)
{
	assert_int_equal(pthread_create(&w->thread, NULL, wait_for_one, w), 0);
}

static void who_waits_is_served(void **state)
{
	struct pinned_pool *p = pool(2, SMALL, 2 * SMALL);
	struct pinned_buffer *a = get(p, 1), *b = get(p, 1);
	/* if both were put back, one buffer would have the memory of two */
	struct waiter w = { .pool = p, .bytes = 2 * SMALL };

	(void)state;
	start(&w);
	pinned_put(p, a);
	pinned_put(p, b);
	pthread_join(w.thread, NULL);
	assert_int_equal(w.r, 0);
	assert_int_equal(w.got->size, 2 * SMALL);
	assert_int_equal(pinned_most_bytes(p), 2 * SMALL);
	pinned_put(p, w.got);
	pinned_free(p);
}

static void cancel_ends_all_waiting(void **state)
{
	struct pinned_pool *p = pool(2, SMALL, 3 * SMALL);
	struct pinned_buffer *a = get(p, 1), *b;
	/* for budget; then, with none left, for a buffer */
	struct waiter w[2] = { { .pool = p, .bytes = 3 * SMALL },
			       { .pool = p, .bytes = 3 * SMALL } };

	(void)state;
	start(&w[0]);
	start(&w[1]);
	pinned_cancel(p);
	for (size_t i = 0; i < ARRAY_SIZE(w); i++) {
		pthread_join(w[i].thread, NULL);
		assert_int_equal(w[i].r, -ECANCELED);
	}
	assert_int_equal(try(p, 1, &b), -ECANCELED);
	pinned_put(p, a);
	pinned_free(p);
}

/* With a limit of 32 KiB and no privilege to exceed it; 0 on success, else the
 * line. */
static int below_the_limit(void)
{
	const struct rlimit little = { 32 * KIB, 32 * KIB };
	struct pinned_buffer *a, *b;
	struct pinned_pool *p = NULL;
	struct err err = { 0 };
	int r;

	if (setrlimit(RLIMIT_MEMLOCK, &little) < 0 ||
	    (geteuid() == 0 && setresuid(65534, 65534, 65534) < 0))
		return __LINE__;
	if (pinned_room(MIB) != 32 * KIB || pinned_room(10001) != 10001)
		return __LINE__;
	r = pinned_new(3, 64 * KIB, MIB, &p, &err);
	if (r != -ENOMEM && r != -EPERM)
		return __LINE__;
	if (!strstr(err.text, "ulimit -l") || !strstr(err.text, "192 KiB"))
		return __LINE__;
	if (pinned_new(2, 8 * KIB, MIB, &p, &err) < 0)
		return __LINE__;
	/* memory that others have locked is not available */
	if (pinned_room(MIB) != 16 * KIB)
		return __LINE__;
	if (pinned_get(p, 1, &a, &err) < 0)
		return __LINE__;
	r = pinned_get(p, 64 * KIB, &b, &err);
	if (r != -ENOMEM && r != -EPERM)
		return __LINE__;
	/* memory that it could not lock is not counted, and the rest works */
	if (pinned_get(p, 8 * KIB, &b, &err) < 0)
		return __LINE__;
	memset(b->data, 1, b->size);
	pinned_put(p, a);
	pinned_put(p, b);
	pinned_free(p);
	return 0;
}

static void too_low_a_limit_is_told(void **state)
{
	pid_t pid;
	int status = 0;

	(void)state;
	if (!REAL)
		skip_because("a sanitizer makes mlock do nothing");
	if (mlock2(&status, 1, MLOCK_ONFAULT) < 0 && errno == EINVAL)
		skip_because("qemu refuses the flag of mlock2(2)");
	munlock(&status, 1);
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		int line = below_the_limit();

		if (line)
			fprintf(stderr, "line %d\n", line);
		_exit(line != 0);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(memory_is_really_locked),
		cmocka_unit_test(as_many_as_the_budget_holds),
		cmocka_unit_test(a_processor_gets_back_what_it_filled),
		cmocka_unit_test(one_must_fit),
		cmocka_unit_test(unused_buffers_make_room),
		cmocka_unit_test(nothing_at_first),
		cmocka_unit_test(large_ones_ask_for_huge_pages),
		cmocka_unit_test(who_waits_is_served),
		cmocka_unit_test(cancel_ends_all_waiting),
		cmocka_unit_test(too_low_a_limit_is_told),
	};
	struct pinned_pool *p;

	/* a sandbox may allow nothing at all */
	if (pinned_new(1, 64 * KIB, MIB, &p, NULL) < 0) {
		print_message("skipped: no memory to lock\n");
		return 77;
	}
	pinned_free(p);
	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: MIT */
/* Guarded copies: faults that are ours, and those that are others'. */
#include "tests/unit/test.h"

#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/thread.h"
#include "loader/engine/guard.h"

/* the largest pages of any machine: of some ARM kernels */
enum { PAGE = 65536, PAGES = 4, BYTES = PAGES * PAGE };

struct file {
	char path[32];
	int fd;
	char *map;
};

/* A file of four pages, mapped. */
static struct file file_new(void)
{
	struct file f = { .path = "/tmp/gpemu-guard-XXXXXX" };
	char data[BYTES];

	for (size_t i = 0; i < sizeof(data); i++)
		data[i] = (char)(i * 7 / 3);
	f.fd = mkstemp(f.path);
	assert_true(f.fd >= 0);
	assert_int_equal(write(f.fd, data, sizeof(data)), sizeof(data));
	f.map = mmap(NULL, BYTES, PROT_READ, MAP_SHARED, f.fd, 0);
	assert_true(f.map != MAP_FAILED);
	return f;
}

static void file_remove(struct file *f)
{
	munmap(f->map, BYTES);
	close(f->fd);
	unlink(f->path);
}

static void cut(const struct file *f, size_t n)
{
	assert_int_equal(ftruncate(f->fd, (off_t)n), 0);
}

static void a_copy_is_all_or_fails(void **state)
{
	struct file f = file_new();
	char to[BYTES + 1] = { 0 };

	(void)state;
	assert_int_equal(guard_begin(), 0);
	to[BYTES] = 'x';
	assert_true(guard_copy(to, f.map, BYTES));
	for (size_t i = 0; i < BYTES; i++)
		assert_int_equal(to[i], (char)(i * 7 / 3));
	assert_int_equal(to[BYTES], 'x');
	assert_true(guard_copy(to, f.map, 0));
	cut(&f, 2 * PAGE);
	for (unsigned i = 0; i < 1000; i++) {
		assert_true(guard_copy(to, f.map, 2 * PAGE));
		assert_false(guard_copy(to, f.map, 2 * PAGE + 1));
		assert_false(guard_copy(to, f.map + BYTES - 1, 1));
	}
	cut(&f, BYTES);
	assert_true(guard_copy(to, f.map, BYTES));
	guard_end();
	file_remove(&f);
}

static void copies_after_one_that_fails_are_made(void **state)
{
	struct file f = file_new();
	char to[3] = { 0 };
	struct guard_copy c[] = {
		{ .to = &to[0], .from = f.map + 1, .n = 1, .failed = true },
		{ .to = &to[1], .from = f.map + PAGE, .n = 1 },
		{ .to = &to[2], .from = f.map + 2, .n = 1, .failed = true },
	};

	(void)state;
	cut(&f, PAGE);
	assert_int_equal(guard_begin(), 0);
	guard_copies(c, 3, NULL, NULL);
	guard_end();
	for (int i = 0; i < 3; i++) {
		assert_int_equal(c[i].failed, i == 1);
		assert_true(i == 1 || to[i] == f.map[1 + i / 2]);
	}
	file_remove(&f);
}

struct doubled {
	const struct guard_copy *c;
	unsigned made;
};

static void put_double(void *ctx, size_t i)
{
	struct doubled *d = ctx;
	const struct guard_copy *c = &d->c[i];

	*(int *)c->to = 2 * *(const volatile char *)c->from;
	d->made |= 1u << i;
}

static void what_is_made_of_a_copy_is_left_where_it_fails(void **state)
{
	struct file f = file_new();
	int to[3] = { -1, -1, -1 };
	const struct guard_copy want[] = {
		{ .to = &to[0], .from = f.map + 1, .n = 1 },
		{ .to = &to[1], .from = f.map + PAGE, .n = 1 },
		{ .to = &to[2], .from = f.map + 2, .n = 1 },
	};
	struct guard_copy c[3];
	struct doubled d = { .c = c };

	(void)state;
	memcpy(c, want, sizeof(c));
	cut(&f, PAGE);
	assert_int_equal(guard_begin(), 0);
	guard_copies(c, 3, put_double, &d);
	guard_end();
	assert_int_equal(d.made, 5);
	for (int i = 0; i < 3; i++)
		assert_int_equal(c[i].failed, i == 1);
	assert_int_equal(to[0], 2 * f.map[1]);
	assert_int_equal(to[1], -1);
	assert_int_equal(to[2], 2 * f.map[2]);
	file_remove(&f);
}

static void *copy_often(void *arg)
{
	const struct file *f = arg;
	char to[PAGE];
	uintptr_t failed = 0;

	for (unsigned i = 0; i < 4000; i++)
		failed += !guard_copy(to, f->map + i % PAGES * PAGE, PAGE);
	return (void *)failed;
}

/* Each thread has its own copy, and the pages beyond the end are half. */
static void threads_fail_alone(void **state)
{
	struct file f = file_new();
	pthread_t thread[4];

	(void)state;
	cut(&f, 2 * PAGE);
	assert_int_equal(guard_begin(), 0);
	for (size_t i = 0; i < 4; i++)
		assert_int_equal(thread_start(&thread[i], NULL, copy_often, &f),
				 0);
	for (size_t i = 0; i < 4; i++) {
		void *failed;

		pthread_join(thread[i], &failed);
		assert_int_equal((uintptr_t)failed, 2000);
	}
	guard_end();
	file_remove(&f);
}

/* --- handlers of others --------------------------------------------------- */

static struct {
	sigjmp_buf out;
	volatile sig_atomic_t n;
	void *volatile at;
	struct sigaction below;
} other;

static void recover(int sig, siginfo_t *info, void *ctx)
{
	(void)sig;
	(void)ctx;
	other.n = other.n + 1;
	other.at = info->si_addr;
	siglongjmp(other.out, 1);
}

/* A handler that passes everything on to what it was installed over. */
static void delegate(int sig, siginfo_t *info, void *ctx)
{
	other.n = other.n + 1;
	if (other.below.sa_flags & SA_SIGINFO)
		other.below.sa_sigaction(sig, info, ctx);
}

static void install(void (*fn)(int, siginfo_t *, void *), struct sigaction *old)
{
	struct sigaction a = { .sa_sigaction = fn, .sa_flags = SA_SIGINFO };

	assert_int_equal(sigaction(SIGBUS, &a, old), 0);
}

static bool installed(void (*fn)(int, siginfo_t *, void *))
{
	struct sigaction a;

	assert_int_equal(sigaction(SIGBUS, NULL, &a), 0);
	return (a.sa_flags & SA_SIGINFO) && a.sa_sigaction == fn;
}

static void touch(const struct file *f, size_t at)
{
	(void)*(volatile const char *)(f->map + at);
}

/* Touch it, with `recover` somewhere. */
static void touch_and_recover(const struct file *f, size_t at)
{
	if (sigsetjmp(other.out, 1) == 0) {
		touch(f, at);
		fail_msg("no fault");
	}
	assert_ptr_equal(other.at, f->map + at);
}

static void other_faults_go_to_the_handler_before(void **state)
{
	struct file f = file_new();
	struct sigaction old;
	char to[PAGE];

	(void)state;
	install(recover, &old);
	cut(&f, PAGE);
	other.n = 0;
	assert_int_equal(guard_begin(), 0);
	assert_int_equal(guard_begin(), 0); /* a second user */
	for (int i = 1; i < 10; i++) {
		assert_false(guard_copy(to, f.map + PAGE, 1));
		touch_and_recover(&f, 2 * PAGE);
		assert_int_equal(other.n, i);
		/* the mask is that of before */
		assert_false(guard_copy(to, f.map + PAGE, 1));
	}
	guard_end();
	assert_false(installed(recover));
	assert_false(guard_copy(to, f.map + PAGE, 1));
	guard_end();
	assert_true(installed(recover));
	sigaction(SIGBUS, &old, NULL);
	file_remove(&f);
}

/* A one-shot handler is gone after its shot, and ours is not. */
static void a_one_shot_handler_leaves_ours(void **state)
{
	struct sigaction once = { .sa_sigaction = recover,
				  .sa_flags = SA_SIGINFO | (int)SA_RESETHAND };
	struct file f = file_new();
	struct sigaction old;
	char to;

	(void)state;
	assert_int_equal(sigaction(SIGBUS, &once, &old), 0);
	cut(&f, PAGE);
	assert_int_equal(guard_begin(), 0);
	touch_and_recover(&f, 2 * PAGE);
	assert_false(guard_copy(&to, f.map + PAGE, 1));
	guard_end();
	assert_false(installed(recover));
	sigaction(SIGBUS, &old, NULL);
	file_remove(&f);
}

/* A handler that was installed over ours stays, and may pass on to us. */
static void a_handler_above_ours_stays(void **state)
{
	struct file f = file_new();
	struct sigaction old;
	char to[PAGE];

	(void)state;
	install(recover, &old);
	cut(&f, PAGE);
	for (int i = 0; i < 20; i++) { /* nothing piles up */
		assert_int_equal(guard_begin(), 0);
		install(delegate, &other.below);
		other.n = 0;
		assert_false(guard_copy(to, f.map + PAGE, 1));
		assert_int_equal(other.n, 1);
		guard_end();
		assert_true(installed(delegate));
		touch_and_recover(&f, PAGE);
		assert_int_equal(other.n, 3);
		/* over it, and it still passes on to us */
		assert_int_equal(guard_begin(), 0);
		other.n = 0;
		assert_false(guard_copy(to, f.map + PAGE, 1));
		assert_int_equal(other.n, 0);
		touch_and_recover(&f, PAGE);
		assert_int_equal(other.n, 2); /* it, and the one below us */
		touch_and_recover(&f, 2 * PAGE);
		assert_int_equal(other.n, 4);
		guard_end();
		assert_true(installed(delegate));
		sigaction(SIGBUS, &other.below, NULL);
	}
	sigaction(SIGBUS, &old, NULL);
	file_remove(&f);
}

/* --- the end of the process ----------------------------------------------- */

/* As Python's faulthandler: restore what was before, and raise it again. */
static void restore_and_raise(int sig, siginfo_t *info, void *ctx)
{
	(void)info;
	(void)ctx;
	sigaction(sig, &other.below, NULL);
	raise(sig);
}

enum how {
	BY_DEFAULT,
	IGNORED,
	ONE_SHOT,
	BELOW,
	ABOVE,
	SENT,
	/* these survive */
	SENT_IGNORED,
	ABOVE_COPY,
};

static void note_only(int sig)
{
	(void)sig;
	other.n = other.n + 1;
}

static void die(enum how how, const struct file *f)
{
	struct sigaction a = { .sa_handler = SIG_DFL };
	char to;

	if (how == IGNORED || how == SENT_IGNORED)
		a.sa_handler = SIG_IGN;
	if (how == ONE_SHOT)
		a = (struct sigaction){ .sa_handler = note_only,
					.sa_flags = (int)SA_RESETHAND };
	sigaction(SIGBUS, &a, NULL);
	if (how == BELOW)
		install(restore_and_raise, &other.below);
	if (guard_begin() < 0)
		_exit(2);
	if (how == ABOVE || how == ABOVE_COPY)
		install(restore_and_raise, &other.below);
	if (how == ABOVE && guard_begin() < 0)
		_exit(2);
	if (how == ABOVE_COPY)
		_exit(guard_copy(&to, f->map, 1) ? 4 : 0);
	if (how == SENT || how == SENT_IGNORED)
		raise(SIGBUS);
	else
		touch(f, BYTES - 1);
	_exit(how == SENT_IGNORED ? 0 : 3);
}

static void without_a_handler_it_ends_the_process(void **state)
{
	struct file f;

	(void)state;
#ifdef __SANITIZE_THREAD__
	skip_because("it holds back signals that are raised in a handler");
#endif
	f = file_new();
	cut(&f, 0);
	for (enum how how = BY_DEFAULT; how <= ABOVE_COPY; how++) {
		int status;
		pid_t pid = fork();

		assert_true(pid >= 0);
		if (pid == 0)
			die(how, &f);
		assert_int_equal(waitpid(pid, &status, 0), pid);
		if (how >= SENT_IGNORED)
			assert_int_equal(status, 0);
		else if (!WIFSIGNALED(status) || WTERMSIG(status) != SIGBUS)
			fail_msg("case %d: status %x", (int)how, status);
	}
	file_remove(&f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_copy_is_all_or_fails),
		cmocka_unit_test(copies_after_one_that_fails_are_made),
		cmocka_unit_test(what_is_made_of_a_copy_is_left_where_it_fails),
		cmocka_unit_test(threads_fail_alone),
		cmocka_unit_test(other_faults_go_to_the_handler_before),
		cmocka_unit_test(a_one_shot_handler_leaves_ours),
		cmocka_unit_test(a_handler_above_ours_stays),
		cmocka_unit_test(without_a_handler_it_ends_the_process),
	};

	return cmocka_run_group_tests_name("guard", tests, NULL, NULL);
}

/* SPDX-License-Identifier: MIT */
/*
 * Engines whose system calls return all that they may return: short reads,
 * EINTR, EAGAIN; and copies out of maps that fault. The samples are the same.
 * The calls are wrapped by the linker (meson.build).
 */
#include "tests/contract/engine_rig.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <liburing.h>

#include "common/rng.h"
#include "common/tick.h"
#include "common/util.h"
#include "loader/engine/guard.h"

ssize_t __real_pread64(int fd, void *buf, size_t n, off_t at);
ssize_t __wrap_pread64(int fd, void *buf, size_t n, off_t at);
void __real_guard_copies(struct guard_copy *c, size_t n, guard_make *make,
			 void *ctx);
void __wrap_guard_copies(struct guard_copy *c, size_t n, guard_make *make,
			 void *ctx);
int __real_io_uring_submit(struct io_uring *ring);
int __wrap_io_uring_submit(struct io_uring *ring);
int __real_io_uring_submit_and_wait(struct io_uring *ring, unsigned n);
int __wrap_io_uring_submit_and_wait(struct io_uring *ring, unsigned n);
int __real_io_uring_submit_and_wait_timeout(struct io_uring *ring,
					    struct io_uring_cqe **cqe,
					    unsigned n,
					    struct __kernel_timespec *ts,
					    sigset_t *mask);
int __wrap_io_uring_submit_and_wait_timeout(struct io_uring *ring,
					    struct io_uring_cqe **cqe,
					    unsigned n,
					    struct __kernel_timespec *ts,
					    sigset_t *mask);

static struct {
	bool on; /* set while no thread of an engine runs */
	atomic_uint n_reads, n_submits;
	size_t victim;	      /* bytes of a copy that fails; 0: none */
	const char *truncate; /* the file truncated before, or NULL */
	off_t left;	      /* to so many bytes */
} faults;

/* In turns, for each thread: EINTR, a short read, all. */
ssize_t __wrap_pread64(int fd, void *buf, size_t n, off_t at)
{
	static _Thread_local unsigned turns;
	unsigned turn = faults.on ? turns++ % 3 : 2;
	ssize_t r;

	atomic_fetch_add(&faults.n_reads, faults.on);
	if (turn == 0) {
		errno = EINTR;
		return -1;
	}
	r = __real_pread64(fd, buf, n, at);
	return turn == 1 && r > 1 ? r - r / 3 : r;
}

/* In turns: EAGAIN, EINTR, results first, twice unchanged. */
static int refuse(void)
{
	static const int turns[] = { -EAGAIN, -EINTR, -EBUSY, 0, 0 };

	if (!faults.on)
		return 0;
	return turns[atomic_fetch_add(&faults.n_submits, 1) % 5];
}

int __wrap_io_uring_submit(struct io_uring *ring)
{
	int r = refuse();

	return r < 0 ? r : __real_io_uring_submit(ring);
}

int __wrap_io_uring_submit_and_wait(struct io_uring *ring, unsigned n)
{
	int r = refuse();

	return r < 0 ? r : __real_io_uring_submit_and_wait(ring, n);
}

int __wrap_io_uring_submit_and_wait_timeout(struct io_uring *ring,
					    struct io_uring_cqe **cqe,
					    unsigned n,
					    struct __kernel_timespec *ts,
					    sigset_t *mask)
{
	int r = refuse();

	return r < 0 ? r
		     : __real_io_uring_submit_and_wait_timeout(ring, cqe, n, ts,
							       mask);
}

struct later {
	guard_make *make;
	void *ctx;
	size_t before;
};

static void make_later(void *ctx, size_t i)
{
	struct later *l = ctx;

	l->make(l->ctx, l->before + i);
}

void __wrap_guard_copies(struct guard_copy *c, size_t n, guard_make *make,
			 void *ctx)
{
	for (size_t i = 0; i < n; i++) {
		bool victim = faults.victim && c[i].n == faults.victim;

		if (victim && faults.truncate)
			assert_int_equal(truncate(faults.truncate, faults.left),
					 0);
		__real_guard_copies(&c[i], 1, make ? make_later : NULL,
				    &(struct later){ make, ctx, i });
		if (victim && !faults.truncate)
			c[i].failed = true; /* as for a page that cannot be
					     * read */
	}
}

static void partial_and_interrupted_calls_are_continued(void **state)
{
	struct fixture *f = *state;
	struct seen want[N] = { 0 };

	want_all(want);
	faults.on = true;
	all_equal(f, want);
	faults.on = false;
	if (!f->refused)
		assert_true(faults.n_reads > 0 && faults.n_submits > 0);
	forget(want);
}

static const struct engine_ops *engine_mmap(void)
{
	return container_of(plugin_find(engine_table, "engine", "mmap", NULL),
			    struct engine_ops, plugin);
}

/* The file is truncated after it was mapped: there is no page. */
static void a_mapped_file_that_is_cut_short_is_a_failed_sample(void **state)
{
	struct fixture *f = *state;
	struct seen seen[N] = { 0 };
	char path[128];

	path_of(f, 12, path);
	assert_int_equal(size_of(12), 300000);
	faults.victim = 300000;
	assert_true(run(f, engine_mmap(), &shapes[0], seen));
	assert_int_equal(seen[12].error, -EIO);
	forget(seen);
	faults.truncate = path;
	assert_true(run(f, engine_mmap(), &shapes[0], seen));
	assert_int_equal(seen[12].error, -ESTALE);
	for (size_t i = 0; i < seen[12].n; i++)
		assert_int_equal(seen[12].data[i], 0);
	assert_int_equal(seen[11].error, 0);
	faults.victim = 0;
	faults.truncate = NULL;
	forget(seen);
}

/*
 * A container is truncated while it is read, at a page and within one, where
 * the rest of the page becomes zeros and nothing faults. Samples that are still
 * there are read, also those that were read together with the others.
 */
static void a_mapped_container_that_is_cut_short(void **state)
{
	struct fixture *f = *state;
	struct seen want[N] = { 0 };
	char path[128];

	container_of_class(f, 0, path);
	assert_int_equal(size_of(7), 5000);
	want_all(want);
	for (unsigned i = 0; i < 2; i++) {
		uint64_t end = f->data.offset[7] + size_of(7) - 1;
		struct seen seen[N] = { 0 };

		faults.victim = 5000;
		faults.truncate = path;
		faults.left = (off_t)(i ? end / 4096 * 4096 : end);
		assert_true(run(f, engine_mmap(), &shapes[3], seen));
		for (unsigned k = 0; k < N; k++) {
			bool gone = k < PER_CLASS && size_of(k) &&
				    f->data.offset[k] + size_of(k) >
					    (uint64_t)faults.left;

			assert_int_equal(seen[k].error, gone ? -ESTALE : 0);
			for (size_t b = 0; b < seen[k].n; b++)
				assert_int_equal(seen[k].data[b],
						 gone ? 0 : want[k].data[b]);
		}
		faults.victim = 0;
		faults.truncate = NULL;
		forget(seen);
	}
	forget(want);
}

struct vandal {
	char path[128];
	size_t n;
	atomic_bool stop;
};

/* Repeatedly truncate a file, remove it, and write it again. */
static void *vandalise(void *arg)
{
	struct vandal *v = arg;

	while (!atomic_load(&v->stop)) {
		FILE *file;

		(void)!truncate(v->path, (off_t)v->n / 2);
		tick_pause(20000);
		(void)!truncate(v->path, 0);
		tick_pause(20000);
		unlink(v->path);
		tick_pause(20000);
		file = fopen(v->path, "we");
		if (file) {
			(void)!ftruncate(fileno(file), (off_t)v->n);
			fclose(file);
		}
		tick_pause(20000);
	}
	return NULL;
}

static void files_may_change_at_any_time(void **state)
{
	struct fixture *f = *state;
	struct vandal v = { .n = size_of(12) };
	const struct engine_ops *e;
	pthread_t thread;

	path_of(f, 12, v.path);
	assert_int_equal(pthread_create(&thread, NULL, vandalise, &v), 0);
	for (size_t i = 0; (e = engine_at(i)); i++) {
		for (int turn = 0; turn < 20; turn++) {
			struct seen seen[N] = { 0 };
			int error;

			if (!run(f, e, &shapes[3], seen))
				break;
			error = seen[12].error;
			assert_true(error == 0 || error == -ESTALE ||
				    error == -ENOENT || error == -EIO);
			for (unsigned k = 0; k < N; k++)
				assert_true(k == 12 || seen[k].error == 0);
			forget(seen);
		}
	}
	atomic_store(&v.stop, true);
	pthread_join(thread, NULL);
}

#define TEST(fn, kind)                                           \
	{                                                        \
#fn ": " #kind, fn, setup_##kind, teardown, NULL \
	}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(partial_and_interrupted_calls_are_continued, files),
		TEST(partial_and_interrupted_calls_are_continued, containers),
		TEST(partial_and_interrupted_calls_are_continued, direct_files),
		TEST(partial_and_interrupted_calls_are_continued,
		     direct_containers),
		TEST(a_mapped_file_that_is_cut_short_is_a_failed_sample, files),
		TEST(a_mapped_container_that_is_cut_short, containers),
		TEST(files_may_change_at_any_time, files),
		TEST(files_may_change_at_any_time, direct_files),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: MIT */
/* libgpemu's threads: the signals that they leave to the program, and that they
 * end before their data is freed. */
#include "tests/contract/lib_rig.h"

#include <dlfcn.h>
#include <errno.h>
#include <malloc.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* --- signals -------------------------------------------------------------- */

static atomic_uint n_threads, n_open_to_signals;

/* clang links TSan's pthread_create into the program: this one would hide it */
#if defined(__clang__) && defined(__SANITIZE_THREAD__)
enum { SEES_THREADS = false };
#else
enum { SEES_THREADS = true };

/* A new thread has the mask of the one that makes it. */
int pthread_create(pthread_t *ret, const pthread_attr_t *attr,
		   void *(*fn)(void *), void *arg)
{
	static const int some[] = { SIGINT,  SIGTERM, SIGHUP,  SIGUSR1, SIGCHLD,
				    SIGALRM, SIGPROF, SIGPIPE, SIGWINCH };
	int (*real)(pthread_t *, const pthread_attr_t *, void *(*)(void *),
		    void *);
	bool blocked = true;
	sigset_t mask;

	pthread_sigmask(SIG_SETMASK, NULL, &mask);
	for (unsigned i = 0; i < sizeof(some) / sizeof(*some); i++)
		blocked &= sigismember(&mask, some[i]);
	/* so that the handler of a crash is called */
	blocked &= !sigismember(&mask, SIGSEGV) && !sigismember(&mask, SIGBUS);
	n_threads++;
	n_open_to_signals += !blocked;
	*(void **)&real = dlsym(RTLD_NEXT, "pthread_create");
	return real(ret, attr, fn, arg);
}
#endif

/* One of each kind that the library makes. */
static void test_signals(void **state)
{
	char dir[96], checkpoints[128];
	const char *const options[][6] = {
		{ "loader=async", "pin=on", checkpoints, "checkpoint_every=2",
		  "checkpoint=async", "checkpoint_size=4K" },
		{ "loader=threads", "pin=inline", "queue_depth=4" },
		{ "loader=async", "prep=emulated", "cores=3", "pin=off" },
	};
	char command[128];

	(void)state;
	if (!SEES_THREADS)
		skip_because("clang's TSan makes the threads");
	snprintf(dir, sizeof(dir), "%s.checkpoints", lib_dir);
	snprintf(checkpoints, sizeof(checkpoints), "checkpoint_dir=%s", dir);
	for (unsigned i = 0; i < 3; i++) {
		const char *more[8] = { 0 };
		sigset_t before, after;
		struct gpemu *g;
		unsigned listing;

		memcpy(more, options[i], sizeof(options[i]));
		pthread_sigmask(SIG_SETMASK, NULL, &before);
		n_threads = n_open_to_signals = 0;
		g = lib_open(NULL, more);
		listing = n_threads;
		assert_int_equal(gpemu_begin_epoch(g, NULL), 1);
		/* cut short, which starts new ones */
		assert_int_equal(gpemu_end_epoch(g, NULL), 0);
		assert_int_equal(gpemu_close(g), 0);
		/* the workers, and those that listed the dataset */
		assert_true(listing > 2);
		assert_int_equal(n_open_to_signals, 0);
		pthread_sigmask(SIG_SETMASK, NULL, &after);
		for (int s = 1; s < NSIG; s++)
			assert_int_equal(sigismember(&before, s),
					 sigismember(&after, s));
	}
	snprintf(command, sizeof(command), "rm -rf %s", dir);
	assert_int_equal(system(command), 0);
}

/* --- after an error ------------------------------------------------------- */

static atomic_uint n_calls;

/* The first worker that requests fails, while the others read slowly. */
static int torn(void *state, struct gpemu_feed *feed, struct gpemu_fetch **ret,
		char *error, size_t n)
{
	unsigned call = n_calls++;
	int r = lib_engine_one.next(state, feed, ret, error, n);

	if (r < 0)
		return r;
	usleep(call ? 100000 : 20000);
	if (call)
		return 0;
	snprintf(error, n, "the tape is torn");
	return -EIO;
}

/* Those write to the timeline when they are done. */
static void test_closed_after_error(void **state)
{
	char path[96], trace[112];
	const char *const more[] = { trace, "gpus=2", NULL };
	struct gpemu_engine e = lib_engine_one;

	(void)state;
	snprintf(path, sizeof(path), "%s.trace", lib_dir);
	snprintf(trace, sizeof(trace), "trace=%s", path);
	e.next = torn;
	for (unsigned seen = 0; seen < 2; seen++) {
		const struct gpemu_batch *b;
		struct gpemu *g;
		char text[8] = "";
		FILE *f;
		int r;

		n_calls = 0;
		g = lib_open(&e, more);
		assert_int_equal(gpemu_begin_epoch(g, NULL), 1);
		while ((r = gpemu_next(g, &b)) > 0)
			assert_int_equal(gpemu_submit(g, b, NULL), 0);
		assert_int_equal(r, -EIO);
		if (seen)
			assert_int_equal(gpemu_end_epoch(g, NULL), -EIO);
		/* the caller knows the error */
		assert_int_equal(gpemu_close(g), 0);
		f = fopen(path, "re");
		assert_non_null(f);
		assert_int_equal(fseek(f, -2, SEEK_END), 0);
		assert_non_null(fgets(text, sizeof(text), f));
		assert_string_equal(text, "]\n");
		fclose(f);
		unlink(path);
	}
}

/* --- batches that are not trained on -------------------------------------- */

/* The samples that the dump lists as trained on. */
static void trained_on(const char *path, unsigned seen[LIB_N])
{
	char line[256];
	FILE *f = fopen(path, "re");

	assert_non_null(f);
	while (fgets(line, sizeof(line), f)) {
		unsigned sample;

		if (line[0] == '#')
			continue;
		assert_int_equal(sscanf(line, "%*u %*u %u", &sample), 1);
		assert_true(sample < LIB_N);
		seen[sample]++;
	}
	fclose(f);
}

/* GPU 0 keeps its batch while others are released unused. */
static void test_released_while_held(void **state)
{
	static const char *const pin[] = { "pin=off", "pin=on", "pin=direct" };
	char path[96], dump[128];

	(void)state;
	snprintf(path, sizeof(path), "%s.samples", lib_dir);
	snprintf(dump, sizeof(dump), "dump_samples=%s", path);
	for (unsigned i = 0; i < 3; i++) {
		const char *const more[] = { "gpus=2", "batch=2",    pin[i],
					     dump,     "prefetch=8", NULL };
		unsigned want[LIB_N] = { 0 }, seen[LIB_N] = { 0 }, n = 0;
		struct gpemu *g = lib_open(NULL, more);
		const struct gpemu_batch *b;

		assert_int_equal(gpemu_begin_epoch(g, NULL), 1);
		for (; gpemu_next(g, &b) > 0; n++) {
			bool used = n == 0 || n == 12;

			for (uint32_t k = 0; used && k < b->n; k++)
				want[b->samples[k].index]++;
			assert_int_equal(used ? gpemu_submit(g, b, NULL)
					      : gpemu_release(g, b),
					 0);
			usleep(5000); /* the next one is ready */
		}
		assert_int_equal(n, 13);
		assert_int_equal(gpemu_end_epoch(g, NULL), 0);
		assert_int_equal(gpemu_close(g), 0);
		trained_on(path, seen);
		assert_memory_equal(seen, want, sizeof(want));
		unlink(path);
	}
}

/* The step that remains when an epoch ends: its batch may be freed. */
static void test_released_at_the_end(void **state)
{
	static const char *const more[] = { "gpus=4", "loader=sync",
					    "prefetch=1", NULL };
	struct gpemu *g = lib_open(NULL, more);
	const struct gpemu_batch *b;
	struct gpemu_epoch e;

	(void)state;
	assert_int_equal(gpemu_begin_epoch(g, NULL), 1);
	for (unsigned i = 0; gpemu_next(g, &b) > 0; i++)
		assert_int_equal(i < 5 ? gpemu_submit(g, b, NULL)
				       : gpemu_release(g, b),
				 0);
	assert_int_equal(gpemu_end_epoch(g, &e), 0);
	assert_int_equal(e.steps, 2);
	assert_int_equal(e.samples, 20);
	assert_int_equal(gpemu_close(g), 0);
}

/*
 * A batch whose GPU waits for the others is released when a later one is not
 * trained on, and those behind it outgrow its memory. The remaining step is
 * computed, and copies nothing that was freed.
 */
static void test_given_back_before_its_step(void **state)
{
	static const char *const more[] = {
		"gpus=8",	    "parallel=ddp", "pin=off",
		"loader=sync",	    "workers=1",    "prefetch=1",
		"order=sequential", "index=off",    NULL
	};
	const struct gpemu_batch *b;
	struct gpemu_epoch e;
	struct gpemu *g;
	char path[96];

	(void)state;
	/* freed memory is unmapped, also without a sanitizer */
	mallopt(M_MMAP_THRESHOLD, 4096);
	for (unsigned i = 0; i < LIB_N; i++) {
		lib_path(i, path);
		assert_int_equal(truncate(path, (i / 4 + 1) << 18), 0);
	}
	g = lib_open(NULL, more);
	assert_int_equal(gpemu_begin_epoch(g, NULL), 1);
	for (unsigned i = 0; gpemu_next(g, &b) > 0; i++)
		assert_int_equal(
			i ? gpemu_release(g, b) : gpemu_submit(g, b, NULL), 0);
	assert_int_equal(gpemu_end_epoch(g, &e), 0);
	assert_int_equal(e.steps, 1);
	assert_int_equal(e.samples, 4);
	assert_int_equal(gpemu_close(g), 0);
	lib_mend_data();
}

/* --- interrupted before it began ------------------------------------------ */

static void *interrupter(void *arg)
{
	usleep(50000);
	gpemu_interrupt(arg);
	return NULL;
}

/* It waits for another job, and leaves no trace of itself. */
static void test_interrupted_start(void **state)
{
	char data[96], name[64];
	const char *options[] = { data,	     name,	  "prep=none",
				  "batch=4", "workers=1", "loader=sync",
				  "pin=off", "index=off", NULL };

	(void)state;
	snprintf(data, sizeof(data), "data=%s", lib_dir);
	snprintf(name, sizeof(name), "coordinate=lib-ends-%d:jobs=2",
		 (int)getpid());
	for (unsigned i = 0; i < 2; i++) {
		struct gpemu *g;
		pthread_t thread;

		assert_int_equal(gpemu_new(&g), 0);
		pthread_create(&thread, NULL, interrupter, g);
		assert_int_equal(gpemu_start(g, options, NULL), -ECANCELED);
		pthread_join(thread, NULL);
		assert_non_null(strstr(gpemu_error(g), "interrupted while "
						       "waiting for the other "
						       "jobs"));
		assert_int_equal(gpemu_close(g), 0);
	}
}

static void test_new_and_closed(void **state)
{
	static const char *const options[] = { "no-such=option", NULL };
	struct gpemu *g;

	(void)state;
	assert_int_equal(gpemu_new(&g), 0);
	assert_int_equal(gpemu_close(g), 0);
	assert_int_equal(gpemu_new(&g), 0);
	gpemu_interrupt(g);
	assert_int_equal(gpemu_start(g, options, NULL), -EINVAL);
	assert_non_null(strstr(gpemu_error(g), "no-such"));
	assert_int_equal(gpemu_close(g), 0);
}

/* --- sizes ---------------------------------------------------------------- */

static void test_batch_beyond_dataset(void **state)
{
	static const char *const parallel[] = { "parallel=ddp", "parallel=dp" };

	(void)state;
	for (unsigned i = 0; i < 2; i++) {
		const char *const more[] = { "batch=200", "gpus=2", parallel[i],
					     "pin=on", NULL };
		struct gpemu *g = lib_open(NULL, more);
		const struct gpemu_batch *b;
		struct gpemu_epoch e;

		assert_int_equal(gpemu_begin_epoch(g, NULL), 1);
		assert_int_equal(gpemu_next(g, &b), 1);
		assert_int_equal(b->n, LIB_N);
		for (uint32_t k = 0; k < b->n; k++)
			lib_check_sample(&b->samples[k], 0);
		assert_int_equal(gpemu_submit(g, b, NULL), 0);
		assert_int_equal(gpemu_next(g, &b), 0);
		assert_int_equal(gpemu_end_epoch(g, &e), 0);
		assert_int_equal(e.steps, 1);
		assert_int_equal(gpemu_close(g), 0);
	}
	lib_no_open(NULL, "batch=1048576", -E2BIG, "out of GPU memory");
}

static void test_empty_dataset(void **state)
{
	char dir[96], option[112];
	const char *options[] = { option, "index=off", NULL };
	char error[512] = "";
	struct gpemu *g;

	(void)state;
	snprintf(dir, sizeof(dir), "%s.empty-XXXXXX", lib_dir);
	assert_non_null(mkdtemp(dir));
	snprintf(option, sizeof(option), "data=%s", dir);
	assert_int_equal(gpemu_open(options, NULL, &g, error, sizeof(error)),
			 -ENODATA);
	assert_null(g);
	assert_non_null(strstr(error, "no samples"));
	assert_int_equal(rmdir(dir), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_signals),
		cmocka_unit_test(test_closed_after_error),
		cmocka_unit_test(test_released_while_held),
		cmocka_unit_test(test_released_at_the_end),
		cmocka_unit_test(test_given_back_before_its_step),
		cmocka_unit_test(test_batch_beyond_dataset),
		cmocka_unit_test(test_empty_dataset),
		cmocka_unit_test(test_interrupted_start),
		cmocka_unit_test(test_new_and_closed),
	};

	return cmocka_run_group_tests(tests, lib_make_data, lib_remove_data);
}

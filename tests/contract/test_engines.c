/* SPDX-License-Identifier: MIT */
/*
 * What every registered engine must do, through the pipeline that uses it: each
 * sample of an epoch exactly once, byte for byte what `sync` delivers and what
 * is in the files, whatever the number of workers, the window, or the changes
 * of files since they were listed.
 */
#include "tests/contract/engine_rig.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/util.h"
#include "tests/contract/tested.h"

extern const struct prep_ops prep_none;

static void every_engine_delivers_the_bytes(void **state)
{
	struct fixture *f = *state;
	struct seen want[N] = { 0 };

	assert_int_equal(f->data.n, N);
	assert_int_equal(f->data.n_classes, N_CLASSES);
	for (unsigned i = 0; i < N; i++)
		assert_int_equal(f->data.label[i], i / PER_CLASS);
	want_all(want);
	all_equal(f, want);
	f->sorted = true;
	all_equal(f, want);
	forget(want);
}

static void damaged_files_are_the_same_to_all(void **state)
{
	const struct fixture *f = *state;
	struct seen want[N] = { 0 };
	char path[128];
	unsigned failed = 0;

	path_of(f, 3, path); /* vanished */
	assert_int_equal(unlink(path), 0);
	path_of(f, 7, path); /* shorter */
	assert_int_equal(truncate(path, 17), 0);
	path_of(f, 9, path); /* one byte longer */
	assert_int_equal(truncate(path, (off_t)size_of(9) + 1), 0);
	path_of(f, 12, path); /* much longer */
	assert_int_equal(truncate(path, 5 << 20), 0);
	path_of(f, 13, path); /* was empty, is not */
	assert_int_equal(truncate(path, 4096), 0);
	path_of(f, 16, path); /* a folder now */
	assert_int_equal(unlink(path), 0);
	assert_int_equal(mkdir(path, 0700), 0);
	path_of(f, 25, path); /* empty now */
	assert_int_equal(truncate(path, 0), 0);

	assert_true(run(f, &engine_sync, &shapes[0], want));
	assert_int_equal(want[3].error, -ENOENT);
	assert_int_equal(want[7].error, -ESTALE);
	assert_int_equal(want[9].error, -ESTALE);
	assert_int_equal(want[12].error, -ESTALE);
	assert_int_equal(want[13].error, -ESTALE);
	assert_int_equal(want[16].error, -EISDIR);
	assert_int_equal(want[25].error, -ESTALE);
	for (unsigned i = 0; i < N; i++) {
		failed += want[i].error < 0;
		for (size_t b = 0; want[i].error && b < want[i].n; b++)
			assert_int_equal(want[i].data[b], 0);
	}
	assert_int_equal(failed, 7);
	all_equal(f, want);
	forget(want);
}

/* With a writer that says nothing it is the read that would wait. */
static void no_engine_waits_for_a_pipe(void **state)
{
	const struct fixture *f = *state;
	const struct engine_ops *e;
	char path[128];
	int writer = -1;

	path_of(f, 5, path);
	assert_int_equal(unlink(path), 0);
	assert_int_equal(mkfifo(path, 0600), 0);
	for (size_t i = 0; (e = engine_at(i / 2)); i++) {
		struct seen seen[N] = { 0 };

		if (i % 2)
			writer = open(path, O_RDWR | O_CLOEXEC);
		if (run(f, e, &shapes[0], seen)) {
			assert_int_equal(seen[5].error, -ESPIPE);
			assert_int_equal(seen[6].error, 0);
			forget(seen);
		}
		if (i % 2)
			close(writer);
	}
}

static void damaged_containers_are_the_same_to_all(void **state)
{
	struct fixture *f = *state;
	struct seen want[N] = { 0 };
	char path[128];

	/* inside sample 6; sample 12 of the next file is gone, and its
	 * neighbour ends with the file */
	container_of_class(f, 0, path);
	assert_int_equal(truncate(path, (off_t)f->data.offset[6] + 10), 0);
	container_of_class(f, 1, path);
	assert_int_equal(
		truncate(path, (off_t)(f->data.offset[24] + f->data.size[24])),
		0);
	want_all(want);
	for (unsigned i = 0; i < N; i++) {
		if (i == 25 || (i >= 6 && i <= 12)) {
			want[i].error = -ESTALE;
			memset(want[i].data, 0, want[i].n);
		}
	}
	all_equal(f, want);
	forget(want);
}

static void a_failed_sample_has_its_error(void **state)
{
	const struct fixture *f = *state;
	const struct engine_ops *e;
	struct seen seen[N] = { 0 };
	char path[128];

	path_of(f, 20, path);
	assert_int_equal(unlink(path), 0);
	for (size_t i = 0; (e = engine_at(i)); i++) {
		struct pipeline *p = new_pipeline(f, e, &shapes[3]);

		if (!p)
			continue;
		one_epoch(f, p, e, &shapes[3], 0, seen);
		one_epoch(f, p, e, &shapes[3], 1, seen);
		assert_int_equal(seen[20].error, -ENOENT);
		assert_int_equal(seen[20].times, 2);
		pipeline_free(p);
		forget(seen);
	}
}

/* Stopped with batches taken, ready, and in flight; nothing hangs. */
static void an_interrupted_pipeline_ends(void **state)
{
	const struct fixture *f = *state;
	const struct engine_ops *e;
	uint32_t v[N];

	for (uint32_t i = 0; i < N; i++)
		v[i] = i;
	for (size_t i = 0; (e = engine_at(i)); i++) {

		for (size_t s = 0; s < n_shapes; s++) {
			struct pipeline *p = new_pipeline(f, e, &shapes[s]);
			struct err err = { 0 };
			struct delivery d;

			if (!p)
				continue;
			pipeline_begin(p, 0, v, shapes[s].n);
			assert_int_equal(pipeline_next(p, 0, &d, &err), 0);
			pipeline_interrupt(p);
			pipeline_release(p, &d);
			if (shapes[s].n > BATCH)
				assert_int_equal(pipeline_next(p, 0, &d, &err),
						 -ECANCELED);
			pipeline_free(p);
		}
	}
}

/* Each engine either works or reports an error, and can be released after
 * that. */
static void an_engine_without_descriptors(void **state)
{
	const struct fixture *f = *state;
	struct shape s = {
		.workers = 2, .superbatch = 1, .queue_depth = 200, .n = N
	};
	const struct engine_ops *e;
	struct rlimit old, low;

	assert_int_equal(getrlimit(RLIMIT_NOFILE, &old), 0);
	low = old;
	low.rlim_cur = 64;
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &low), 0);
	for (size_t i = 0; (e = engine_at(i)); i++) {
		struct seen seen[N] = { 0 };

		run(f, e, &s, seen);
		forget(seen);
	}
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &old), 0);
}

static void null_makes_batches_out_of_nothing(void **state)
{
	const struct fixture *f = *state;
	struct pipeline_config c = {
		.engine = container_of(plugin_find(engine_table, "engine",
						   "null", NULL),
				       struct engine_ops, plugin),
		.prep = &prep_none,
		.tick = f->tick,
		.batch = BATCH,
	};
	struct err err = { 0 };
	struct pipeline *p;
	struct delivery d;
	uint64_t n = 0;

	assert_int_equal(pipeline_new(&c, &p, &err), 0);
	pipeline_begin(p, 0, NULL, 10);
	while (pipeline_next(p, 0, &d, &err) == 0) {
		n += d.n;
		pipeline_release(p, &d);
	}
	assert_int_equal(n, 10);
	pipeline_free(p);
}

#define TEST(fn, kind)                                           \
	{                                                        \
#fn ": " #kind, fn, setup_##kind, teardown, NULL \
	}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		TEST(every_engine_delivers_the_bytes, files),
		TEST(every_engine_delivers_the_bytes, containers),
		TEST(every_engine_delivers_the_bytes, direct_files),
		TEST(every_engine_delivers_the_bytes, direct_containers),
		TEST(damaged_files_are_the_same_to_all, files),
		TEST(damaged_files_are_the_same_to_all, direct_files),
		TEST(no_engine_waits_for_a_pipe, files),
		TEST(no_engine_waits_for_a_pipe, direct_files),
		TEST(damaged_containers_are_the_same_to_all, containers),
		TEST(damaged_containers_are_the_same_to_all, direct_containers),
		TEST(a_failed_sample_has_its_error, files),
		TEST(a_failed_sample_has_its_error, direct_files),
		TEST(an_interrupted_pipeline_ends, files),
		TEST(an_interrupted_pipeline_ends, direct_containers),
		TEST(an_engine_without_descriptors, files),
		TEST(null_makes_batches_out_of_nothing, files),
	};
	engines_tested = tested_parts(argc, argv, engine_table);
	return cmocka_run_group_tests(tests, NULL, NULL);
}

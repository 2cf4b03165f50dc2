/* SPDX-License-Identifier: MIT */
/*
 * What every registered engine must do, through the pipeline that uses it:
 * each sample of an epoch exactly once, byte for byte what `sync` delivers
 * and what is in the files, whatever the number of workers, the window, or
 * what became of the files since they were listed.
 */
#include "tests/unit/test.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/util.h"
#include "loader/order.h"
#include "loader/pipeline.h"

enum { N_CLASSES = 3, PER_CLASS = 13, N = N_CLASSES * PER_CLASS, BATCH = 4 };

extern const struct prep_ops prep_none;
extern const struct engine_ops engine_sync;

struct fixture {
	char dir[64];
	struct dataset data;
	struct tick *tick;
};

/* How the pipeline runs, and what is expected of it. */
struct shape {
	uint32_t workers, superbatch, queue_depth;
	bool pin;
	uint64_t n; /* samples of an epoch */
};

struct seen {
	unsigned times;
	int error;
	size_t n;
	char *data;
};

static const struct shape shapes[] = {
	{ .workers = 1, .superbatch = 1, .queue_depth = 1, .n = N },
	{ .workers = 1, .superbatch = 3, .queue_depth = 16, .n = N },
	{ .workers = 3, .superbatch = 1, .queue_depth = 5, .n = N },
	{ .workers = 3, .superbatch = 3, .queue_depth = 64, .n = N },
	{ .workers = 3,
	  .superbatch = 3,
	  .queue_depth = 64,
	  .pin = true,
	  .n = N },
	/* the last batch dropped; one sample; less than a batch */
	{ .workers = 3,
	  .superbatch = 3,
	  .queue_depth = 64,
	  .n = N / BATCH * BATCH },
	{ .workers = 3, .superbatch = 1, .queue_depth = 8, .n = 1 },
	{ .workers = 2, .superbatch = 2, .queue_depth = 8, .n = BATCH - 1 },
};

/* From nothing to 300 KB, a page more or less, one empty in each class. */
static size_t size_of(unsigned i)
{
	static const size_t sizes[] = { 0,     1,     100,   4095,  4096,
					4097,  8192,  5000,  20000, 65536,
					65537, 12345, 300000 };

	return sizes[i % PER_CLASS];
}

static void path_of(const struct fixture *f, unsigned i, char path[128])
{
	snprintf(path, 128, "%s/class%u/%02u.bin", f->dir, i / PER_CLASS,
		 i % PER_CLASS);
}

static void write_file(const char *path, uint64_t seed, size_t n)
{
	_cleanup_free_ char *data = malloc(n + 1);
	struct rng rng = rng_stream(seed, "content", 0);
	FILE *file = fopen(path, "we");

	assert_non_null(file);
	rng_bytes(&rng, data, n);
	assert_int_equal(fwrite(data, 1, n, file), n);
	assert_int_equal(fclose(file), 0);
}

static int setup(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));
	struct err err = { 0 };
	char path[128];

	strcpy(f->dir, "/tmp/gpemu-engines-XXXXXX");
	assert_non_null(mkdtemp(f->dir));
	for (unsigned c = 0; c < N_CLASSES; c++) {
		snprintf(path, sizeof(path), "%s/class%u", f->dir, c);
		assert_int_equal(mkdir(path, 0700), 0);
	}
	for (unsigned i = 0; i < N; i++) {
		path_of(f, i, path);
		write_file(path, i, size_of(i));
	}
	if (dataset_open(f->dir, &f->data, &err) < 0)
		fail_msg("%s", err.text);
	f->tick = tick_new(1e-3, 0);
	*state = f;
	return 0;
}

static int teardown(void **state)
{
	struct fixture *f = *state;
	char path[128];

	dataset_close(&f->data);
	tick_free(f->tick);
	for (unsigned i = 0; i < N; i++) {
		path_of(f, i, path);
		if (unlink(path) < 0)
			rmdir(path);
	}
	for (unsigned c = 0; c < N_CLASSES; c++) {
		snprintf(path, sizeof(path), "%s/class%u", f->dir, c);
		rmdir(path);
	}
	rmdir(f->dir);
	free(f);
	return 0;
}

/* NULL, with a reason printed, when the engine is not available here. */
static struct pipeline *pipeline(const struct fixture *f,
				 const struct engine_ops *engine,
				 const struct shape *s)
{
	static const struct gpu_law pin = { .base_ms = 1 };
	struct pipeline_config c = { .data = &f->data,
				     .engine = engine,
				     .prep = &prep_none,
				     .pin = s->pin ? &pin : NULL,
				     .tick = f->tick,
				     .workers = s->workers,
				     .queue_depth = s->queue_depth,
				     .batch = BATCH,
				     .superbatch = s->superbatch,
				     .prefetch = 2 };
	struct err err = { 0 };
	struct pipeline *p;
	int r = pipeline_new(&c, &p, &err);

	if (r == -EPERM || r == -ENOMEM) {
		print_message("skipped: %s: %s\n", engine->plugin.name,
			      err.text);
		return NULL;
	}
	if (r < 0)
		fail_msg("%s: %s", engine->plugin.name, err.text);
	return p;
}

/* Samples of a batch stand in the order, or at least in its window of it. */
static void check_place(const struct engine_ops *e, const struct shape *s,
			const uint32_t *order, uint64_t at, uint32_t sample)
{
	uint64_t window = (uint64_t)BATCH * s->superbatch;
	uint64_t from = at / window * window;

	if (e->whole_batches) {
		assert_int_equal(order[at], sample);
		return;
	}
	for (uint64_t i = from; i < MIN(from + window, s->n); i++)
		if (order[i] == sample)
			return;
	fail_msg("sample %u left its window", sample);
}

static void keep(struct seen *seen, const struct place *p)
{
	seen->times++;
	seen->error = p->error;
	seen->n = p->n;
	free(seen->data);
	seen->data = malloc(p->n + 1);
	memcpy(seen->data, p->data, p->n);
}

static void one_epoch(const struct fixture *f, struct pipeline *p,
		      const struct engine_ops *e, const struct shape *s,
		      uint64_t epoch, struct seen *seen)
{
	const struct order_ops *order =
		container_of(plugin_find(order_table, "order", "shuffle", NULL),
			     struct order_ops, plugin);
	struct order_input in = {
		.seed = 11, .epoch = epoch, .n = N, .window = 1
	};
	uint64_t at = 0, bytes = 0;
	struct err err = { 0 };
	uint32_t v[N];
	struct delivery d;
	int r;

	assert_int_equal(order->fill(&in, v, &err), 0);
	pipeline_begin(p, epoch, v, s->n);
	while ((r = pipeline_next(p, tick_now(f->tick), &d, &err)) == 0) {
		uint64_t usable = 0;

		/* batches are full, but for the last */
		assert_int_equal(d.n, MIN(BATCH, s->n - at));
		for (uint32_t i = 0; i < d.n; i++) {
			const struct place *place = &d.place[i];

			check_place(e, s, v, at + i, place->sample);
			keep(&seen[place->sample], place);
			usable += place->error ? 0 : place->n;
		}
		assert_true(d.ready_ns >= d.complete_ns);
		assert_int_equal(d.bytes, usable);
		bytes += d.bytes;
		at += d.n;
		pipeline_release(p, &d);
	}
	assert_int_equal(r, -ENODATA);
	assert_int_equal(at, s->n);
	for (uint64_t i = 0; i < s->n; i++)
		assert_int_equal(seen[v[i]].times, epoch + 1);
	assert_true(bytes <= f->data.bytes);
}

static void forget(struct seen seen[N])
{
	for (unsigned i = 0; i < N; i++)
		free(seen[i].data);
	memset(seen, 0, N * sizeof(*seen));
}

/* Two epochs over all samples; false when the engine is not available. */
static bool run(const struct fixture *f, const struct engine_ops *e,
		const struct shape *s, struct seen *seen)
{
	struct pipeline *p = pipeline(f, e, s);
	struct work work = { 0 };

	if (!p)
		return false;
	one_epoch(f, p, e, s, 0, seen);
	if (s->n == N)
		one_epoch(f, p, e, s, 1, seen);
	pipeline_work(p, &work);
	assert_int_equal(work.read.n, s->n == N ? 2 * N : s->n);
	pipeline_free(p);
	return true;
}

static void compare(const struct fixture *f, const struct seen *want,
		    const struct seen *got, const char *name)
{
	for (unsigned i = 0; i < N; i++) {
		if (!got[i].times)
			continue;
		if (got[i].error != want[i].error || got[i].n != want[i].n)
			fail_msg("%s: %s: error %d of %zu bytes, not %d of %zu",
				 name, dataset_path(&f->data, i), got[i].error,
				 got[i].n, want[i].error, want[i].n);
		assert_memory_equal(got[i].data, want[i].data, got[i].n);
	}
}

/* All engines in all shapes against `want`, by sample. */
static void all_equal(const struct fixture *f, const struct seen *want)
{
	for (size_t p = 0; engine_table[p]; p++) {
		const struct engine_ops *e = container_of(
			engine_table[p], struct engine_ops, plugin);

		for (size_t s = 0; e->next && s < ARRAY_SIZE(shapes); s++) {
			struct seen got[N] = { 0 };

			if (run(f, e, &shapes[s], got))
				compare(f, want, got, e->plugin.name);
			forget(got);
		}
	}
}

static void every_engine_delivers_the_files(void **state)
{
	const struct fixture *f = *state;
	struct seen want[N] = { 0 };

	assert_int_equal(f->data.n, N);
	assert_int_equal(f->data.n_classes, N_CLASSES);
	for (unsigned i = 0; i < N; i++) {
		struct rng rng = rng_stream(i, "content", 0);

		assert_int_equal(f->data.label[i], i / PER_CLASS);
		want[i].n = size_of(i);
		want[i].data = malloc(want[i].n + 1);
		rng_bytes(&rng, want[i].data, want[i].n);
	}
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

static void failures_are_counted_and_the_first_kept(void **state)
{
	const struct fixture *f = *state;
	struct seen seen[N] = { 0 };
	char path[128];

	path_of(f, 20, path);
	assert_int_equal(unlink(path), 0);
	for (size_t i = 0; engine_table[i]; i++) {
		const struct engine_ops *e = container_of(
			engine_table[i], struct engine_ops, plugin);
		struct pipeline *p = e->next ? pipeline(f, e, &shapes[3])
					     : NULL;
		struct worker_failures w;

		if (!p)
			continue;
		assert_int_equal(pipeline_failures(p).n, 0);
		one_epoch(f, p, e, &shapes[3], 0, seen);
		one_epoch(f, p, e, &shapes[3], 1, seen);
		w = pipeline_failures(p);
		assert_int_equal(w.n, 2);
		assert_int_equal(w.sample, 20);
		assert_int_equal(w.error, -ENOENT);
		pipeline_free(p);
		forget(seen);
	}
}

/* Stopped with batches taken, ready, and on their way; nothing hangs. */
static void an_interrupted_pipeline_ends(void **state)
{
	const struct fixture *f = *state;
	uint32_t v[N];

	for (uint32_t i = 0; i < N; i++)
		v[i] = i;
	for (size_t i = 0; engine_table[i]; i++) {
		const struct engine_ops *e = container_of(
			engine_table[i], struct engine_ops, plugin);

		for (size_t s = 0; e->next && s < ARRAY_SIZE(shapes); s++) {
			struct pipeline *p = pipeline(f, e, &shapes[s]);
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

/* Each engine either copes or says so, and can be released after that. */
static void an_engine_without_descriptors(void **state)
{
	const struct fixture *f = *state;
	struct shape s = {
		.workers = 2, .superbatch = 1, .queue_depth = 200, .n = N
	};
	struct rlimit old, low;

	assert_int_equal(getrlimit(RLIMIT_NOFILE, &old), 0);
	low = old;
	low.rlim_cur = 64;
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &low), 0);
	for (size_t i = 0; engine_table[i]; i++) {
		const struct engine_ops *e = container_of(
			engine_table[i], struct engine_ops, plugin);
		struct seen seen[N] = { 0 };

		if (e->next)
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

#define TEST(fn) cmocka_unit_test_setup_teardown(fn, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(every_engine_delivers_the_files),
		TEST(damaged_files_are_the_same_to_all),
		TEST(failures_are_counted_and_the_first_kept),
		TEST(an_interrupted_pipeline_ends),
		TEST(an_engine_without_descriptors),
		TEST(null_makes_batches_out_of_nothing),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

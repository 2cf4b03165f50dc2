/* SPDX-License-Identifier: MIT */
/*
 * Pipelines that make their batches for each other deliver what one alone does:
 * every sample once in each epoch, with its bytes, from every engine.
 */
#include "tests/contract/engine_rig.h"

#include <errno.h>
#include <pthread.h>
#include <string.h>
#include <unistd.h>

#include "common/units.h"
#include "common/util.h"
#include "loader/pipeline/staged.h"

enum { JOBS = 2, EPOCHS = 3 };

struct job {
	const struct fixture *f;
	const struct engine_ops *engine;
	struct shape shape;
	pthread_t thread;
	struct pipeline *pipeline;
	struct seen seen[N];
	struct work work;
};

static void *use(void *arg)
{
	struct job *j = arg;

	for (uint64_t epoch = 0; epoch < EPOCHS; epoch++)
		one_epoch(j->f, j->pipeline, j->engine, &j->shape, epoch,
			  j->seen);
	/* the last to end have what the first leave */
	staging_leave(j->shape.staging);
	return NULL;
}

static void join(struct job *jobs, const struct fixture *f)
{
	json_auto_t *same = json_object();
	/* room for two batches of the largest files */
	struct staging_config c = { .name = "staged",
				    .jobs = JOBS,
				    .bytes = 2000000,
				    .largest = 1000000,
				    .same = same,
				    .tick = f->tick };
	struct err err = { 0 };

	for (unsigned i = 0; i < JOBS; i++)
		assert_int_equal(staging_join(&c, &jobs[i].shape.staging, &err),
				 0);
	for (unsigned i = 0; i < JOBS; i++)
		assert_int_equal(staging_begin(jobs[i].shape.staging, &err), 0);
}

static void share(const struct fixture *f, const struct engine_ops *e,
		  const struct shape *s, const struct seen *want)
{
	struct job *jobs = calloc(JOBS, sizeof(*jobs));
	uint64_t n_read = 0, made = 0, batches = (s->n + BATCH - 1) / BATCH;

	for (unsigned i = 0; i < JOBS; i++) {
		jobs[i].f = f;
		jobs[i].engine = e;
		jobs[i].shape = *s;
	}
	join(jobs, f);
	for (unsigned i = 0; i < JOBS; i++)
		jobs[i].pipeline = new_pipeline(f, e, &jobs[i].shape);
	for (unsigned i = 0; jobs[0].pipeline && i < JOBS; i++)
		pthread_create(&jobs[i].thread, NULL, use, &jobs[i]);
	for (unsigned i = 0; jobs[0].pipeline && i < JOBS; i++)
		pthread_join(jobs[i].thread, NULL);
	for (unsigned i = 0; jobs[0].pipeline && i < JOBS; i++) {
		struct staging_stats st = staging_stats(jobs[i].shape.staging);

		compare(f, want, jobs[i].seen, e->plugin.name);
		pipeline_work(jobs[i].pipeline, &jobs[i].work);
		n_read += jobs[i].work.read.n;
		made += st.made;
		assert_int_equal(st.used, EPOCHS * batches);
		assert_true(st.most_bytes > 0 && st.most_bytes <= st.bytes);
	}
	if (jobs[0].pipeline) {
		/* one sweep for both */
		assert_int_equal(n_read, EPOCHS * s->n);
		assert_int_equal(made, EPOCHS * batches);
	}
	for (unsigned i = 0; i < JOBS; i++) {
		pipeline_free(jobs[i].pipeline);
		staging_free(jobs[i].shape.staging);
		forget(jobs[i].seen);
	}
	free(jobs);
}

static void each_job_gets_every_sample_whoever_read_it(void **state)
{
	const struct fixture *f = *state;
	struct shape plain = {
		.workers = 2, .superbatch = 1, .queue_depth = 8, .n = N
	};
	struct shape pinned = plain, inlined = plain;
	const struct engine_ops *e;
	struct seen want[N] = { 0 };

	pinned.pin = inlined.pin = inlined.pin_inline = true;
	want_all(want);
	for (size_t i = 0; (e = engine_at(i)); i++) {
		share(f, e, &plain, want);
		share(f, e, &pinned, want);
		share(f, e, &inlined, want);
	}
	forget(want);
}

/* --- a batch that cannot be ----------------------------------------------- */

/* As loader/pipeline/staged.c has it in the area. */
struct forged {
	uint32_t sample;
	int32_t error;
	uint64_t bytes;
};

enum forgery { NONE, SAMPLE, ERROR, SIZE, COUNT, N_FORGERIES };

static uint64_t size_of_forged(void *ctx, uint64_t index)
{
	(void)ctx;
	(void)index;
	return staged_bytes(BATCH, BATCH);
}

/* As a job whose first batch is not what it should be. */
static void forge(struct staging *s, enum forgery how)
{
	struct forged *to;
	uint64_t index;

	assert_int_equal(staging_enter(s, 0, 1, size_of_forged, NULL), 0);
	assert_int_equal(staging_claim(s, 1, &index), 0);
	assert_int_equal(index, 0);
	to = staging_memory(s, index, size_of_forged(NULL, index));
	assert_non_null(to);
	for (uint32_t i = 0; i < BATCH; i++)
		to[i] = (struct forged){ i, 0, 1 };
	if (how == SAMPLE)
		to[1].sample = 4000000000;
	if (how == ERROR)
		to[2].error = 1;
	if (how == SIZE)
		to[3].bytes = 1000;
	assert_int_equal(staging_publish(s, index, BATCH + (how == COUNT), .5),
			 0);
}

static void a_damaged_batch_is_an_error_and_no_crash(void **state)
{
	const struct fixture *f = *state;
	uint32_t order[N];

	for (uint32_t i = 0; i < N; i++)
		order[i] = i;
	for (enum forgery how = NONE; how < N_FORGERIES; how++) {
		struct job jobs[JOBS] = { 0 };
		struct pipeline *p;
		struct delivery d;
		struct err err = { 0 };
		int r;

		jobs[0].shape = (struct shape){
			.workers = 1, .superbatch = 1, .queue_depth = 1, .n = N
		};
		join(jobs, f);
		forge(jobs[1].shape.staging, how);
		p = new_pipeline(f, &engine_sync, &jobs[0].shape);
		pipeline_begin(p, 0, order, N);
		r = pipeline_next(p, tick_now(f->tick), &d, &err);
		assert_int_equal(r, how == NONE ? 0 : -EPROTO);
		assert_int_equal(!!strstr(err.text, "it is damaged"),
				 how != NONE);
		pipeline_free(p);
		for (unsigned i = 0; i < JOBS; i++)
			staging_free(jobs[i].shape.staging);
	}
}

static int setup(void **state)
{
	static char dir[64];

	strcpy(dir, "/tmp/gpemu-staged-XXXXXX");
	assert_non_null(mkdtemp(dir));
	setenv("XDG_RUNTIME_DIR", dir, 1);
	return setup_files(state);
}

static int end(void **state)
{
	assert_int_equal(rmdir(getenv("XDG_RUNTIME_DIR")), 0);
	return teardown(state);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(
			each_job_gets_every_sample_whoever_read_it, setup, end),
		cmocka_unit_test_setup_teardown(
			a_damaged_batch_is_an_error_and_no_crash, setup, end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

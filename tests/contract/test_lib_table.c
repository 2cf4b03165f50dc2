/* SPDX-License-Identifier: MIT */
/*
 * libgpemu's table: engines x pin modes x GPUs x how they share the work, each
 * to the end, with samples that fail, with a loader that fails, and closed at
 * every moment. After every cell its descriptors are closed.
 */
#include "tests/contract/lib_rig.h"

#include <dirent.h>
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Samples of a step for each GPU. */
enum { BATCH = 4, MAX_STEPS = 16 };

struct cell {
	const char *loader, *pin, *parallel;
	unsigned gpus;
	bool files; /* the engine reads some */
	bool dp;    /* one batch is for all GPUs */
};

/* The result of gpemu_submit for a step. */
struct said {
	uint64_t copy_start_ns, compute_start_ns, fetch_stall_ns;
	uint64_t data_wait_ns, barrier_wait_ns;
};

static unsigned descriptors(void)
{
	DIR *dir = opendir("/proc/self/fd");
	unsigned n = 0;

	assert_non_null(dir);
	while (readdir(dir))
		n++;
	closedir(dir);
	return n;
}

/* Under ddp each GPU has a pin stage, which one consumer cannot replace. */
static bool is_refused(const struct cell *c)
{
	return !strcmp(c->pin, "inline") && !c->dp && c->gpus > 1;
}

static struct gpemu *open_cell(const struct cell *c, const char *more,
			       const char *and_more)
{
	char loader[32], pin[32], parallel[32], gpus[32];
	/* the smallest profile: parsing it takes most of a cell's time */
	const char *options[] = { loader,
				  parallel,
				  gpus,
				  pin,
				  "samples=26",
				  "epochs=2",
				  "gpu=p100-older",
				  "model=alexnet",
				  "extrapolate=on",
				  more,
				  and_more,
				  NULL };

	snprintf(loader, sizeof(loader), "loader=%s", c->loader);
	snprintf(pin, sizeof(pin), "pin=%s", c->pin);
	snprintf(parallel, sizeof(parallel), "parallel=%s", c->parallel);
	snprintf(gpus, sizeof(gpus), "gpus=%u", c->gpus);
	if (!is_refused(c))
		return lib_open(NULL, options);

	struct gpemu *g = (void *)options;
	char error[512] = "";

	assert_int_equal(gpemu_open(options, NULL, &g, error, sizeof(error)),
			 -EINVAL);
	assert_null(g);
	assert_non_null(strstr(error, "--pin inline: with several GPUs only"));
	return NULL;
}

static void each_cell(void (*test)(const struct cell *c))
{
	static const char *const loader[] = { "null", "sync", "async" };
	static const char *const pin[] = { "off", "on", "direct", "inline" };

	for (unsigned i = 0; i < 3 * 4 * 3 * 2; i++) {
		struct cell c = { .loader = loader[i % 3],
				  .pin = pin[i / 3 % 4],
				  .gpus = 1u << i / 12 % 3,
				  .dp = i / 36,
				  .parallel = i / 36 ? "dp" : "ddp",
				  .files = i % 3 };
		unsigned before = descriptors();

		test(&c);
		if (descriptors() != before)
			fail_msg("%s %s %s %u: a file stays open", c.loader,
				 c.pin, c.parallel, c.gpus);
	}
}

/* --- to the end ----------------------------------------------------------- */

/* The state of an epoch. */
struct epoch {
	const struct cell *c;
	const int *error; /* by sample; NULL: all can be used */
	unsigned seen[LIB_N];
	unsigned given;	      /* samples */
	unsigned turn;	      /* batches of the current step */
	bool even;	      /* it has not a batch for each GPU */
	uint64_t ready_ns;    /* GPU 0's batch */
	uint64_t step_end_ns; /* of the step before */
	struct said *said;
	unsigned n_said;
};

static void check_batch(struct epoch *e, const struct gpemu_batch *b)
{
	unsigned whole = BATCH * (e->c->dp ? e->c->gpus : 1);
	unsigned left = LIB_N - e->given;

	assert_int_equal(b->n, left < whole ? left : whole);
	assert_int_equal(b->samples != NULL, e->c->files);
	for (uint32_t i = 0; e->c->files && i < b->n; i++) {
		const struct gpemu_sample *s = &b->samples[i];

		lib_check_sample(s, e->error ? e->error[s->index] : 0);
		e->seen[s->index]++;
	}
	if (e->turn == 0) {
		e->even = e->c->gpus > 1 && left < BATCH * e->c->gpus;
		e->ready_ns = b->ready_ns;
	}
	e->given += b->n;
}

/* The result of a batch: with that of the last GPU, the step of the first. */
static void check_step(struct epoch *e, const struct gpemu_batch *b,
		       const struct gpemu_step *s)
{
	bool last = e->c->dp || ++e->turn == e->c->gpus || e->given == LIB_N;
	/* divided evenly: once all of it has arrived */
	uint64_t ready = last && !e->even ? e->ready_ns : b->ready_ns;

	assert_true(s->fetch_stall_ns <= s->data_wait_ns);
	if (e->even && !last) {
		assert_int_equal(s->copy_end_ns, 0);
		assert_int_equal(s->step_end_ns, 0);
		return;
	}
	assert_true(s->copy_start_ns >= ready);
	assert_true(s->copy_end_ns > s->copy_start_ns);
	if (!last) {
		assert_int_equal(s->step_end_ns, 0);
		assert_int_equal(s->fetch_stall_ns, 0);
		return;
	}
	assert_true(s->compute_start_ns >= s->copy_end_ns);
	assert_true(s->compute_start_ns >= e->step_end_ns);
	assert_true(s->compute_end_ns > s->compute_start_ns);
	assert_true(s->step_end_ns >= s->compute_end_ns);
	e->step_end_ns = s->step_end_ns;
	e->turn = 0;
	assert_true(e->n_said < MAX_STEPS);
	e->said[e->n_said++] =
		(struct said){ s->copy_start_ns, s->compute_start_ns,
			       s->fetch_stall_ns, s->data_wait_ns,
			       s->barrier_wait_ns };
}

/* Returns the number of steps. */
static unsigned run_epoch(struct gpemu *g, const struct cell *c,
			  const int *error, struct said *said)
{
	struct epoch e = { .c = c, .error = error, .said = said };
	unsigned per_step = BATCH * c->gpus, failed = 0;
	const struct gpemu_batch *b;
	struct gpemu_epoch sums;
	struct gpemu_step s;
	int r;

	assert_int_equal(gpemu_begin_epoch(g, NULL), 1);
	while ((r = gpemu_next(g, &b)) > 0) {
		check_batch(&e, b);
		assert_int_equal(gpemu_submit(g, b, &s), 0);
		check_step(&e, b, &s);
	}
	if (r < 0)
		fail_msg("%s %s %s %u: %s", c->loader, c->pin, c->parallel,
			 c->gpus, gpemu_error(g));
	assert_int_equal(gpemu_end_epoch(g, &sums), 0);
	assert_int_equal(e.given, LIB_N);
	for (unsigned i = 0; i < LIB_N; i++) {
		assert_int_equal(e.seen[i], c->files);
		failed += error && error[i];
	}
	assert_int_equal(e.n_said, (LIB_N + per_step - 1) / per_step);
	assert_int_equal(sums.steps, e.n_said);
	assert_int_equal(sums.samples, LIB_N - failed);
	assert_int_equal(sums.failed_samples, failed);
	return e.n_said;
}

static uint64_t ns_of(double seconds)
{
	return (uint64_t)(seconds * 1e9 + .5);
}

/*
 * The log of steps, in which the loader pairs them with their batches. Time
 * that a GPU waits at the barrier for another one's batch is a data stall
 * there.
 */
static void check_log(const char *path, const struct said *said, unsigned n)
{
	char line[512];
	unsigned k = 0;
	FILE *f = fopen(path, "re");

	assert_non_null(f);
	assert_non_null(fgets(line, sizeof(line), f));
	while (fgets(line, sizeof(line), f)) {
		double copy_start, compute_start, fetch, prep, pin, barrier;
		uint64_t waited;
		unsigned gpu;

		assert_int_equal(sscanf(line,
					"%*u,%*u,%*u,%*u,%*u,%*f,%*f,%*f,%lf,"
					"%*f,%lf,%*f,%lf,%lf,%lf,%*f,%u,%*f,"
					"%lf",
					&copy_start, &compute_start, &fetch,
					&prep, &pin, &gpu, &barrier),
				 7);
		if (gpu)
			continue;
		assert_true(k < n);
		assert_int_equal(ns_of(copy_start), said[k].copy_start_ns);
		assert_int_equal(ns_of(compute_start),
				 said[k].compute_start_ns);
		waited = ns_of(fetch) + ns_of(prep) + ns_of(pin);
		assert_int_equal(waited + ns_of(barrier),
				 said[k].data_wait_ns +
					 said[k].barrier_wait_ns);
		assert_true(ns_of(fetch) >= said[k].fetch_stall_ns);
		if (waited == said[k].data_wait_ns)
			assert_int_equal(ns_of(fetch), said[k].fetch_stall_ns);
		k++;
	}
	fclose(f);
	assert_int_equal(k, n);
}

static void to_the_end(const struct cell *c)
{
	struct said said[MAX_STEPS];
	char log[96], option[104];
	struct gpemu *g;
	unsigned n;

	snprintf(log, sizeof(log), "%s.csv", lib_dir);
	snprintf(option, sizeof(option), "steps=%s", log);
	g = open_cell(c, option, NULL);
	if (!g)
		return;
	n = run_epoch(g, c, NULL, said);
	n += run_epoch(g, c, NULL, said + n);
	assert_int_equal(gpemu_begin_epoch(g, NULL), 0);
	assert_int_equal(gpemu_close(g), 0);
	check_log(log, said, n);
	unlink(log);
}

static void test_to_the_end(void **state)
{
	(void)state;
	each_cell(to_the_end);
}

/* --- samples that fail ---------------------------------------------------- */

/* One is gone, one is shorter, one is longer, one cannot be opened. */
static void spoil(int error[LIB_N])
{
	char path[96];
	FILE *f;

	lib_path(3, path);
	unlink(path);
	error[3] = -ENOENT;
	lib_path(11, path);
	assert_int_equal(truncate(path, 4096), 0);
	error[11] = -ESTALE;
	lib_path(12, path);
	f = fopen(path, "ae");
	fputs("more", f);
	fclose(f);
	error[12] = -ESTALE;
	lib_path(25, path);
	unlink(path);
	assert_int_equal(symlink(path, path), 0);
	error[25] = -ELOOP;
}

static void samples_fail(const struct cell *c)
{
	int error[LIB_N] = { 0 };
	struct said said[MAX_STEPS];
	struct gpemu *g = open_cell(c, "bad_samples=20%,zeros", NULL);

	if (!g)
		return;
	if (c->files)
		spoil(error);
	run_epoch(g, c, error, said);
	lib_mend_data();
	run_epoch(g, c, NULL, said);
	assert_int_equal(gpemu_close(g), 0);
}

static void test_samples_fail(void **state)
{
	(void)state;
	each_cell(samples_fail);
}

/* --- a loader that fails -------------------------------------------------- */

/* The budget has room for a batch of the mean size, and one is larger. */
static void loader_fails(const struct cell *c)
{
	unsigned n = BATCH * (c->dp ? c->gpus : 1);
	uint64_t mean = 777 * (LIB_N - 1) / 2 + 1;
	const struct gpemu_batch *b;
	struct gpemu *g;
	char budget[48];
	int r;

	if (!c->files || !strcmp(c->pin, "off") || is_refused(c))
		return;
	snprintf(budget, sizeof(budget), "pin_budget=%lu",
		 (unsigned long)((mean * n + 4095) / 4096 * 4096));
	/* once the caller sees it, once nobody does */
	for (unsigned seen = 0; seen < 2; seen++) {
		g = open_cell(c, budget, "order=sequential");
		assert_int_equal(gpemu_begin_epoch(g, NULL), 1);
		while ((r = gpemu_next(g, &b)) > 0)
			assert_int_equal(gpemu_submit(g, b, NULL), 0);
		assert_int_equal(r, -E2BIG);
		assert_non_null(strstr(gpemu_error(g), "--pin-budget"));
		assert_int_equal(gpemu_next(g, &b), -E2BIG);
		if (seen) {
			assert_int_equal(gpemu_end_epoch(g, NULL), -E2BIG);
			assert_int_equal(gpemu_begin_epoch(g, NULL), -E2BIG);
			assert_int_equal(gpemu_next(g, &b), -EINVAL);
		}
		assert_int_equal(gpemu_close(g), 0);
	}
}

static void test_loader_fails(void **state)
{
	(void)state;
	each_cell(loader_fails);
}

/* --- closed early --------------------------------------------------------- */

/* The point at which it is closed. */
enum moment {
	OPENED,
	BEGUN,
	HELD,
	SUBMITTED, /* of several GPUs only the first has a batch */
	HELD_AGAIN,
	RELEASED,
	ENDED,
	BEGUN_AGAIN
};

static void go_on(struct gpemu *g, enum moment to,
		  const struct gpemu_batch **held)
{
	switch (to) {
	case BEGUN:
	case BEGUN_AGAIN:
		assert_int_equal(gpemu_begin_epoch(g, NULL), 1);
		break;
	case HELD:
	case HELD_AGAIN: assert_int_equal(gpemu_next(g, held), 1); break;
	case SUBMITTED:
		assert_int_equal(gpemu_submit(g, *held, NULL), 0);
		break;
	case RELEASED: assert_int_equal(gpemu_release(g, *held), 0); break;
	case ENDED: assert_int_equal(gpemu_end_epoch(g, NULL), 0); break;
	default: break;
	}
}

static void closed_early(const struct cell *c)
{
	static const enum moment moments[] = { BEGUN, HELD, SUBMITTED,
					       HELD_AGAIN, BEGUN_AGAIN };

	for (unsigned i = 0; i < sizeof(moments) / sizeof(*moments); i++) {
		struct gpemu *g = open_cell(c, NULL, NULL);
		const struct gpemu_batch *held = NULL;

		if (!g)
			return;
		for (enum moment at = OPENED; at <= moments[i]; at++)
			go_on(g, at, &held);
		assert_int_equal(gpemu_close(g), 0);
	}
}

static void test_closed_early(void **state)
{
	(void)state;
	each_cell(closed_early);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_to_the_end),
		cmocka_unit_test(test_samples_fail),
		cmocka_unit_test(test_loader_fails),
		cmocka_unit_test(test_closed_early),
	};

	return cmocka_run_group_tests(tests, lib_make_data, lib_remove_data);
}

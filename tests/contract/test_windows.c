/* SPDX-License-Identifier: MIT */
/*
 * One rule, two drivers: a run through the pipeline, with threads, and the same
 * run on the event clock make the same batches of the same windows.
 */
#include "tests/unit/test.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/tick.h"
#include "common/util.h"
#include "tests/contract/sim_rig.h"

enum { EPOCHS_RUN = 2, MOST = EPOCHS_RUN * N_MIXED };

/* All files have another size: the bytes say which they are. */
struct one {
	uint64_t epoch, n, bytes;
};

/* The batches of a run, in the order in which they left. */
struct batches {
	struct one batch[MOST];
	size_t n;
};

static void add(struct batches *to, uint64_t epoch, const struct delivery *d)
{
	assert_true(to->n < MOST);
	to->batch[to->n++] = (struct one){ epoch, d->n, d->bytes };
}

static void done(void *ctx, const struct step_done *s)
{
	for (uint32_t i = 0; i < s->n_batches; i++)
		add(ctx, s->epoch, &s->batch[i]);
}

static const struct observer observe_batches = { .done = done };

/* Returns how the pipeline is set up. */
static struct pipeline_config simulated(const char *const options[],
					struct batches *ret)
{
	struct pipeline_config c;
	struct simulate m = { 0 };
	struct err err = { 0 };
	struct session s;

	sim_rig_choose(&s, options);
	if (simulate_open(&m, &s, &err) < 0)
		fail_msg("%s", err.text);
	c = m.pipeline;
	observers_add(&m.sim->nodes[0].observers, &observe_batches, ret);
	while (session_more(&s))
		if (simulate_epoch(&m, &err) < 0)
			fail_msg("%s", err.text);
	simulate_close(&m);
	session_close(&s);
	return c;
}

static int an_epoch(struct session *s, struct batches *ret, struct err *err)
{
	uint64_t epoch = s->resume.point.epoch;
	struct gpu_step step;
	struct delivery d;
	int r = session_begin(s, err);

	while (r == 0 && (r = session_next(s, TICK_NEVER, &d, err)) == 0) {
		add(ret, epoch, &d);
		r = session_step(s, &d, &step, err);
	}
	return session_end(s, r, err);
}

/* False: io_uring is not available here. */
static bool real(const char *const options[], struct batches *ret)
{
	struct err err = { 0 };
	struct session s;
	int r;

	sim_rig_choose(&s, options);
	r = session_open(&s, &err);
	if (r == 0)
		r = session_start(&s, &err);
	while (r == 0 && session_more(&s))
		r = an_epoch(&s, ret, &err);
	session_close(&s);
	if (r < 0 && (strcmp(options[0], "loader=async") != 0 ||
		      (r != -EPERM && r != -ENOMEM)))
		fail_msg("%s: %s", options[0], err.text);
	if (r < 0)
		print_message("skipped: %s: %s\n", options[0], err.text);
	return r == 0;
}

static int by_content(const void *a, const void *b)
{
	return memcmp(a, b, sizeof(struct one));
}

/* Each batch has as many samples; they are the same in each `together` batches
 * of an epoch. */
static void compare(const struct batches *a, const struct batches *b,
		    uint32_t together)
{
	uint64_t in_a = 0, in_b = 0, nth = 0;

	assert_int_equal(a->n, b->n);
	assert_true(a->n > 0);
	for (size_t i = 0; i < a->n; i++) {
		bool last = i + 1 == a->n ||
			    a->batch[i + 1].epoch != a->batch[i].epoch;

		assert_int_equal(a->batch[i].epoch, b->batch[i].epoch);
		in_a += a->batch[i].bytes;
		in_b += b->batch[i].bytes;
		if (together < MOST)
			assert_int_equal(a->batch[i].n, b->batch[i].n);
		if (last || ++nth % together == 0)
			assert_int_equal(in_a, in_b);
		nth = last ? 0 : nth;
	}
}

static void both(const char *loader, const char *order, const char *workers,
		 const char *const shape[2])
{
	struct batches events = { 0 }, threads = { 0 };
	const char *options[] = { loader,
				  order,
				  workers,
				  shape[0],
				  shape[1],
				  "data=%/mixed",
				  "batch=7",
				  "epochs=2",
				  "queue_depth=6",
				  "time_scale=0.01",
				  "fs=storage=%/four.yaml",
				  NULL };
	struct pipeline_config c = simulated(options, &events);
	/* samples fill the batches of a window as they arrive */
	uint32_t together = c.engine->whole_batches ? 1 : c.superbatch;

	options[ARRAY_SIZE(options) - 2] = "simulate=off";
	if (!real(options, &threads))
		return;
	/* batches leave when they are complete, sooner in one run */
	if (pipeline_any_order(&c) && together == 1) {
		qsort(events.batch, events.n, sizeof(struct one), by_content);
		qsort(threads.batch, threads.n, sizeof(struct one), by_content);
	} else if (pipeline_any_order(&c)) {
		together = MOST;
	}
	print_message("%s %s %s %s %s\n", loader, order, workers, shape[0],
		      shape[1]);
	compare(&events, &threads, together);
}

static void threads_and_events_make_the_same_batches(void **state)
{
	static const char *const loaders[] = { "loader=sync", "loader=mmap",
					       "loader=threads",
					       "loader=async" };
	static const char *const orders[] = { "order=shuffle",
					      "order=quasi-random",
					      "order=torch" };
	static const char *const workers[] = { "workers=1", "workers=3" };
	/* the last batch, or window, has less */
	static const char *const shapes[][2] = {
		{ "superbatch=1", "drop_last=off" },
		{ "superbatch=3", "drop_last=off" },
		{ "superbatch=1", "drop_last=on" },
		{ "superbatch=1", "batching=ready:bound=0" },
	};

	(void)state;
	for (size_t l = 0; l < ARRAY_SIZE(loaders); l++)
		for (size_t o = 0; o < ARRAY_SIZE(orders); o++)
			for (size_t w = 0; w < ARRAY_SIZE(workers); w++)
				for (size_t s = 0; s < ARRAY_SIZE(shapes); s++)
					both(loaders[l], orders[o], workers[w],
					     shapes[s]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(threads_and_events_make_the_same_batches),
	};

	return cmocka_run_group_tests(tests, sim_rig_make_data,
				      sim_rig_remove_data);
}

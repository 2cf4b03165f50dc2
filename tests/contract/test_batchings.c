/* SPDX-License-Identifier: MIT */
/*
 * What every registered batching must do, with every engine and pin stage: each
 * sample of an epoch exactly once, byte for byte, in full batches but for the
 * last. And where a slow sample goes under each of them.
 */
#include "tests/contract/engine_rig.h"

#include <pthread.h>
#include <semaphore.h>

#include "common/conf/plugin_choice.h"
#include "common/util.h"

/* The choice of `text` in *s; free with plugin_choice_fini. */
static struct plugin_choice choose(const char *text, struct shape *s)
{
	struct plugin_choice c;
	struct err err = { 0 };

	if (plugin_choose(batching_table, "batching", text, &c, &err) < 0)
		fail_msg("%s", err.text);
	s->batching = container_of(c.plugin, const struct batching_ops, plugin);
	s->batching_options = c.options;
	return c;
}

/* All engines in all shapes; pin direct is for whole windows. */
static void check_all(const struct fixture *f, const char *text,
		      const struct seen *want)
{
	const struct engine_ops *e;

	for (size_t i = 0; (e = engine_at(i)); i++)
		for (size_t k = 0; k < n_shapes; k++) {
			struct shape s = shapes[k];
			struct plugin_choice c = choose(text, &s);
			struct seen got[N] = { 0 };

			if (!(s.pin_direct && s.batching->add) &&
			    run(f, e, &s, got))
				compare(f, want, got, text);
			forget(got);
			plugin_choice_fini(&c);
		}
}

static void every_batching_delivers_each_sample_once(void **state)
{
	static const char *const more[] = { "ready:bound=0", "ready:bound=1",
					    "ready:bound=4096" };
	const struct fixture *f = *state;
	struct seen want[N] = { 0 };

	want_all(want);
	for (size_t i = 0; batching_table[i]; i++)
		check_all(f, batching_table[i]->name, want);
	for (size_t i = 0; i < ARRAY_SIZE(more); i++)
		check_all(f, more[i], want);
	forget(want);
}

/* --- a sample that is not ready until it may be --------------------------- */

enum { WORKERS = 2 };

static struct {
	sem_t gate;
	uint32_t sample;
	bool closed;
	uint64_t opened_ns; /* before gate */
} slow;

static int next(void *state, struct feed *feed, struct engine_fetch **ret,
		struct err *err)
{
	int r = engine_sync.next(state, feed, ret, err);

	if (r == 0 && slow.closed && (*ret)->sample == slow.sample)
		sem_wait(&slow.gate);
	return r;
}

static void *open_gate(void *arg)
{
	const struct fixture *f = arg;

	/* a batch that need not wait for it would be there by then */
	tick_wait(f->tick, tick_now(f->tick) + 20000000000);
	slow.opened_ns = tick_now(f->tick);
	sem_post(&slow.gate);
	return NULL;
}

static bool has_slow(const struct delivery *d)
{
	for (uint32_t i = 0; i < d->n; i++)
		if (d->place[i].sample == slow.sample)
			return true;
	return false;
}

/* The batch that has the first sample of the order, which is not ready before
 * `early` batches were taken. */
static unsigned batch_of_slow(const struct fixture *f, const char *text,
			      unsigned early)
{
	struct engine_ops engine = engine_sync;
	struct shape s = { .workers = WORKERS, .superbatch = 1, .n = N };
	struct plugin_choice c = choose(text, &s);
	struct err err = { 0 };
	unsigned at = N, n = 0;
	struct pipeline *p;
	struct delivery d;
	pthread_t opener;
	uint32_t v[N];

	for (uint32_t i = 0; i < N; i++)
		v[i] = N - 1 - i;
	slow.sample = v[0];
	slow.closed = true;
	assert_int_equal(sem_init(&slow.gate, 0, 0), 0);
	engine.next = next;
	p = new_pipeline(f, &engine, &s);
	pipeline_begin(p, 0, v, N);
	for (;; n++) {
		if (n == early)
			assert_int_equal(pthread_create(&opener, NULL,
							open_gate, (void *)f),
					 0);
		if (pipeline_next(p, TICK_NEVER, &d, &err) < 0)
			break;
		if (has_slow(&d)) {
			at = n;
			/* its last sample, whichever that is */
			assert_true(d.complete_ns >= slow.opened_ns);
		}
		pipeline_release(p, &d);
	}
	assert_int_equal(pipeline_left(p), 0);
	pthread_join(opener, NULL);
	pipeline_free(p);
	sem_destroy(&slow.gate);
	slow.closed = false;
	plugin_choice_fini(&c);
	return at;
}

static void a_slow_sample_is_put_aside(void **state)
{
	const struct fixture *f = *state;
	const unsigned last = (N + BATCH - 1) / BATCH - 1;

	/* the first batch waits for it */
	assert_int_equal(batch_of_slow(f, "in_order", 0), 0);
	assert_int_equal(batch_of_slow(f, "ready:bound=0", 0), 0);
	/* others pass: whole batches, as many as there are windows for */
	assert_true(batch_of_slow(f, "out_of_order", 3) >= 3);
	/* as many as the bound allows, and not one more */
	assert_int_equal(batch_of_slow(f, "ready:bound=1", 1), 1);
	assert_int_equal(batch_of_slow(f, "ready:bound=3", 3), 3);
	/* as many as the epoch has */
	assert_int_equal(batch_of_slow(f, "ready", last), last);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(
			every_batching_delivers_each_sample_once, setup_files,
			teardown),
		cmocka_unit_test_setup_teardown(
			every_batching_delivers_each_sample_once,
			setup_containers, teardown),
		cmocka_unit_test_setup_teardown(a_slow_sample_is_put_aside,
						setup_files, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

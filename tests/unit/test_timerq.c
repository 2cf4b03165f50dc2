/* SPDX-License-Identifier: MIT */
#include "tests/unit/test.h"

#include <errno.h>
#include <pthread.h>

#include "common/tick.h"
#include "common/timerq.h"
#include "common/units.h"
#include "common/util.h"

enum { N = 2000 };

struct item {
	struct timer timer;
	uint64_t asked, fired;
	bool stopping;
};

struct seen {
	struct tick *tick;
	pthread_mutex_t lock;
	pthread_cond_t all;
	size_t n, out_of_order;
	uint64_t last;
};

static void fire(struct timer *timer, bool stopping, void *ctx)
{
	struct item *i = container_of(timer, struct item, timer);
	struct seen *s = ctx;

	i->fired = tick_now(s->tick);
	i->stopping = stopping;
	pthread_mutex_lock(&s->lock);
	s->out_of_order += timer->deadline < s->last;
	s->last = timer->deadline;
	if (++s->n == N)
		pthread_cond_signal(&s->all);
	pthread_mutex_unlock(&s->lock);
}

/* Wait until `n` timers have fired, looking every `wall_ns`. */
static void await(struct seen *s, size_t n, uint64_t wall_ns)
{
	size_t fired;

	do {
		tick_pause(wall_ns);
		pthread_mutex_lock(&s->lock);
		fired = s->n;
		pthread_mutex_unlock(&s->lock);
	} while (fired < n);
}

/* Add all, the first to fire after `ns`; false: that was before the last was
 * there. */
static bool all_fire_after(uint64_t ns, struct item *items)
{
	struct seen s = { .tick = tick_new(1, TICK_DEFAULT_SPIN_NS),
			  .lock = PTHREAD_MUTEX_INITIALIZER,
			  .all = PTHREAD_COND_INITIALIZER };
	struct timerq *q;
	uint64_t base;
	bool in_time;

	assert_int_equal(timerq_new(s.tick, fire, &s, &q), 0);
	base = tick_now(s.tick) + ns;
	for (size_t i = 0; i < N; i++) {
		items[i].asked = base + (i * 7919 % N) * 10 * NS_PER_US;
		assert_int_equal(timerq_add(q, &items[i].timer, items[i].asked),
				 0);
	}
	in_time = tick_now(s.tick) < base;
	pthread_mutex_lock(&s.lock);
	while (s.n < N)
		pthread_cond_wait(&s.all, &s.lock);
	pthread_mutex_unlock(&s.lock);
	if (in_time)
		assert_int_equal(s.out_of_order, 0);
	for (size_t i = 0; i < N; i++) {
		assert_true(items[i].fired >= items[i].asked);
		assert_false(items[i].stopping);
	}
	timerq_free(q);
	tick_free(s.tick);
	return in_time;
}

static void none_early_all_in_order(void **state)
{
	static struct item items[N];
	uint64_t ns = NS_PER_S / 5;
	int tries = 5;

	(void)state;
	while (!all_fire_after(ns, items) && --tries)
		ns *= 2;
	assert_true(tries > 0);
}

static void an_earlier_timer_overtakes(void **state)
{
	struct item late = { 0 }, soon = { 0 };
	struct seen s = { .tick = tick_new(1, 0),
			  .lock = PTHREAD_MUTEX_INITIALIZER,
			  .all = PTHREAD_COND_INITIALIZER };
	struct timerq *q;
	uint64_t now = tick_now(s.tick);

	(void)state;
	assert_int_equal(timerq_new(s.tick, fire, &s, &q), 0);
	assert_int_equal(timerq_add(q, &late.timer, now + 3600 * NS_PER_S), 0);
	assert_int_equal(timerq_add(q, &soon.timer, now + NS_PER_MS), 0);
	await(&s, 1, NS_PER_MS);
	timerq_free(q); /* fires `late` with stopping set */
	assert_true(soon.fired && !soon.stopping);
	assert_true(late.stopping);
	tick_free(s.tick);
}

/* The thread waits for the earliest, which is then another one, or later. */
static void a_timer_moves_both_ways(void **state)
{
	struct item a = { 0 }, b = { 0 };
	struct seen s = { .tick = tick_new(1, 0),
			  .lock = PTHREAD_MUTEX_INITIALIZER,
			  .all = PTHREAD_COND_INITIALIZER };
	struct timerq *q;
	uint64_t now = tick_now(s.tick), hour = 3600 * NS_PER_S;

	(void)state;
	assert_int_equal(timerq_new(s.tick, fire, &s, &q), 0);
	assert_int_equal(timerq_add(q, &a.timer, now + hour), 0);
	assert_int_equal(timerq_add(q, &b.timer, now + hour / 2), 0);
	assert_true(timerq_move(q, &b.timer, now + 2 * hour));
	assert_true(timerq_move(q, &a.timer, now + NS_PER_MS));
	await(&s, 1, NS_PER_MS);
	assert_false(timerq_move(q, &a.timer, now));
	timerq_free(q);
	assert_true(a.fired && !a.stopping && b.stopping);
	assert_int_equal(b.timer.deadline, now + 2 * hour);
	tick_free(s.tick);
}

enum { MANY = 100 };

/* The median lateness in wall us of timers 1 ms apart, all pending at once. */
static double lateness(uint64_t spin_ns)
{
	struct item items[MANY] = { 0 };
	struct seen s = { .tick = tick_new(1, spin_ns),
			  .lock = PTHREAD_MUTEX_INITIALIZER,
			  .all = PTHREAD_COND_INITIALIZER };
	struct timerq *q;
	json_t *error;
	double p50;

	assert_int_equal(timerq_new(s.tick, fire, &s, &q), 0);
	for (uint64_t i = 0; i < MANY; i++) {
		items[i].asked = (i + 10) * NS_PER_MS;
		timerq_add(q, &items[i].timer, items[i].asked);
	}
	await(&s, MANY, 5 * NS_PER_MS);
	timerq_free(q);
	for (size_t i = 0; i < MANY; i++)
		assert_true(items[i].fired >= items[i].asked);
	error = tick_error_json(s.tick);
	p50 = json_number_value(json_object_get(error, "p50"));
	json_decref(error);
	tick_free(s.tick);
	return p50;
}

static void among_many_it_gets_up_early(void **state)
{
	double early, late;
	int tries = 5;

	(void)state;
	do {
		early = lateness(TICK_DEFAULT_SPIN_NS);
		late = lateness(0);
	} while (early >= late / 2 && --tries);
	assert_true(early < late / 2);
}

/* CPU time of bursts of timers, as a share of wall time. In each burst most
 * timers are among few that are left. */
static double bursts_cpu(uint64_t spin_ns)
{
	enum { BURST = 12, BURSTS = 250, APART_US = 100 };
	struct item *items = calloc(BURST * BURSTS, sizeof(*items));
	struct seen s = { .tick = tick_new(1, spin_ns),
			  .lock = PTHREAD_MUTEX_INITIALIZER,
			  .all = PTHREAD_COND_INITIALIZER };
	struct timerq *q;
	uint64_t from, now, wall;
	clock_t cpu = clock();

	assert_non_null(items);
	assert_int_equal(timerq_new(s.tick, fire, &s, &q), 0);
	from = tick_now(s.tick);
	for (size_t i = 0; i < BURST * BURSTS; i++) {
		now = tick_now(s.tick);
		timerq_add(q, &items[i].timer,
			   now + (i % BURST + 1) * APART_US * NS_PER_US);
		if (i % BURST == BURST - 1)
			tick_pause(BURST * APART_US * NS_PER_US);
	}
	wall = tick_now(s.tick) - from;
	cpu = clock() - cpu;
	timerq_free(q);
	tick_free(s.tick);
	free(items);
	return (double)cpu / CLOCKS_PER_SEC / ((double)wall / 1e9);
}

/* A wake-up costs what it costs on this machine: without any spin too. */
static void bursts_leave_the_processor_to_others(void **state)
{
	double woken, spun;
	int tries = 3;

	(void)state;
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
	skip_because("a sanitizer takes its own time");
#endif
	do {
		woken = bursts_cpu(0);
		spun = bursts_cpu(TICK_DEFAULT_SPIN_NS) - woken;
		print_message("CPU: wake-ups %.2f, spinning %.2f\n", woken,
			      spun);
		/* before each of the last eight it would take two thirds */
	} while (spun >= .25 && --tries);
	assert_true(spun < .25);
}

/* Also if the system does not grant it. */
static void none_early_with_processors_awake(void **state)
{
	struct seen s = { .tick = tick_new(1, TICK_DEFAULT_SPIN_NS),
			  .lock = PTHREAD_MUTEX_INITIALIZER,
			  .all = PTHREAD_COND_INITIALIZER };
	struct item items[10] = { 0 };
	struct timerq *q;

	(void)state;
	int granted = tick_keep_awake(s.tick);

	assert_int_equal(timerq_new(s.tick, fire, &s, &q), 0);
	assert_true(granted <= 0);
	assert_int_equal(tick_keeps_awake(s.tick), granted == 0);
	/* one within the spin, one shortly after it, one near, one far away */
	for (size_t i = 0; i < ARRAY_SIZE(items); i++) {
		uint64_t after_us[] = { 60, 200, 1500, 4000 };

		items[i].asked = tick_now(s.tick) + after_us[i % 4] * NS_PER_US;
		timerq_add(q, &items[i].timer, items[i].asked);
		await(&s, i + 1, 50 * NS_PER_US);
	}
	timerq_free(q);
	for (size_t i = 0; i < ARRAY_SIZE(items); i++) {
		assert_true(items[i].fired >= items[i].asked);
		assert_false(items[i].stopping);
	}
	tick_free(s.tick);

	s.tick = tick_new(1, 0);
	assert_int_equal(tick_keep_awake(s.tick), -ENOTSUP);
	assert_false(tick_keeps_awake(s.tick));
	tick_free(s.tick);
}

static void scaled_clock_divides_wall_time(void **state)
{
	struct tick *t = tick_new(0.01, 0);
	uint64_t wall = tick_wall();

	(void)state;
	tick_wait(t, tick_now(t) + 2 * NS_PER_S);
	wall = tick_wall() - wall;
	assert_true(wall >= 19 * NS_PER_MS);
	assert_true(tick_now(t) >= 2 * NS_PER_S);
	tick_free(t);
}

static void fake_clock_moves_by_waiting(void **state)
{
	struct tick *t = tick_new_fake();

	(void)state;
	assert_int_equal(tick_now(t), 0);
	tick_wait(t, 3600 * NS_PER_S);
	assert_int_equal(tick_now(t), 3600 * NS_PER_S);
	tick_wait(t, 1);
	assert_int_equal(tick_now(t), 3600 * NS_PER_S);
	tick_free(t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(none_early_all_in_order),
		cmocka_unit_test(an_earlier_timer_overtakes),
		cmocka_unit_test(a_timer_moves_both_ways),
		cmocka_unit_test(among_many_it_gets_up_early),
		cmocka_unit_test(bursts_leave_the_processor_to_others),
		cmocka_unit_test(none_early_with_processors_awake),
		cmocka_unit_test(scaled_clock_divides_wall_time),
		cmocka_unit_test(fake_clock_moves_by_waiting),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: MIT */
/*
 * One rule, two drivers: the flow of threads and the bare windows, as a
 * simulation has them, get the same random leases, completions and releases.
 * Both give the same samples to the same batches, and these in the same order.
 */
#include "tests/unit/test.h"

#include <errno.h>

#include "common/conf/plugin_choice.h"
#include "common/rng.h"
#include "common/tick.h"
#include "loader/pipeline/gather.h"

enum { MOST = 120, BATCHES = MOST + 1 };

/* Both drivers of one epoch. */
struct both {
	struct flow *flow;
	struct windows bare;
	uint32_t order[MOST];
	uint64_t n, n_left; /* of `bare` */
	/* leased and not filled yet, of each driver */
	struct batch *a[MOST], *b[MOST];
	uint32_t n_leased;
};

static void both_new(struct both *t, struct tick *tick,
		     const struct windows_config *c)
{
	static uint64_t size[MOST];
	static struct dataset data = { .size = size, .n = MOST };
	struct flow_config f = { .data = &data, .tick = tick, .windows = *c };
	struct err err = { 0 };

	*t = (struct both){ 0 };
	assert_int_equal(flow_new(&f, &t->flow, &err), 0);
	assert_int_equal(windows_init(&t->bare, c), 0);
}

static void both_free(struct both *t)
{
	flow_free(t->flow);
	windows_fini(&t->bare);
}

static void begin(struct both *t, uint64_t n)
{
	t->n = t->n_left = n;
	flow_begin(t->flow, 0, t->order, n);
}

/* As lease() of loader/sim/sim_load.c. */
static bool lease_bare(struct both *t, uint32_t want, struct window **w,
		       uint32_t *at, uint32_t *end)
{
	struct windows *ws = &t->bare;
	uint32_t n;

	if (windows_lease(ws, want, w, at, end))
		return true;
	if (t->n_left == 0 || ws->n_free == 0)
		return false;
	n = windows_room(ws, t->n_left);
	ws->free[ws->n_free - 1]->first = t->n - t->n_left;
	t->n_left -= n;
	windows_open(ws, ws->n_free - 1, n);
	return windows_lease(ws, want, w, at, end);
}

static void lease(struct both *t, uint32_t want)
{
	struct window *w[2];
	uint32_t at[2], end[2];
	bool got = flow_lease(t->flow, want, false, &w[0], &at[0], &end[0]) ==
		   0;

	assert_int_equal(lease_bare(t, want, &w[1], &at[1], &end[1]), got);
	if (!got)
		return;
	assert_int_equal(w[0]->index, w[1]->index);
	assert_int_equal(w[0]->first, w[1]->first);
	assert_int_equal(w[0]->order - t->order, w[1]->first);
	assert_int_equal(w[0]->n, w[1]->n);
	assert_int_equal(at[0], at[1]);
	assert_int_equal(end[0], end[1]);
	for (uint32_t i = at[0]; i < end[0]; i++) {
		t->a[t->n_leased] = flow_batch(t->flow, w[0], i);
		t->b[t->n_leased++] = &w[1]->batch[i / t->bare.c.batch];
	}
}

/* A sample that was leased is there, at time `now`. True: so is its batch. */
static bool fill(struct both *t, uint32_t i, uint64_t now, struct batch **ret)
{
	struct batch *a = t->a[i], *b = t->b[i];
	bool last = windows_fill(a, 1);

	t->a[i] = t->a[--t->n_leased];
	t->b[i] = t->b[t->n_leased];
	assert_int_equal(windows_fill(b, 1), last);
	if (!last)
		return false;
	a->complete_ns = b->complete_ns = now;
	flow_complete(t->flow, a);
	*ret = b;
	return true;
}

static void same(const struct batch *a, const struct batch *b)
{
	assert_int_equal(a->n, b->n);
	assert_int_equal(a->complete_ns, b->complete_ns);
	assert_int_equal(a->window->index, b->window->index);
	assert_int_equal(a - a->window->batch, b - b->window->batch);
}

static void an_epoch(struct both *t, struct tick *tick, struct rng *rng)
{
	struct batch *held[2][BATCHES], *a, *b;
	uint32_t n_held = 0, i;
	uint64_t out = 0;

	begin(t, 1 + rng_below(rng, MOST));
	while (out < t->n || n_held) {
		if (rng_below(rng, 2))
			lease(t, 1 + (uint32_t)rng_below(rng, 6));
		if (t->n_leased &&
		    fill(t, (uint32_t)rng_below(rng, t->n_leased), 1, &b))
			windows_complete(&t->bare, b);
		assert_int_equal(flow_n_complete(t->flow), t->bare.n_complete);
		b = windows_next(&t->bare);
		assert_int_equal(flow_next(t->flow, tick_now(tick), &a),
				 b ? 0 : -ETIMEDOUT);
		if (b) {
			same(a, b);
			out += b->n;
			held[0][n_held] = a;
			held[1][n_held++] = b;
		}
		if (!n_held || rng_below(rng, 3))
			continue;
		i = (uint32_t)rng_below(rng, n_held--);
		flow_release(t->flow, held[0][i]);
		windows_release(&t->bare, held[1][i]);
		held[0][i] = held[0][n_held];
		held[1][i] = held[1][n_held];
	}
	assert_int_equal(out, t->n);
}

static void threads_and_events_agree_on_windows(void **state)
{
	struct rng rng = rng_stream(1, "windows", 0);
	struct tick *tick = tick_new_fake();

	(void)state;
	for (int i = 0; i < 400; i++) {
		struct windows_config c = {
			.batch = 1 + (uint32_t)rng_below(&rng, 5),
			.superbatch = 1 + (uint32_t)rng_below(&rng, 3),
			.n = 2 + (uint32_t)rng_below(&rng, 4),
			.any_order = i % 2,
		};
		struct both t;

		both_new(&t, tick, &c);
		for (int epoch = 0; epoch < 3; epoch++)
			an_epoch(&t, tick, &rng);
		both_free(&t);
	}
	tick_free(tick);
}

/* One batch of ready samples of each driver, if there is one. */
static uint32_t take(struct both *t, struct tick *tick, struct gather *g,
		     struct singles *s)
{
	struct singles_batch *m;
	struct batch *a;
	uint32_t n;

	assert_int_equal(gather_n_complete(g), singles_n_complete(s));
	m = singles_next(s);
	assert_int_equal(gather_next(g, tick_now(tick), &a),
			 m ? 0 : -ETIMEDOUT);
	if (!m)
		return 0;
	n = m->batch.n;
	assert_int_equal(a->n, n);
	assert_int_equal(a->complete_ns, m->batch.complete_ns);
	for (uint32_t i = 0; i < n; i++) {
		struct batch *single = m->single[i];

		/* the threads' slots say which sample it is */
		assert_int_equal(a->place[i].sample, single->window->first);
		windows_release(&t->bare, single);
	}
	singles_release(s, m);
	gather_release(g, a);
	return n;
}

static void a_gathered_epoch(struct both *t, struct tick *tick,
			     struct gather *g, struct singles *s,
			     struct rng *rng)
{
	uint64_t out = 0, n = 1 + rng_below(rng, MOST);

	t->n = t->n_left = n;
	gather_begin(g, 0, t->order, n);
	singles_begin(s, n);
	for (uint64_t now = 1; out < n; now++) {
		struct batch *b;
		uint32_t i;

		if (rng_below(rng, 4))
			lease(t, 1);
		if (t->n_leased && rng_below(rng, 3)) {
			i = (uint32_t)rng_below(rng, t->n_leased);
			t->a[i]->place->sample =
				(uint32_t)t->a[i]->window->first;
			fill(t, i, now, &b);
			singles_add(s, b);
		}
		out += take(t, tick, g, s);
	}
	assert_int_equal(out, n);
}

static void threads_and_events_agree_on_ready_samples(void **state)
{
	struct rng rng = rng_stream(2, "windows", 0);
	struct tick *tick = tick_new_fake();
	struct plugin_choice choice;
	struct err err = { 0 };

	(void)state;
	if (plugin_choose(batching_table, "batching", "ready:bound=2", &choice,
			  &err) < 0)
		fail_msg("%s", err.text);
	for (int i = 0; i < 200; i++) {
		uint32_t batch = 1 + (uint32_t)rng_below(&rng, 6);
		struct singles_config sc = {
			.batching = container_of(choice.plugin,
						 const struct batching_ops,
						 plugin),
			.options = choice.options,
			.batch = batch,
			.in_flight = batch * (2 + (uint32_t)rng_below(&rng, 3)),
		};
		struct windows_config c = { 1, 1, sc.in_flight, true };
		struct singles s;
		struct gather *g;
		struct both t;

		both_new(&t, tick, &c);
		assert_int_equal(singles_init(&s, &sc), 0);
		assert_int_equal(gather_new(t.flow, &sc, &g, &err), 0);
		for (int epoch = 0; epoch < 3; epoch++)
			a_gathered_epoch(&t, tick, g, &s, &rng);
		gather_free(g);
		singles_fini(&s);
		both_free(&t);
	}
	plugin_choice_fini(&choice);
	tick_free(tick);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(threads_and_events_agree_on_windows),
		cmocka_unit_test(threads_and_events_agree_on_ready_samples),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

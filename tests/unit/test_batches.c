/* SPDX-License-Identifier: MIT */
/*
 * Which sample is in which batch, and in which order batches leave
 * (loader/core/windows.h), against a model of plain lists: random leases, fills
 * and releases, in one thread.
 */
#include "tests/unit/test.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "common/conf/plugin_choice.h"
#include "common/rng.h"
#include "common/util.h"
#include "loader/core/windows.h"

enum { MOST = 240, BOUND = 2 };

/* Of a batch: its samples, and how many of them are not filled. */
struct model_batch {
	uint32_t n, pending;
	uint32_t sample[MOST];
};

/* The batches of all pieces; `left` of them have left. */
struct model {
	uint32_t batch, n;
	bool any_order;
	struct model_batch batches[MOST];
	uint32_t n_batches, left;
	uint32_t of[MOST];	 /* the batch of a sample */
	uint32_t complete[MOST]; /* n_complete batches, as they leave */
	uint32_t n_complete;
};

/* Leased samples are with workers, held batches with the consumer. */
struct subject {
	struct windows ws;
	struct {
		struct window *window;
		uint32_t slot;
	} leased[MOST];
	uint32_t n_leased;
	struct batch *held[MOST];
	uint32_t n_held;
	uint32_t order[MOST]; /* of all pieces */
};

static uint32_t draw(struct rng *rng, uint32_t n)
{
	return (uint32_t)rng_below(rng, n);
}

/* n samples are one more piece. */
static void model_piece(struct model *m, const uint32_t *order, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++) {
		struct model_batch *b;

		m->n_batches += i % m->batch == 0;
		b = &m->batches[m->n_batches - 1];
		b->sample[b->n++] = order[i];
		b->pending++;
		m->of[order[i]] = m->n_batches - 1;
	}
}

static void model_fill(struct model *m, uint32_t sample)
{
	uint32_t which = m->of[sample];

	if (--m->batches[which].pending == 0 && m->any_order)
		m->complete[m->n_complete++] = which;
	while (!m->any_order && m->n_complete < m->n_batches &&
	       m->batches[m->n_complete].pending == 0) {
		m->complete[m->n_complete] = m->n_complete;
		m->n_complete++;
	}
}

/* --- what both kinds of windows do ---------------------------------------- */

/* A window, if there is room, of any that is free; some of its samples. */
static void lease(struct subject *s, struct rng *rng)
{
	uint32_t at, end;
	struct window *w;

	if (!windows_lease(&s->ws, 1 + draw(rng, 5), &w, &at, &end)) {
		if (windows_room(&s->ws))
			windows_open(&s->ws, draw(rng, s->ws.n_free));
		return;
	}
	assert_true(end <= w->n);
	for (; at < end; at++) {
		s->leased[s->n_leased].window = w;
		s->leased[s->n_leased++].slot = at;
	}
}

/* Any leased sample; returns which. */
static uint32_t fill(struct subject *s, struct rng *rng)
{
	uint32_t i = draw(rng, s->n_leased), slot = s->leased[i].slot;
	struct window *w = s->leased[i].window;
	struct batch *b = &w->batch[slot / s->ws.c.batch];

	s->leased[i] = s->leased[--s->n_leased];
	if (windows_fill(b, 1))
		windows_complete(&s->ws, b);
	return w->order[slot];
}

static void release(struct subject *s, struct rng *rng)
{
	uint32_t i = draw(rng, s->n_held);

	windows_release(&s->ws, s->held[i]);
	s->held[i] = s->held[--s->n_held];
}

static void shuffle(uint32_t *order, struct rng *rng)
{
	for (uint32_t i = 0; i < MOST; i++) {
		uint32_t k = draw(rng, i + 1);

		order[i] = order[k];
		order[k] = i;
	}
}

/* --- whole windows -------------------------------------------------------- */

static void take_whole(struct subject *s, struct model *m)
{
	struct batch *b = windows_next(&s->ws);
	const struct model_batch *want;
	const uint32_t *got;

	assert_int_equal(b != NULL, m->left < m->n_complete);
	if (!b)
		return;
	want = &m->batches[m->complete[m->left]];
	got = b->window->order + (size_t)(b - b->window->batch) * s->ws.c.batch;
	assert_int_equal(b->n, want->n);
	assert_memory_equal(got, want->sample, want->n * sizeof(*got));
	s->held[s->n_held++] = b;
	m->left++;
}

static void run_whole(bool any_order, struct rng *rng)
{
	struct model m = { .batch = 1 + draw(rng, 5), .any_order = any_order };
	struct windows_config c = { .batch = m.batch,
				    .superbatch = 3,
				    .n = 2 + draw(rng, 4),
				    .any_order = any_order };
	struct subject s = { 0 };
	uint32_t begun = 0;

	assert_int_equal(windows_init(&s.ws, &c), 0);
	shuffle(s.order, rng);
	while (begun < MOST || m.left < m.n_batches || s.n_held) {
		uint32_t n = 1 + draw(rng, 40);

		n = MIN(n, MOST - begun);
		if (n && s.ws.n_pieces < c.n) {
			windows_begin(&s.ws, 0, s.order + begun, n);
			model_piece(&m, s.order + begun, n);
			begun += n;
		}
		lease(&s, rng);
		if (s.n_leased && draw(rng, 2))
			model_fill(&m, fill(&s, rng));
		if (draw(rng, 2))
			take_whole(&s, &m);
		if (s.n_held && draw(rng, 2))
			release(&s, rng);
	}
	assert_int_equal(s.ws.n_free, c.n);
	windows_fini(&s.ws);
}

static void a_window_has_the_batches_of_the_order(void **state)
{
	struct rng rng = rng_stream(1, "batches", 0);

	(void)state;
	for (int i = 0; i < 200; i++)
		run_whole(i % 2, &rng);
}

/* --- windows of one sample, and a batching -------------------------------- */

/* A piece: positions that came, by when, and whether they were taken. */
struct model_ready {
	uint32_t batch, n, taken;
	uint32_t came[MOST]; /* n_came positions */
	uint32_t n_came;
	bool is_there[MOST], is_taken[MOST];
};

/* The positions of the next batch: those whose last chance it is, then what
 * came first. 0: it is not complete. */
static uint32_t next_ready(const struct model_ready *m, uint32_t ret[MOST])
{
	uint32_t want = MIN(m->batch, m->n - m->taken), n = 0;
	uint32_t index = m->taken / m->batch;
	uint32_t due =
		index < BOUND ? 0 : MIN((index - BOUND + 1) * m->batch, m->n);

	if (m->n_came - m->taken < want)
		return 0;
	for (uint32_t p = 0; p < due; p++) {
		if (!m->is_there[p])
			return 0;
		if (!m->is_taken[p])
			ret[n++] = p;
	}
	for (uint32_t i = 0; i < m->n_came && n < want; i++)
		if (m->came[i] >= due && !m->is_taken[m->came[i]])
			ret[n++] = m->came[i];
	return n;
}

static void take_ready(struct subject *s, struct model_ready *m,
		       const uint32_t *order)
{
	uint32_t want[MOST], n = next_ready(m, want);
	struct batch *b;

	assert_int_equal(windows_n_complete(&s->ws) > 0, n > 0);
	b = windows_next(&s->ws);
	assert_int_equal(b ? b->n : 0, n);
	for (uint32_t i = 0; i < n; i++) {
		const struct batch *single = b->single[i];

		assert_int_equal(single->window->order[0], order[want[i]]);
		m->is_taken[want[i]] = true;
	}
	m->taken += n;
	if (b)
		s->held[s->n_held++] = b;
}

static void piece_ready(struct subject *s, uint32_t batch,
			const uint32_t *order, uint32_t n, struct rng *rng)
{
	struct model_ready m = { .batch = batch, .n = n };
	uint32_t position[MOST];

	for (uint32_t i = 0; i < n; i++)
		position[order[i]] = i;
	windows_begin(&s->ws, 0, order, n);
	while (m.taken < n || s->n_held) {
		lease(s, rng);
		if (s->n_leased && draw(rng, 2)) {
			uint32_t p = position[fill(s, rng)];

			m.came[m.n_came++] = p;
			m.is_there[p] = true;
		}
		if (m.taken < n && draw(rng, 2))
			take_ready(s, &m, order);
		if (s->n_held && draw(rng, 2))
			release(s, rng);
	}
}

static void ready_samples_are_late_by_the_bound_at_most(void **state)
{
	struct rng rng = rng_stream(1, "batches", 1);
	struct plugin_choice choice;
	struct err err = { 0 };

	(void)state;
	assert_int_equal(plugin_choose(batching_table, "batching",
				       "ready:bound=2", &choice, &err),
			 0);
	for (int i = 0; i < 200; i++) {
		uint32_t batch = 1 + draw(&rng, 5), begun = 0, n;
		struct windows_config c = {
			.batch = 1,
			.superbatch = 1,
			.n = batch * (2 + draw(&rng, 4)),
			.any_order = true,
			.singles = { container_of(choice.plugin,
						  const struct batching_ops,
						  plugin),
				     choice.options, batch },
		};
		struct subject s = { 0 };

		assert_int_equal(windows_init(&s.ws, &c), 0);
		shuffle(s.order, &rng);
		for (; begun < MOST; begun += n) {
			n = 1 + draw(&rng, 60);
			n = MIN(n, MOST - begun);
			piece_ready(&s, batch, s.order + begun, n, &rng);
		}
		assert_int_equal(s.ws.n_free, c.n);
		windows_fini(&s.ws);
	}
	plugin_choice_fini(&choice);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_window_has_the_batches_of_the_order),
		cmocka_unit_test(ready_samples_are_late_by_the_bound_at_most),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: MIT */
/*
 * The batching of ready samples against a model that keeps plain lists: random
 * epochs in which samples become ready in any order that a bounded number of
 * samples in flight permits.
 */
#include "tests/unit/test.h"

#include <stdbool.h>
#include <string.h>

#include "common/conf/plugin_choice.h"
#include "common/rng.h"
#include "common/util.h"
#include "loader/batching/batching.h"

enum { MOST = 200 };

struct model {
	uint32_t batch, bound, n;
	uint32_t ready[MOST]; /* n_ready positions, in the order of readiness */
	uint32_t n_ready;
	uint32_t batch_of[MOST]; /* UINT32_MAX: not taken */
	bool came[MOST];
	uint32_t taken;
};

struct subject {
	const struct batching_ops *ops;
	struct plugin_choice choice;
	void *state;
};

static struct subject subject_new(uint32_t batch, uint32_t bound,
				  uint32_t ahead)
{
	struct subject s;
	struct batching_config c = { .batch = batch, .ahead = ahead };
	struct err err = { 0 };
	char text[32];

	snprintf(text, sizeof(text), "ready:bound=%u", bound);
	if (plugin_choose(batching_table, "batching", text, &s.choice, &err) <
	    0)
		fail_msg("%s", err.text);
	s.ops = container_of(s.choice.plugin, const struct batching_ops,
			     plugin);
	c.options = s.choice.options;
	s.state = calloc(1, s.choice.plugin->state_size);
	assert_int_equal(s.ops->init(s.state, &c), 0);
	return s;
}

static void subject_free(struct subject *s)
{
	s->ops->fini(s->state);
	free(s->state);
	plugin_choice_fini(&s->choice);
}

/* May the sample be in no later batch than the next? */
static bool is_due(const struct model *m, uint32_t position)
{
	return position / m->batch + m->bound <= m->taken / m->batch;
}

/* The next batch, as positions; 0: not yet. */
static uint32_t model_take(struct model *m, uint32_t ret[MOST])
{
	uint32_t want = MIN(m->batch, m->n - m->taken), n = 0, kept = 0;
	bool in[MOST] = { false };

	if (m->n_ready < want || want == 0)
		return 0;
	for (uint32_t p = 0; p < m->n; p++)
		if (is_due(m, p) && !m->came[p])
			return 0;
	for (uint32_t p = 0; p < m->n; p++)
		if (is_due(m, p) && m->batch_of[p] == UINT32_MAX) {
			in[p] = true;
			ret[n++] = p;
		}
	assert_true(n <= want); /* or the bound could not be kept */
	for (uint32_t i = 0; i < m->n_ready; i++) {
		uint32_t p = m->ready[i];

		if (in[p])
			continue;
		if (n < want)
			ret[n++] = p;
		else
			m->ready[kept++] = p;
	}
	m->n_ready = kept;
	for (uint32_t i = 0; i < n; i++)
		m->batch_of[ret[i]] = m->taken / m->batch;
	m->taken += n;
	return n;
}

/* Take all batches that are there; both agree, sample for sample. */
static void take_all(struct subject *s, struct model *m, uint32_t item[MOST])
{
	uint32_t want[MOST], n;
	void *got[MOST];

	while ((n = model_take(m, want)) > 0) {
		assert_true(s->ops->full(s->state));
		assert_int_equal(s->ops->take(s->state, got), n);
		for (uint32_t i = 0; i < n; i++)
			assert_ptr_equal(got[i], &item[want[i]]);
	}
	assert_false(s->ops->full(s->state));
}

/* One epoch; `ahead` samples are in flight at most, and become ready in random
 * order. */
static void epoch(struct subject *s, struct model *m, uint32_t ahead,
		  struct rng *rng)
{
	uint32_t item[MOST], flying[MOST], n_flying = 0, leased = 0;

	m->taken = m->n_ready = 0;
	memset(m->came, 0, sizeof(m->came));
	memset(m->batch_of, 0xff, sizeof(m->batch_of));
	s->ops->begin(s->state, m->n);
	while (m->taken < m->n) {
		uint32_t i, p;

		while (leased < MIN(m->n, m->taken + ahead))
			flying[n_flying++] = leased++;
		assert_true(n_flying > 0); /* or the loader would hang */
		i = (uint32_t)rng_below(rng, n_flying);
		p = flying[i];
		flying[i] = flying[--n_flying];
		m->came[p] = true;
		m->ready[m->n_ready++] = p;
		s->ops->add(s->state, p, &item[p]);
		/* the consumer is not always there */
		if (rng_below(rng, 3) || n_flying == 0)
			take_all(s, m, item);
	}
	for (uint32_t p = 0; p < m->n; p++)
		assert_true(m->batch_of[p] <= p / m->batch + m->bound);
}

static void ready_agrees_with_the_model(void **state)
{
	struct rng rng = rng_stream(1, "batching", 0);

	(void)state;
	for (int i = 0; i < 2000; i++) {
		struct model m = { .batch = 1 + (uint32_t)rng_below(&rng, 9),
				   .bound = (uint32_t)rng_below(&rng, 6) };
		uint32_t ahead = m.batch * (2 + (uint32_t)rng_below(&rng, 5));
		struct subject s = subject_new(m.batch, m.bound, ahead);

		for (int k = 0; k < 2; k++) {
			m.n = 1 + (uint32_t)rng_below(&rng, MOST);
			epoch(&s, &m, ahead, &rng);
		}
		subject_free(&s);
	}
}

/* Samples that become ready in order leave as in_order would let them. */
static void without_slow_samples_nothing_moves(void **state)
{
	enum { BATCH = 4, N = 42, AHEAD = 12 };
	struct subject s = subject_new(BATCH, 8, AHEAD);
	uint32_t item[N], next = 0;
	void *got[BATCH];

	(void)state;
	s.ops->begin(s.state, N);
	for (uint32_t i = 0; i < N; i++) {
		s.ops->add(s.state, i, &item[i]);
		if (!s.ops->full(s.state))
			continue;
		assert_int_equal(s.ops->take(s.state, got),
				 MIN(BATCH, N - next));
		for (uint32_t k = 0; k < MIN(BATCH, N - next); k++)
			assert_ptr_equal(got[k], &item[next + k]);
		next += BATCH;
	}
	assert_true(next >= N);
	assert_false(s.ops->full(s.state));
	subject_free(&s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(ready_agrees_with_the_model),
		cmocka_unit_test(without_slow_samples_nothing_moves),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

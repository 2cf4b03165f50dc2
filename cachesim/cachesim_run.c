/* SPDX-License-Identifier: MIT */
/*
 * Every cell (a policy at a size, or tiers of them) is one pass over the
 * requests by one thread of a pool. The result of a cell depends only on the
 * trace and the seed.
 */
#include "cachesim/cachesim.h"

#include <errno.h>
#include <string.h>

#include "common/pool.h"
#include "common/util.h"
#include "fs/cache/cache_stack.h"
#include "fs/server/object.h"

/* Distance between the steps of a prefetch, in requests: object, index slot,
 * entry. Source: measured, tests/bench/cachesim.c */
enum { STEP = 8 };

/* Prefetch for the requests to come, up to `to`. */
static void look_ahead(const struct cache_stack *s, const struct sim_trace *t,
		       size_t i, size_t to)
{
	const struct cache_item *o = t->objects;
	const uint32_t *r = t->requests;

	if (i + 3 * STEP >= to)
		return;
	__builtin_prefetch(&o[r[i + 3 * STEP]]);
	for (size_t k = 0; k < s->n; k++) {
		cache_expect(s->c[k], o[r[i + 2 * STEP]].key);
		cache_expect_soon(s->c[k], o[r[i + STEP]].key);
	}
}

static void replay(struct cache_stack *s, const struct sim_trace *t,
		   size_t from, size_t to)
{
	if (s->n == 1) {
		cache_replay(s->c[0],
			     &(struct cache_items){ t->objects, t->whole },
			     t->requests + from,
			     t->next_use ? t->next_use + from : NULL,
			     to - from);
		return;
	}
	for (size_t i = from; i < to; i++) {
		struct cache_object o = sim_trace_object(t, t->requests[i]);

		look_ahead(s, t, i, to);
		if (t->next_use)
			o.next_use = t->next_use[i];
		cache_stack_access(s, &o);
	}
}

static uint32_t label_of(const void *trace, uint64_t key)
{
	return ((const struct sim_trace *)trace)->label[key >> 32];
}

static int new_stack(const struct sim_run *run, struct sim_cell *cell,
		     struct cache_stack *s)
{
	const struct sim_trace *t = run->trace;
	struct policy_params params = { .seed = run->seed,
					.file_bytes = t->file_bytes,
					.n_files = t->n_files,
					.max_object_bytes = t->max_object_bytes,
					.importance = importance_of,
					.importance_ctx = &t->importance,
					.label = t->label ? label_of : NULL,
					.label_ctx = t,
					.n_labels = t->n_labels,
					.knows_future = t->next_use != NULL,
					.count_metadata = run->count_metadata,
					.overhead_bytes = OBJECT_OVERHEAD };

	/* tiers and events find objects by their keys */
	if (cell->n_tiers == 1 && !t->n_events)
		params.n_numbers = (uint32_t)t->n_objects;
	*s = (struct cache_stack){ .admit = run->admit };
	for (; s->n < cell->n_tiers; s->n++) {
		const struct sim_tier *tier = &cell->tiers[s->n];
		int r;

		params.capacity_bytes = tier->capacity_bytes;
		params.options = tier->options;
		r = cache_new(tier->ops, &params, NULL, NULL, &s->c[s->n],
			      &cell->err);
		if (r < 0)
			return err_set(&cell->err, r, "%s: %s", tier->policy,
				       strerror(-r));
	}
	return 0;
}

/* Add the counts of the caches to those of an epoch. */
static void count(struct sim_cell *cell, size_t epoch, struct cache_stack *s)
{
	for (size_t k = 0; k < s->n; k++) {
		cache_counts_add(&cell->tiers[k].epochs[epoch],
				 cache_counts(s->c[k]));
		cache_reset_counts(s->c[k]);
	}
}

static void offer(struct cache_stack *s, const struct cache_object *o)
{
	for (size_t k = 0; k < s->n; k++)
		if (cache_offer(s->c[k], o) && s->admit == TIER_ADMIT_FIRST)
			return;
}

/* Offer it to the first that has room. */
static void warm(struct cache_stack *s, const struct cache_object *o)
{
	for (size_t k = 0; k < s->n && !cache_peek(s->c[k], o->key); k++)
		if (cache_has_room(s->c[k], o->bytes) &&
		    cache_offer(s->c[k], o))
			return;
}

/* Apply an event between two requests; may replace the caches by others. */
static int happen(const struct sim_run *run, struct sim_cell *cell,
		  const struct sim_event *ev, size_t epoch,
		  struct cache_stack *s)
{
	struct cache_object o = { 0 };

	if (ev->kind <= SIM_REMOVE) {
		o = sim_trace_object(run->trace, ev->object);
		o.next_use = ev->next_use;
	}
	switch (ev->kind) {
	case SIM_OFFER: offer(s, &o); return 0;
	case SIM_WARM: warm(s, &o); return 0;
	case SIM_REMOVE:
		for (size_t k = 0; k < s->n; k++) {
			struct cache_entry *e = cache_peek(s->c[k], o.key);

			if (e)
				cache_remove(s->c[k], e);
		}
		return 0;
	case SIM_NEW_CACHE:
		count(cell, epoch, s);
		cache_stack_fini(s);
		return new_stack(run, cell, s);
	}
	return 0;
}

static int run_epochs(const struct sim_run *run, struct sim_cell *cell,
		      struct cache_stack *s)
{
	const struct sim_trace *t = run->trace;
	size_t from = 0, event = 0;

	for (size_t e = 0; e < t->n_epochs; e++) {
		size_t end = t->epoch_ends[e];

		for (; event < t->n_events && t->events[event].at < end;
		     event++) {
			int r;

			replay(s, t, from, t->events[event].at);
			from = t->events[event].at;
			r = happen(run, cell, &t->events[event], e, s);
			if (r < 0)
				return r;
		}
		replay(s, t, from, end);
		from = end;
		count(cell, e, s);
	}
	return 0;
}

static int run_cell(const struct sim_run *run, struct sim_cell *cell)
{
	struct cache_stack s = { 0 };
	int r = new_stack(run, cell, &s);

	for (size_t k = 0; r == 0 && k < cell->n_tiers; k++) {
		struct sim_tier *tier = &cell->tiers[k];

		tier->epochs =
			calloc(run->trace->n_epochs, sizeof(*tier->epochs));
		if (!tier->epochs)
			r = err_set(&cell->err, -ENOMEM, "out of memory");
	}
	if (r == 0)
		r = run_epochs(run, cell, &s);
	for (size_t k = 0; r == 0 && k < s.n; k++)
		cell->tiers[k].metadata_bytes = cache_metadata_bytes(s.c[k]);
	cache_stack_fini(&s);
	return r;
}

static int replay_cell(void *ctx, void *state, size_t i, struct err *err)
{
	struct sim_run *run = ctx;
	int r = run_cell(run, &run->cells[i]);

	(void)state;
	return r < 0 ? err_set(err, r, "%s", run->cells[i].err.text) : 0;
}

int sim_replay(struct sim_run *run, unsigned jobs, struct err *err)
{
	struct pool pool = { .n = run->n_cells,
			     .threads = jobs,
			     .ctx = run,
			     .work = replay_cell };

	return pool_run(&pool, err);
}

void sim_run_fini(struct sim_run *run)
{
	for (size_t i = 0; i < run->n_cells; i++)
		for (size_t k = 0; k < run->cells[i].n_tiers; k++)
			free(run->cells[i].tiers[k].epochs);
	free(run->cells);
}

struct cache_counts sim_tier_sum(const struct sim_tier *tier, size_t first,
				 size_t end)
{
	struct cache_counts sum = { 0 };

	for (size_t e = first; e < end; e++)
		cache_counts_add(&sum, &tier->epochs[e]);
	return sum;
}

struct cache_counts sim_sum(const struct sim_cell *cell, size_t first,
			    size_t end)
{
	struct cache_counts sum = { 0 }, last = { 0 };

	for (size_t k = 0; k < cell->n_tiers; k++) {
		last = sim_tier_sum(&cell->tiers[k], first, end);
		cache_counts_add(&sum, &last);
	}
	sum.misses = last.misses;
	sum.miss_bytes = last.miss_bytes;
	return sum;
}

struct cache_counts sim_steady(const struct sim_run *run,
			       const struct sim_cell *cell)
{
	return sim_sum(cell, run->warmup, run->trace->n_epochs);
}

static double ratio(uint64_t part, uint64_t rest)
{
	return part + rest ? (double)part / ((double)part + (double)rest) : 0;
}

double sim_hit_ratio(const struct cache_counts *n)
{
	return ratio(n->hits, n->misses);
}

double sim_byte_hit_ratio(const struct cache_counts *n)
{
	return ratio(n->hit_bytes, n->miss_bytes);
}

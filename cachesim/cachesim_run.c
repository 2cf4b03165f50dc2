/* SPDX-License-Identifier: MIT */
/*
 * Every cell (a policy at a size) is one pass over the requests by one thread
 * of a pool. The result of a cell depends only on the trace and the seed.
 */
#include "cachesim/cachesim.h"

#include <errno.h>
#include <string.h>

#include "common/pool.h"
#include "common/util.h"
#include "fs/server/object.h"

/* Distance of the index prefetch, in requests. arbitrary: a memory access takes
 * about as long as two requests; more does not hurt */
enum { AHEAD = 16 };

static void replay(struct cache *c, const struct sim_trace *t, size_t from,
		   size_t to)
{
	struct cache_entry *e;

	for (size_t i = from; i < to; i++) {
		struct cache_object o = t->objects[t->requests[i]];

		if (i + AHEAD < to)
			cache_prefetch(c,
				       t->objects[t->requests[i + AHEAD]].key);
		if (t->next_use)
			o.next_use = t->next_use[i];
		cache_access(c, &o, &e);
	}
}

static int new_cache(const struct sim_run *run, struct sim_cell *cell,
		     struct cache **ret)
{
	const struct sim_trace *t = run->trace;
	struct policy_params params = { .capacity_bytes = cell->capacity_bytes,
					.seed = run->seed,
					.file_bytes = t->file_bytes,
					.n_files = t->n_files,
					.max_object_bytes = t->max_object_bytes,
					.knows_future = t->next_use != NULL,
					.count_metadata = run->count_metadata,
					.options = cell->options,
					.overhead_bytes = OBJECT_OVERHEAD };
	int r = cache_new(cell->ops, &params, NULL, NULL, ret, &cell->err);

	return r < 0 ? err_set(&cell->err, r, "%s: %s", cell->policy,
			       strerror(-r))
		     : 0;
}

/* Apply an event between two requests; may replace *c by another cache. */
static int happen(const struct sim_run *run, struct sim_cell *cell,
		  const struct sim_event *ev, struct cache_counts *sum,
		  struct cache **c)
{
	struct cache_object o = { 0 };
	struct cache_entry *e = NULL;

	if (ev->kind <= SIM_REMOVE) {
		o = run->trace->objects[ev->object];
		o.next_use = ev->next_use;
		e = cache_peek(*c, o.key);
	}
	switch (ev->kind) {
	case SIM_OFFER: cache_offer(*c, &o); return 0;
	case SIM_WARM:
		if (cache_has_room(*c, o.bytes))
			cache_offer(*c, &o);
		return 0;
	case SIM_REMOVE:
		if (e)
			cache_remove(*c, e);
		return 0;
	case SIM_NEW_CACHE:
		cache_counts_add(sum, cache_counts(*c));
		cache_free(*c);
		*c = NULL;
		return new_cache(run, cell, c);
	}
	return 0;
}

static int run_epochs(const struct sim_run *run, struct sim_cell *cell,
		      struct cache **c)
{
	const struct sim_trace *t = run->trace;
	size_t from = 0, event = 0;

	for (size_t e = 0; e < t->n_epochs; e++) {
		size_t end = t->epoch_ends[e];

		for (; event < t->n_events && t->events[event].at < end;
		     event++) {
			int r;

			replay(*c, t, from, t->events[event].at);
			from = t->events[event].at;
			r = happen(run, cell, &t->events[event],
				   &cell->epochs[e], c);
			if (r < 0)
				return r;
		}
		replay(*c, t, from, end);
		from = end;
		cache_counts_add(&cell->epochs[e], cache_counts(*c));
		cache_reset_counts(*c);
	}
	return 0;
}

static int run_cell(const struct sim_run *run, struct sim_cell *cell)
{
	struct cache *c = NULL;
	int r = new_cache(run, cell, &c);

	if (r < 0)
		return r;
	cell->epochs = calloc(run->trace->n_epochs, sizeof(*cell->epochs));
	r = cell->epochs ? run_epochs(run, cell, &c)
			 : err_set(&cell->err, -ENOMEM, "out of memory");
	if (c)
		cell->metadata_bytes = cache_metadata_bytes(c);
	cache_free(c);
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

struct cache_counts sim_steady(const struct sim_run *run,
			       const struct sim_cell *cell)
{
	struct cache_counts sum = { 0 };

	for (size_t e = run->warmup; e < run->trace->n_epochs; e++)
		cache_counts_add(&sum, &cell->epochs[e]);
	return sum;
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

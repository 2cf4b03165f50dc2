/* SPDX-License-Identifier: MIT */
/* A parsed trace can be replayed. */
#ifndef GPEMU_TESTS_FUZZ_SIM_H
#define GPEMU_TESTS_FUZZ_SIM_H

#include "cachesim/cachesim.h"
#include "tests/fuzz/fuzz.h"

typedef int (*sim_parse_fn)(const char *bytes, size_t n, const char *name,
			    struct sim_trace *t, struct err *err);

extern const struct policy_ops policy_lru, policy_sff, policy_belady;

static inline void check_trace(const struct sim_trace *t)
{
	size_t from = 0;

	for (size_t i = 0; i < t->n_requests; i++)
		PROMISED(t->requests[i] < t->n_objects);
	for (size_t i = 0; i < t->n_events; i++) {
		PROMISED(t->events[i].at <= t->n_requests);
		PROMISED(t->events[i].kind > SIM_REMOVE ||
			 t->events[i].object < t->n_objects);
	}
	for (size_t i = 0; i < t->n_epochs; i++) {
		PROMISED(t->epoch_ends[i] > from);
		from = t->epoch_ends[i];
	}
	PROMISED(from <= t->n_requests);
	for (size_t i = 1; i < t->n_files; i++)
		PROMISED(t->file_bytes[i - 1] <= t->file_bytes[i]);
}

static inline void replay(struct sim_trace *t)
{
	static const struct policy_ops *const ops[] = { &policy_lru,
							&policy_sff,
							&policy_belady };
	enum { N = sizeof(ops) / sizeof(ops[0]) };
	/* each alone, and all as tiers */
	struct sim_run run = { .trace = t };
	struct err err = { 0 };

	if (!t->n_epochs || t->epoch_ends[t->n_epochs - 1] < t->n_requests)
		PROMISED(sim_trace_end_epoch(t) == 0);
	PROMISED(sim_trace_look_ahead(t) == 0);
	run.cells = calloc(N + 1, sizeof(*run.cells));
	PROMISED(run.cells);
	for (run.n_cells = 0; run.n_cells <= N; run.n_cells++) {
		struct sim_cell *c = &run.cells[run.n_cells];

		c->n_tiers = run.n_cells < N ? 1 : N;
		for (size_t k = 0; k < c->n_tiers; k++)
			c->tiers[k] = (struct sim_tier){
				.ops = ops[(run.n_cells + k) % N],
				.policy = "x",
				.storage = "dram",
				.capacity_bytes = t->total_bytes / 3,
			};
	}
	PROMISED(sim_replay(&run, 1, &err) == 0);
	for (size_t i = 0; i < run.n_cells; i++) {
		struct cache_counts sum = sim_steady(&run, &run.cells[i]);

		PROMISED(sum.hits + sum.misses == t->n_requests);
	}
	sim_run_fini(&run);
}

static inline int fuzz_sim(sim_parse_fn parse, const uint8_t *data, size_t n)
{
	struct sim_trace t = { 0 };
	struct err err = { 0 };
	int r = parse((const char *)data, n, "x", &t, &err);

	PROMISED(r == 0 || (r < 0 && err.text[0]));
	if (r == 0)
		check_trace(&t);
	if (r == 0 && t.n_requests)
		replay(&t);
	sim_trace_fini(&t);
	return 0;
}

#endif

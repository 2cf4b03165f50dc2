/* SPDX-License-Identifier: MIT */
/* A parsed trace can be replayed. */
#ifndef GPEMU_TESTS_FUZZ_SIM_H
#define GPEMU_TESTS_FUZZ_SIM_H

#include <errno.h>
#include <sys/mman.h>
#include <unistd.h>

#include "cachesim/layout.h"
#include "common/conf/plugin_choice.h"
#include "common/util.h"
#include "tests/fuzz/fuzz.h"

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

/* With the window as it is for a map, or read a few bytes at a time. */
static inline int read_sim(const char *layout, const uint8_t *data, size_t n,
			   size_t grain, struct sim_trace *t, struct err *err)
{
	int fd = grain ? memfd_create("trace", 0) : -1;
	struct plugin_choice c;
	struct sim_input in;
	int r;

	PROMISED(plugin_choose(layout_table, "layout", layout, &c, err) == 0);
	if (grain) {
		PROMISED(write(fd, data, n) == (ssize_t)n);
		PROMISED(lseek(fd, 0, SEEK_SET) == 0);
		r = sim_input_open_fd(&in, fd, grain, "x", err);
	} else {
		r = sim_input_open_memory(&in, data, n, "x", err);
	}
	if (r == 0)
		r = container_of(c.plugin, const struct layout_ops, plugin)
			    ->read(&in, c.options, t, err);
	sim_input_close(&in);
	plugin_choice_fini(&c);
	return r;
}

/* What is accepted can be replayed, of every third input; `grain`: as above. */
static inline void fuzz_sim(const char *layout, const uint8_t *data, size_t n,
			    size_t grain)
{
	struct sim_trace t = { 0 };
	struct err err = { 0 };
	int r = read_sim(layout, data, n, grain, &t, &err);

	PROMISED(r == 0 || r == -ENOMEM || r == -EOVERFLOW || r == -E2BIG ||
		 (r < 0 && err.text[0]));
	if (r == 0)
		check_trace(&t);
	if (r == 0 && n % 3 == 0 && t.n_requests && t.n_requests < 5000)
		replay(&t);
	sim_trace_fini(&t);
}

#endif

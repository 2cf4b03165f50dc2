/* SPDX-License-Identifier: MIT */
/*
 * Processor time per request of each cache policy in gpemu-cachesim: three
 * epochs over ImageNet's files, with a cache of 35 %. Prints a table per trace.
 *
 *	GPEMU_PROFILES=profiles bench_cachesim [TURNS [POLICY...]]
 *
 * The best of the turns counts (default 3): other load only adds time.
 *
 * LIBCACHESIM=PROGRAM in the environment runs the same traces in another
 * simulator, turn by turn, and prints both and their ratio. PROGRAM TRACE BYTES
 * POLICY reads an oracleGeneral trace (gpemu-cachesim(1)) into memory, replays
 * it with a cache of so many bytes, and prints the nanoseconds per request and
 * the hits. It fails for a policy that it does not have.
 */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cachesim/cachesim.h"
#include "common/rng.h"
#include "common/tick.h"
#include "common/util.h"

enum { EPOCHS = 3 };

struct kind {
	const char *name;
	bool zipf, sized;
};

struct figure {
	double ns;
	uint64_t hits;
};

static void must(int r, const char *what)
{
	if (r >= 0)
		return;
	fprintf(stderr, "bench_cachesim: %s\n", what);
	exit(1);
}

/* By inversion: the harmonic sum up to k is about ln(k) + Euler's constant. */
static void add_zipf(struct sim_trace *t)
{
	uint32_t n = (uint32_t)t->n_objects;
	_cleanup_free_ uint32_t *name = malloc(n * sizeof(*name));
	struct rng r = rng_stream(1, "zipf", 0);
	struct rng shuffle = rng_stream(1, "zipf.names", 0);

	must(name ? 0 : -1, "out of memory");
	for (uint32_t i = 0; i < n; i++)
		name[i] = i;
	rng_shuffle_u32(&shuffle, name, n);
	for (uint64_t i = 0; i < (uint64_t)EPOCHS * n; i++) {
		double rank = exp(rng_double(&r) * log(n + .5));

		must(sim_trace_add_request(
			     t, name[MIN((uint32_t)rank - 1, n - 1)]),
		     "out of memory");
	}
	must(sim_trace_end_epoch(t), "out of memory");
}

static void make(const struct kind *kind, struct sim_trace *t)
{
	struct sim_dataset d = { 0 };
	struct err err = { 0 };

	must(sim_dataset_profile("imagenet", 0, 1, t, &d, &err), err.text);
	if (!kind->sized) {
		for (size_t i = 0; i < t->n_objects; i++)
			t->objects[i] =
				(struct cache_item){ .key = t->objects[i].key,
						     .bytes = 1 };
		for (size_t i = 0; i < t->n_files; i++)
			t->file_bytes[i] = 1;
		t->total_bytes = t->n_objects;
	}
	if (kind->zipf)
		add_zipf(t);
	else
		must(sim_dataset_epochs(&d, "shuffle", EPOCHS, 1, &err),
		     err.text);
	must(sim_trace_look_ahead(t), "out of memory");
	sim_dataset_fini(&d);
}

static void put(FILE *f, uint64_t value, size_t bytes)
{
	for (size_t i = 0; i < bytes; i++)
		putc((int)(value >> 8 * i & 0xff), f);
}

static void save(const struct sim_trace *t, const char *path)
{
	FILE *f = fopen(path, "w");

	must(f ? 0 : -1, "cannot write the trace");
	for (size_t i = 0; i < t->n_requests; i++) {
		const struct cache_item *o = &t->objects[t->requests[i]];
		bool again = t->next_use[i] != POLICY_NEVER;

		put(f, i, 4);
		put(f, o->key, 8);
		put(f, o->bytes, 4);
		put(f, again ? t->next_use[i] : INT64_MAX, 8);
	}
	must(fclose(f), "cannot write the trace");
}

static void ours(const struct sim_trace *t, const struct policy_ops *ops,
		 struct figure *best)
{
	struct sim_cell cell = { .n_tiers = 1 };
	struct sim_trace copy = *t;
	struct sim_run run = {
		.trace = &copy, .cells = &cell, .n_cells = 1, .seed = 1
	};
	struct err err = { 0 };
	uint64_t start;
	double ns;

	if (!ops->offline)
		copy.next_use = NULL; /* as gpemu-cachesim */
	cell.tiers[0] = (struct sim_tier){
		.ops = ops,
		.policy = ops->plugin.name,
		.capacity_bytes = t->total_bytes * 35 / 100,
	};
	start = tick_cpu();
	must(sim_replay(&run, 1, &err), err.text);
	ns = (double)(tick_cpu() - start) / (double)t->n_requests;
	best->ns = best->ns > 0 ? MIN(best->ns, ns) : ns;
	best->hits = sim_sum(&cell, 0, t->n_epochs).hits;
	free(cell.tiers[0].epochs);
}

static void theirs(const struct sim_trace *t, const char *program,
		   const char *path, const char *policy, struct figure *best)
{
	_cleanup_free_ char *command = NULL;
	double ns = 0;
	FILE *f;

	must(asprintf(&command, "'%s' '%s' %" PRIu64 " %s 2>/dev/null", program,
		      path, t->total_bytes * 35 / 100, policy),
	     "out of memory");
	f = popen(command, "r");
	must(f ? 0 : -1, "cannot run LIBCACHESIM");
	if (fscanf(f, "%lf %" SCNu64, &ns, &best->hits) == 2)
		best->ns = best->ns > 0 ? MIN(best->ns, ns) : ns;
	pclose(f);
}

static void compare(const struct sim_trace *t, const struct policy_ops *ops,
		    int turns, const char *path)
{
	const char *program = getenv("LIBCACHESIM");
	struct figure a = { 0 }, b = { 0 };
	double n = (double)t->n_requests;

	for (int turn = 0; turn < turns; turn++) {
		ours(t, ops, &a);
		if (program && (turn == 0 || b.ns > 0))
			theirs(t, program, path, ops->plugin.name, &b);
	}
	printf("%-12s %8.1f %8.4f", ops->plugin.name, a.ns, (double)a.hits / n);
	if (b.ns > 0)
		printf(" %10.1f %8.4f %6.2f", b.ns, (double)b.hits / n,
		       b.ns / a.ns);
	printf("\n");
	fflush(stdout);
}

static bool wanted(const char *name, int argc, char **argv)
{
	for (int i = 2; i < argc; i++)
		if (!strcmp(argv[i], name))
			return true;
	return argc <= 2;
}

static void run(const struct kind *kind, int argc, char **argv)
{
	char path[] = "/tmp/bench_cachesim.XXXXXX";
	int turns = argc > 1 ? atoi(argv[1]) : 3;
	struct sim_trace t = { 0 };

	make(kind, &t);
	close(mkstemp(path));
	if (getenv("LIBCACHESIM"))
		save(&t, path);
	printf("%s: %zu objects, %zu requests\n%-12s %8s %8s %10s %8s %6s\n",
	       kind->name, t.n_objects, t.n_requests, "policy", "ns", "hits",
	       "theirs ns", "hits", "ratio");
	for (size_t p = 0; policy_table[p]; p++)
		if (wanted(policy_table[p]->name, argc, argv))
			compare(&t,
				container_of(policy_table[p],
					     const struct policy_ops, plugin),
				turns, path);
	printf("\n");
	unlink(path);
	sim_trace_fini(&t);
}

int main(int argc, char **argv)
{
	static const struct kind kinds[] = {
		{ "random passes, one size", false, false },
		{ "random passes, ImageNet's sizes", false, true },
		{ "Zipf's law, one size", true, false },
	};

	for (size_t i = 0; i < ARRAY_SIZE(kinds); i++)
		run(&kinds[i], argc, argv);
	return 0;
}

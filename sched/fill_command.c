/* SPDX-License-Identifier: MIT */
/*
 * gpemu-sched fill: tasks arrive and never leave, until they ask for more GPUs
 * than the cluster has. A task that finds no place is turned away. Source of
 * the protocol: Weng et al., "Beware of Fragmentation", USENIX ATC 2023,
 * section 6: tasks of a trace in random order, some drawn again or left out so
 * that they ask for a given part of the cluster. Placements, several seeds
 * each, run on threads.
 */
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdatomic.h>
#include <string.h>

#include "common/conf/plugin_choice.h"
#include "common/hist.h"
#include "common/json.h"
#include "common/pool.h"
#include "common/program/interrupt.h"
#include "common/program/progress.h"
#include "common/tick.h"
#include "common/units.h"
#include "common/util.h"
#include "sched/command.h"
#include "sched/core/frag.h"
#include "sched/core/placement.h"
#include "sched/trace/workload.h"

enum { FILL_POINTS_MAX = 16 };

struct fill {
	const struct cluster *cluster; /* all free */
	const struct sched_workload *workload;
	/* Arrived load at which samples are taken: GPUs that were asked for,
	 * over those of the cluster. Ascending; the last one ends the run. */
	double points[FILL_POINTS_MAX];
	size_t n_points;
	const atomic_bool *stop; /* set from any thread: -EINTR */
};

/* The cluster when so much load has arrived. */
struct fill_point {
	double allocated; /* share of the GPUs */
	double free_gpus;
	double frag; /* share of the free GPUs that typical tasks cannot use */
	bool reached;
};

struct fill_result {
	struct fill_point points[FILL_POINTS_MAX];
	uint64_t n_arrived;
	struct hist decisions; /* wall time of each */
};

/* Task numbers in the order of arrival: a permutation, and beyond it draws. */
static int make_order(const struct sched_workload *w, double milli,
		      uint64_t seed, uint32_t **ret, size_t *ret_n)
{
	struct rng rng = rng_stream(seed, "fill", 0);
	size_t n = w->n, allocated = 0;
	double sum = 0;
	int r = util_reserve(ret, &allocated, n, sizeof(**ret));

	if (r < 0)
		return r;
	for (size_t i = 0; i < n; i++)
		(*ret)[i] = (uint32_t)i;
	rng_shuffle_u32(&rng, *ret, n);
	for (size_t i = 0; i < n; i++) {
		sum += (double)job_gpu_milli(&w->jobs[(*ret)[i]]);
		if (sum >= milli)
			n = i + 1;
	}
	while (sum < milli) {
		uint32_t again = (uint32_t)rng_below(&rng, w->n);

		r = util_reserve(ret, &allocated, n + 1, sizeof(**ret));
		if (r < 0)
			return r;
		(*ret)[n++] = again;
		sum += (double)job_gpu_milli(&w->jobs[again]);
	}
	*ret_n = n;
	return 0;
}

/*
 * Ties go to the first node, so that the order of nodes counts: with that of
 * the published list tasks without GPU fill the CPUs of its small nodes first.
 * Here the order is drawn with each seed. The authors' simulator does the same:
 * it takes the least name, and puts a number drawn at random before each
 * (syncClusterResourceList in pkg/simulator/simulator.go).
 */
static void shuffle_nodes(struct cluster *c, uint64_t seed)
{
	struct rng rng = rng_stream(seed, "fill.nodes", 0);

	for (size_t i = c->n; i > 1; i--) {
		size_t k = rng_below(&rng, i);
		struct sched_node other = c->nodes[k];

		c->nodes[k] = c->nodes[i - 1];
		c->nodes[i - 1] = other;
	}
}

static void sample(const struct cluster *c, const struct frag *f,
		   struct fill_point *p)
{
	double whole = (double)c->whole.gpu_milli;
	double free = (double)c->free.gpu_milli;

	p->allocated = 1 - free / whole;
	p->free_gpus = free / GPU_MILLI;
	p->frag = free > 0 ? frag_cluster(f, c) / free : 0;
	p->reached = true;
}

struct fill_run {
	const struct fill *fill;
	struct cluster cluster;
	struct placement placement;
	struct frag frag;
	uint32_t *order;
	size_t n;
	struct sched_part *parts;
};

static int loop(struct fill_run *r, struct fill_result *ret, struct err *err)
{
	const struct sched_workload *w = r->fill->workload;
	double whole = (double)r->cluster.whole.gpu_milli, arrived = 0;
	size_t point = 0;

	for (size_t i = 0; i < r->n; i++) {
		const struct sched_job *job = &w->jobs[r->order[i]];
		uint64_t from = tick_wall();
		size_t n = placement_place(&r->placement, &r->cluster, job,
					   r->parts);

		hist_add(&ret->decisions, tick_wall() - from);
		for (size_t k = 0; k < n; k++) {
			if (!cluster_has(&r->cluster, &r->parts[k]))
				return err_set(err, -EINVAL,
					       "the placement gives task %s "
					       "what is not free",
					       job->name);
			cluster_take(&r->cluster, &r->parts[k]);
		}
		ret->n_arrived++;
		arrived += (double)job_gpu_milli(job);
		for (; point < r->fill->n_points &&
		       arrived >= whole * r->fill->points[point] - .5;
		     point++)
			sample(&r->cluster, &r->frag, &ret->points[point]);
		if (atomic_load_explicit(r->fill->stop, memory_order_relaxed))
			return err_set(err, -EINTR, "interrupted");
	}
	return 0;
}

/* -EINVAL with a text: the placement breaks its contract; -EINTR, -ENOMEM. */
static int fill_run(const struct fill *fill, const struct placement_ops *ops,
		    const void *options, uint64_t seed, struct fill_result *ret,
		    struct err *err)
{
	struct fill_run r = { .fill = fill };
	const struct sched_workload *w = fill->workload;
	size_t parts = 1;
	int e = cluster_copy(fill->cluster, &r.cluster);

	memset(ret, 0, sizeof(*ret));
	if (e == 0)
		shuffle_nodes(&r.cluster, seed);
	for (size_t i = 0; i < w->n; i++)
		parts = MAX(parts, placement_parts(&w->jobs[i]));
	r.parts = calloc(parts, sizeof(*r.parts));
	if (e == 0 && !r.parts)
		e = -ENOMEM;
	if (e == 0)
		e = make_order(w,
			       (double)r.cluster.whole.gpu_milli *
				       fill->points[fill->n_points - 1],
			       seed, &r.order, &r.n);
	if (e == 0)
		e = frag_init(&r.frag, w->jobs, w->n);
	if (e == 0)
		e = placement_init(&r.placement, ops, options, seed, &r.cluster,
				   w->jobs, w->n);
	if (e == 0)
		e = loop(&r, ret, err);
	placement_fini(&r.placement);
	frag_fini(&r.frag);
	cluster_fini(&r.cluster);
	free(r.order);
	free(r.parts);
	return e < 0 ? err_set(err, e, "%s", strerror(-e)) : 0;
}

struct options {
	struct driver_options d;
	char *placements, *load;
	uint64_t runs, jobs;
};

static int parse_load(struct fill *f, const char *text, struct err *err)
{
	int n = input_percentages(text, FILL_POINTS_MAX, f->points, err);

	for (int i = 0; i < n; i++)
		if (f->points[i] <= (i ? f->points[i - 1] : 0))
			return err_set(err, -EINVAL,
				       "'%g' is not a percentage above 0 and "
				       "above the one before",
				       100 * f->points[i]);
	f->n_points = (size_t)MAX(n, 0);
	return MIN(n, 0);
}

static int check_load(const void *object, struct err *err)
{
	struct fill f = { 0 };

	return parse_load(&f, *(char *const *)object, err);
}

static const struct conf_field fields[] = {
	INPUT_TRACE_FIELDS(struct options, d.input),
	INPUT_CLUSTER_FIELDS(struct options, d.input),
	{ CONF_KEY(placements, CONF_STRING, struct options), .short_opt = 'p',
	  .check = input_check_placements, .arg = "NAME,...|all",
	  .help = "placements (default: random,dotprod,gpuclustering,"
		  "gpupacking,bestfit,fgd)" },
	{ CONF_KEY(load, CONF_STRING, struct options), .check = check_load,
	  .arg = "P%,...",
	  .help = "sample at these loads: requested GPUs in percent of the "
		  "cluster's; the last one ends the run (default: "
		  "80%,100%,130%)" },
	{ CONF_KEY(runs, CONF_UINT, struct options), .short_opt = 'n',
	  .arg = "N", .min = 1, .max = 10000,
	  .help = "runs of each placement, with seeds from --seed on "
		  "(default: 3)" },
	{ CONF_KEY(jobs, CONF_UINT, struct options), .short_opt = 'j',
	  .arg = "N", .min = 1, .max = 4096,
	  .help = "threads (default: one per processor)" },
	PROGRESS_FIELD(struct options, d.progress),
	CLI_COMMON_FIELDS(struct options, d.common),
	{ 0 },
};

static const struct cli_program program = {
	.name = "gpemu-sched fill",
	.summary = "Fill a cluster with tasks that never leave: how many of "
		   "its GPUs placements can allocate.",
	.notes = "--trace and a cluster (--cluster or --nodes) are required. "
		 "--list trace, cluster or placement lists the names.",
	.fields = fields,
	.kinds = input_kinds,
	.settle = driver_settle,
};

/* --- the cells: placement by placement, run by run ------------------------ */

struct cells {
	const struct options *o;
	struct fill fill;
	struct plugin_choice *choices;
	char **names;
	size_t n;
	struct fill_result *results; /* runs of the first placement, ... */
	struct progress bar;
	atomic_bool stop;
	int cancel; /* for the pool; atomic */
};

static int add_choice(void *ctx, const char *text, struct err *err)
{
	struct cells *c = ctx;
	struct plugin_choice *v =
		reallocarray(c->choices, c->n + 1, sizeof(*v));
	char **names;

	if (v)
		c->choices = v;
	names = v ? reallocarray(c->names, c->n + 1, sizeof(*names)) : NULL;
	if (!names)
		return -ENOMEM;
	c->names = names;
	c->names[c->n] = strdup(text);
	c->choices[c->n] = (struct plugin_choice){ 0 };
	if (!c->names[c->n++])
		return -ENOMEM;
	return plugin_choose(placement_table, "placement", text,
			     &c->choices[c->n - 1], err);
}

static int work(void *ctx, void *state, size_t i, struct err *err)
{
	struct cells *c = ctx;
	size_t k = i / c->o->runs;

	(void)state;
	return fill_run(&c->fill,
			container_of(c->choices[k].plugin, struct placement_ops,
				     plugin),
			c->choices[k].options,
			c->o->d.common.seed + i % c->o->runs, &c->results[i],
			err);
}

static void show(void *ctx, size_t n_done)
{
	struct cells *c = ctx;

	progress_update(&c->bar, n_done, NULL);
}

static void interrupted(void *ctx)
{
	struct cells *c = ctx;

	atomic_store(&c->stop, true);
	__atomic_store_n(&c->cancel, -EINTR, __ATOMIC_RELAXED);
}

static int run_cells(struct cells *c, struct err *err)
{
	struct interrupt interrupt = { .fn = interrupted, .ctx = c };
	struct pool pool = { .n = c->n * c->o->runs,
			     .threads = (unsigned)c->o->jobs,
			     .ctx = c,
			     .work = work,
			     .progress = show,
			     .cancel = &c->cancel };
	int r;

	interrupt_block();
	r = interrupt_begin(&interrupt);
	if (r < 0)
		return r;
	progress_init(&c->bar, "runs", pool.n, c->o->d.progress_mode);
	r = pool_run(&pool, err);
	progress_end(&c->bar);
	interrupt_end(&interrupt);
	return r < 0 ? err_set(err, r, "interrupted") : 0;
}

/* --- means over the runs -------------------------------------------------- */

struct mean {
	double allocated, free_gpus, frag;
	double spread; /* of `allocated`; NAN: of a single run there is none */
};

static struct mean mean_of(const struct cells *c, size_t k, size_t point)
{
	double n = (double)c->o->runs, squares = 0;
	const struct fill_result *v = &c->results[k * c->o->runs];
	struct mean m = { 0 };

	for (size_t i = 0; i < c->o->runs; i++) {
		const struct fill_point *p = &v[i].points[point];

		m.allocated += p->allocated / n;
		m.free_gpus += p->free_gpus / n;
		m.frag += p->frag / n;
	}
	for (size_t i = 0; i < c->o->runs; i++) {
		double d = v[i].points[point].allocated - m.allocated;

		squares += d * d;
	}
	m.spread = n > 1 ? sqrt(squares / (n - 1)) : NAN;
	return m;
}

static struct hist *merged(const struct cells *c, size_t k)
{
	struct hist *h = calloc(1, sizeof(*h));

	for (size_t i = 0; h && i < c->o->runs; i++)
		hist_merge(h, &c->results[k * c->o->runs + i].decisions);
	return h;
}

static void print_table(const struct cells *c)
{
	int width = 20;

	for (size_t k = 0; k < c->n; k++)
		width = MAX(width, (int)strlen(c->names[k]));
	printf("SIMULATED: %zu nodes, %g GPUs; %" PRIu64 " run%s of each\n",
	       c->fill.cluster->n,
	       (double)c->fill.cluster->whole.gpu_milli / GPU_MILLI, c->o->runs,
	       c->o->runs > 1 ? "s" : "");
	printf("%-*s %6s %9s %6s %10s %7s %10s\n", width, "placement", "load/%",
	       "GPUs/%", "+-", "free GPUs", "frag/%", "decision");
	for (size_t k = 0; k < c->n; k++) {
		_cleanup_free_ struct hist *h = merged(c, k);
		char cost[UNITS_TEXT];

		for (size_t p = 0; p < c->fill.n_points; p++) {
			struct mean m = mean_of(c, k, p);
			char spread[UNITS_TEXT] = "-";

			if (!isnan(m.spread))
				snprintf(spread, sizeof(spread), "%.2f",
					 100 * m.spread);
			printf("%-*s %6g %9.2f %6s %10.1f %7.1f %10s\n", width,
			       c->names[k], 100 * c->fill.points[p],
			       100 * m.allocated, spread, m.free_gpus,
			       100 * m.frag,
			       h ? units_human_duration(hist_mean(h), cost)
				 : "");
		}
	}
}

static json_t *json_points(const struct cells *c, size_t k)
{
	json_t *a = json_array();

	for (size_t p = 0; p < c->fill.n_points; p++) {
		struct mean m = mean_of(c, k, p);
		json_t *runs = json_array();

		for (size_t i = 0; i < c->o->runs; i++)
			json_array_append_new(
				runs, json_real(c->results[k * c->o->runs + i]
							.points[p]
							.allocated));
		json_array_append_new(
			a, json_pack("{s:f,s:f,s:o,s:f,s:f,s:o}", "load",
				     c->fill.points[p], "allocated",
				     m.allocated, "allocated_sd",
				     isnan(m.spread) ? json_null()
						     : json_real(m.spread),
				     "free_gpus", m.free_gpus, "frag", m.frag,
				     "allocated_runs", runs));
	}
	return a;
}

static json_t *record(const struct cells *c)
{
	json_t *a = json_array();

	for (size_t k = 0; k < c->n; k++) {
		_cleanup_free_ struct hist *h = merged(c, k);

		json_array_append_new(
			a,
			json_pack("{s:o,s:o,s:o}", "placement",
				  plugin_choice_json(c->choices[k].plugin,
						     c->choices[k].options),
				  "points", json_points(c, k), "decision_us",
				  h ? hist_json(h, NS_PER_US) : json_null()));
	}
	return json_pack("{s:I,s:o}", "runs", (json_int_t)c->o->runs, "results",
			 a);
}

/* --- from options to results ---------------------------------------------- */

/* Without GPUs on either side there is no load. */
static int check_gpus(const struct cluster *c, const struct sched_workload *w,
		      struct err *err)
{
	size_t i = 0;

	if (!c->whole.gpu_milli)
		return err_set(err, -EINVAL,
			       "the cluster has no GPUs to fill: give nodes "
			       "with GPUs, as in --nodes 4*gpus=8,cpus=24");
	while (i < w->n && !job_gpu_milli(&w->jobs[i]))
		i++;
	return i < w->n ? 0
			: err_set(err, -EINVAL,
				  "no task of the trace asks for a GPU: fill "
				  "needs tasks that do");
}

static int fill_cluster(const void *options, struct cluster *c,
			struct sched_workload *w, struct err *err)
{
	const struct options *o = options;
	struct cells cells = { .o = o,
			       .fill = { .cluster = c, .workload = w } };
	int r = parse_load(&cells.fill, o->load, err);

	cells.fill.stop = &cells.stop;
	if (r == 0)
		r = plugin_choice_each(placement_table, o->placements,
				       add_choice, &cells, err);
	if (r == 0)
		r = check_gpus(c, w, err);
	cells.results = calloc(cells.n * o->runs + 1, sizeof(*cells.results));
	if (r == 0 && !cells.results)
		r = -ENOMEM;
	if (r == 0)
		r = run_cells(&cells, err);
	if (r == 0 && (!o->d.common.json || strcmp(o->d.common.json, "-")))
		print_table(&cells);
	if (r == 0 && o->d.common.json)
		r = input_record(input_describe(record(&cells), w, c), fields,
				 o, &o->d.common, err);
	for (size_t k = 0; k < cells.n; k++) {
		plugin_choice_fini(&cells.choices[k]);
		free(cells.names[k]);
	}
	free(cells.choices);
	free(cells.names);
	free(cells.results);
	return r;
}

int command_fill(int argc, char **argv)
{
	static const struct driver driver = { .program = &program,
					      .use = WORKLOAD_REQUESTS,
					      .run = fill_cluster };
	struct options o = { .placements = strdup("random,dotprod,"
						  "gpuclustering,gpupacking,"
						  "bestfit,fgd"),
			     .load = strdup("80%,100%,130%"),
			     .runs = 3,
			     .jobs = (uint64_t)sysconf(_SC_NPROCESSORS_ONLN) };

	return driver_command(&driver, &o, argc, argv);
}

/* SPDX-License-Identifier: MIT */
/* gpemu-sched simulate: policies and placements on one workload. */
#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "common/log.h"
#include "common/program/interrupt.h"
#include "common/units.h"
#include "common/util.h"
#include "sched/charts.h"
#include "sched/command.h"
#include "sched/sim.h"

struct options {
	struct cli_common common;
	struct input_options input;
	struct chart_options charts;
	char *policies, *placements, *interference, *progress;
	enum progress_mode progress_mode;
	uint64_t round_ns;
	bool per_job;
};

static const struct conf_field fields[] = {
	INPUT_TRACE_FIELDS(struct options, input),
	INPUT_CLUSTER_FIELDS(struct options, input),
	{ "policies", CONF_STRING, offsetof(struct options, policies),
	  .short_opt = 'p', .check = input_check_policies,
	  .arg = "NAME,...|all", .help = "who runs (default: fifo,srtf,las)" },
	{ "placements", CONF_STRING, offsetof(struct options, placements),
	  .check = input_check_placements, .arg = "NAME,...|all",
	  .help = "on which GPUs, with how much CPU and memory (default: "
		  "proportional)" },
	{ "round", CONF_DURATION, offsetof(struct options, round_ns),
	  /* as the times of a trace */
	  .max = WORKLOAD_SECONDS_MAX * NS_PER_S, .arg = "DURATION",
	  .help = "decide at multiples of it; default: 0, at each arrival "
		  "and completion" },
	{ "interference", CONF_STRING, offsetof(struct options, interference),
	  .arg = "P%,...",
	  .help = "how much longer an iteration of 2, 3 and 4 jobs that take "
		  "turns on GPUs takes than its stages (default: 0%,0%,0%)" },
	{ "per_job", CONF_BOOL, offsetof(struct options, per_job),
	  .help = "record the times of each job" },
	CHART_FIELDS(struct options, charts),
	{ "progress", CONF_STRING, offsetof(struct options, progress),
	  .arg = "auto|on|off", .cli_only = true,
	  .help = "show a progress bar on stderr" },
	CLI_COMMON_FIELDS(struct options, common),
	{ 0 },
};

static const struct cli_kind kinds[] = { INPUT_KINDS, { 0 } };

static int settle(void *options, struct err *err)
{
	struct options *o = options;
	int r = charts_settle(&o->charts, err);

	return r < 0 ? r : progress_parse(o->progress, &o->progress_mode, err);
}

static const struct cli_program program = {
	.name = "gpemu-sched simulate",
	.summary = "Run the jobs of a trace on an event clock: completion "
		   "times, utilisation and fairness of scheduling policies.",
	.notes = "--trace and a cluster (--cluster or --nodes) are required. "
		 "--list trace, cluster, speeds, policy, placement or format "
		 "lists the names.",
	.fields = fields,
	.kinds = kinds,
	.settle = settle,
};

/* --- the cells: every policy with every placement ------------------------- */

struct making {
	struct sim *sim;
	const struct options *o;
	const char *policy;
};

static bool places(const struct sim_cell *c)
{
	return container_of(c->policy.plugin, struct schedule_ops, plugin)
		->places;
}

static int add_cell(void *ctx, const char *placement, struct err *err)
{
	struct making *m = ctx;
	struct sim *sim = m->sim;
	struct sim_cell *c =
		reallocarray(sim->cells, sim->n_cells + 1, sizeof(*c));
	int r;

	if (!c)
		return -ENOMEM;
	sim->cells = c;
	c += sim->n_cells++;
	memset(c, 0, sizeof(*c));
	r = plugin_choose(schedule_table, "policy", m->policy, &c->policy, err);
	if (r == 0)
		r = plugin_choose(placement_table, "placement", placement,
				  &c->placement, err);
	if (r < 0)
		return r;
	if (places(c))
		r = asprintf(&c->name, "%s", m->policy);
	else
		r = asprintf(&c->name, "%s %s", m->policy, placement);
	if (r < 0)
		return -ENOMEM;
	/* one cell is enough of a policy that places by itself */
	return places(c);
}

static int add_policy(void *ctx, const char *policy, struct err *err)
{
	struct making *m = ctx;
	int r;

	m->policy = policy;
	r = input_choices(placement_table, m->o->placements, add_cell, m, err);
	return MIN(r, 0);
}

/* --- from options to results ---------------------------------------------- */

static void interrupted(void *ctx)
{
	struct sim *sim = ctx;

	atomic_store(&sim->stop, true);
}

static int run_cells(const struct options *o, struct sim *sim, struct err *err)
{
	struct interrupt interrupt = { .fn = interrupted, .ctx = sim };
	int r;

	interrupt_block();
	r = interrupt_begin(&interrupt);
	if (r < 0)
		return r;
	progress_init(&sim->bar, "jobs", sim->n_cells * sim->workload->n,
		      o->progress_mode);
	for (size_t i = 0; r == 0 && i < sim->n_cells; i++)
		r = sim_run(sim, &sim->cells[i], err);
	progress_end(&sim->bar);
	interrupt_end(&interrupt);
	return r;
}

static int write_record(const struct options *o, const struct sim *sim,
			struct err *err)
{
	json_t *j = input_describe(json_object(), sim->workload, sim->cluster);

	json_object_set_new(j, "results", report_json(sim, o->per_job));
	return input_record(j, fields, o, &o->common, err);
}

/* Of groups of 2 jobs, 3, and so on. */
static int parse_interference(const char *text, struct cluster *c,
			      struct err *err)
{
	_cleanup_free_ char *copy = strdup(text ? text : "0");
	char *rest = copy, *word;
	size_t n = 2;

	if (!copy)
		return -ENOMEM;
	while ((word = strsep(&rest, ","))) {
		size_t length = strlen(word);
		double v;

		if (length && word[length - 1] == '%')
			word[length - 1] = 0;
		if (n > GROUP_MAX || units_parse_double(word, &v) < 0 ||
		    v < 0 || v > 1000)
			return err_set(err, -EINVAL,
				       "--interference: '%s' is not one of up "
				       "to %d percentages",
				       word, GROUP_MAX - 1);
		c->interference[n++] = v / 100;
	}
	return 0;
}

static int simulate(const struct options *o, struct cluster *c,
		    struct workload *w, struct err *err)
{
	struct sim sim = { .cluster = c,
			   .workload = w,
			   .seed = o->common.seed,
			   .round_ns = o->round_ns,
			   .keep_history = charts_keep_history(&o->charts) };
	struct making making = { .sim = &sim, .o = o };
	struct err note = { 0 };
	int r = input_choices(schedule_table, o->policies, add_policy, &making,
			      err);
	int e;

	if (r == 0)
		r = sim_check(w, c, err);
	if (r == 0)
		r = charts_check(&o->charts, &sim, err);
	if (r == 0 && sim_cpus_idle(w, c, &note))
		log_warn("%s", note.text);
	if (r == 0)
		r = run_cells(o, &sim, err);
	/* what was done before an interruption is worth showing */
	if (r == 0 || r == -EINTR) {
		if (!o->common.json || strcmp(o->common.json, "-"))
			charts_tables(&o->charts, &sim, "SIMULATED");
		e = o->common.json ? write_record(o, &sim, err) : 0;
		if (r == 0 && e == 0)
			e = charts_draw(&o->charts, &sim, err);
		r = r < 0 ? r : e;
	}
	sim_fini(&sim);
	return r;
}

int command_simulate(int argc, char **argv)
{
	struct options o = { 0 };
	struct cluster c = { 0 };
	struct workload w = { 0 };
	struct err err = { 0 };
	int r;

	o.policies = strdup("fifo,srtf,las");
	o.placements = strdup("proportional");
	o.progress = strdup("auto");
	cli_parse(&program, argc, argv, &o, NULL);
	if (input_check(&o.input, &err) < 0) {
		log_error("%s", err.text);
		r = EXIT_STATUS_USAGE;
	} else {
		r = input_cluster(&o.input, &c, &err);
		if (r == 0)
			r = parse_interference(o.interference, &c, &err);
		if (r == 0)
			r = input_workload(&o.input, &c, WORKLOAD_RUNS, &w,
					   &err);
		if (r == 0)
			r = simulate(&o, &c, &w, &err);
		r = r < 0 ? cli_fail(r, &err) : EXIT_STATUS_DONE;
	}
	workload_fini(&w);
	cluster_fini(&c);
	conf_free(fields, &o);
	return r;
}

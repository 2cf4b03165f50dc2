/* SPDX-License-Identifier: MIT */
/* gpemu-sched simulate: policies and placements on one workload. */
#include <errno.h>
#include <string.h>

#include "common/program/interrupt.h"
#include "common/units.h"
#include "common/util.h"
#include "sched/command.h"
#include "sched/sim.h"

struct options {
	struct driver_options d;
	char *policies, *placements, *interference;
};

static int check_interference(const void *object, struct err *err)
{
	double v[GROUP_MAX - 1];
	int n = input_percentages(*(char *const *)object, ARRAY_SIZE(v), v,
				  err);

	return MIN(n, 0);
}

static const struct conf_field fields[] = {
	INPUT_TRACE_FIELDS(struct options, d.input),
	INPUT_CLUSTER_FIELDS(struct options, d.input),
	{ CONF_KEY(policies, CONF_STRING, struct options), .short_opt = 'p',
	  .check = input_check_policies, .arg = "NAME,...|all",
	  .help = "scheduling policies (default: fifo,srtf,las)" },
	{ CONF_KEY(placements, CONF_STRING, struct options),
	  .check = input_check_placements, .arg = "NAME,...|all",
	  .help = "placements: GPUs, CPU and memory of a job (default: "
		  "proportional)" },
	{ CONF_KEY(interference, CONF_STRING, struct options),
	  .check = check_interference, .arg = "P%,...",
	  .help = "overhead of an iteration when 2, 3 and 4 jobs take turns on "
		  "GPUs (default: 0%,0%,0%)" },
	DRIVER_FIELDS(struct options),
	{ 0 },
};

static const struct cli_program program = {
	.name = "gpemu-sched simulate",
	.summary = "Run the jobs of a trace on an event clock: completion "
		   "times, utilisation and fairness of scheduling policies.",
	.notes = "--trace and a cluster (--cluster or --nodes) are required. "
		 "--list trace, cluster, speeds, policy, placement or format "
		 "lists the names.",
	.fields = fields,
	.kinds = input_kinds,
	.settle = driver_settle,
};

/* --- the cells: every policy with every placement ------------------------- */

struct making {
	struct sched_sim *sim;
	const struct options *o;
	const char *policy;
};

static int add_cell(void *ctx, const char *placement, struct err *err)
{
	struct making *m = ctx;
	struct sched_sim *sim = m->sim;
	struct sched_sim_cell *c =
		reallocarray(sim->cells, sim->n_cells + 1, sizeof(*c));

	if (!c)
		return -ENOMEM;
	sim->cells = c;
	c += sim->n_cells++;
	memset(c, 0, sizeof(*c));
	/* one cell is enough of a policy that places by itself */
	return driver_cell(c, m->policy, placement, "", err);
}

static int add_policy(void *ctx, const char *policy, struct err *err)
{
	struct making *m = ctx;
	int r;

	m->policy = policy;
	r = plugin_choice_each(placement_table, m->o->placements, add_cell, m,
			       err);
	return MIN(r, 0);
}

/* --- from options to results ---------------------------------------------- */

static void interrupted(void *ctx)
{
	struct sched_sim *sim = ctx;

	atomic_store(&sim->stop, true);
}

static int run_cells(const struct options *o, struct sched_sim *sim,
		     struct err *err)
{
	struct interrupt interrupt = { .fn = interrupted, .ctx = sim };
	int r;

	interrupt_block();
	r = interrupt_begin(&interrupt);
	if (r < 0)
		return r;
	progress_init(&sim->bar, "jobs", sim->n_cells * sim->workload->n,
		      o->d.progress_mode);
	for (size_t i = 0; r == 0 && i < sim->n_cells; i++)
		r = sim_run(sim, &sim->cells[i], err);
	progress_end(&sim->bar);
	interrupt_end(&interrupt);
	return r;
}

static int write_record(const struct options *o, const struct sched_sim *sim,
			struct err *err)
{
	json_t *j = input_describe(json_object(), sim->workload, sim->cluster);

	json_object_set_new(j, "results", report_json(sim, o->d.per_job));
	return input_record(j, fields, o, &o->d.common, err);
}

static int simulate(const void *options, struct cluster *c,
		    struct sched_workload *w, struct err *err)
{
	const struct options *o = options;
	struct sched_sim sim = driver_sim(&o->d, c, w);
	struct making making = { .sim = &sim, .o = o };
	/* of groups of 2 jobs, 3, and so on */
	int r = input_percentages(o->interference, GROUP_MAX - 1,
				  &c->interference[2], err);
	int e;

	r = MIN(r, 0);

	if (r == 0)
		r = plugin_choice_each(schedule_table, o->policies, add_policy,
				       &making, err);
	if (r == 0)
		r = driver_check(&o->d, &sim, err);
	if (r == 0)
		r = run_cells(o, &sim, err);
	/* what was done before an interruption is worth showing */
	if (r == 0 || r == -EINTR) {
		if (!o->d.common.json || strcmp(o->d.common.json, "-"))
			driver_tables(&o->d.charts, &sim, "SIMULATED");
		e = o->d.common.json ? write_record(o, &sim, err) : 0;
		if (r == 0 && e == 0)
			e = driver_draw(&o->d.charts, &sim, err);
		r = r < 0 ? r : e;
	}
	sim_fini(&sim);
	return r;
}

int command_simulate(int argc, char **argv)
{
	static const struct driver driver = { .program = &program,
					      .run = simulate };
	struct options o = { .policies = strdup("fifo,srtf,las"),
			     .placements = strdup("proportional"),
			     .interference = strdup("0%") };

	return driver_command(&driver, &o, argc, argv);
}

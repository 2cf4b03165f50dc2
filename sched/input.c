/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <string.h>

#include "common/json.h"
#include "common/log.h"
#include "common/units.h"
#include "common/util.h"
#include "common/word.h"
#include "common/conf/plugin_choice.h"
#include "common/program/gnuplot.h"
#include "sched/chart/gantt.h"
#include "sched/chart/perfetto.h"
#include "sched/command.h"

const struct cli_kind input_kinds[] = {
	{ "trace", .print = workload_names_print, .which = 0 },
	{ "cluster", .print = workload_names_print, .which = 1 },
	{ "speeds", .print = workload_names_print, .which = 2 },
	{ "policy", .table = schedule_table },
	{ "placement", .table = placement_table },
	{ "format", .table = reader_table },
	{ 0 },
};

int input_check_nodes(const void *object, struct err *err)
{
	struct cluster c = { 0 };
	int r = nodes_parse(*(char *const *)object, &c, err);

	cluster_fini(&c);
	return r;
}

/* Are there a trace and a cluster? -EINVAL with a text: usage. */
static int check_input(const struct input_options *o, struct err *err)
{
	if (!o->trace)
		return err_set(err, -EINVAL,
			       "no trace: give --trace NAME|FILE (--list trace "
			       "lists those that ship)");
	if (!o->cluster && !o->nodes.n)
		return err_set(err, -EINVAL,
			       "no cluster: give --nodes, as in "
			       "4*gpus=8,cpus=24,memory=500G, or --cluster "
			       "(--list cluster)");
	return 0;
}

static int read_cluster(const struct input_options *o, struct cluster *ret,
			struct err *err)
{
	int r = 0;

	*ret = (struct cluster){ 0 };
	if (o->cluster)
		r = nodes_load(o->cluster, ret, err);
	for (size_t i = 0; r == 0 && i < o->nodes.n; i++)
		r = nodes_parse(((char **)o->nodes.items)[i], ret, err);
	return r;
}

int input_workload(const struct input_options *o, struct cluster *c,
		   enum workload_use use, struct sched_workload *ret,
		   struct err *err)
{
	_cleanup_free_ char *counts = NULL;
	int r = workload_load(o->trace, c, use, ret, err);

	if (r < 0)
		return r;
	counts = workload_counts_text(ret);
	if (counts)
		log_warn("%s: %s", o->trace, counts);
	return workload_speeds(ret, o->speeds, err);
}

static json_t *counts_json(const struct sched_workload *w, bool left_out)
{
	json_t *j = json_object();

	for (size_t i = 0; i < w->n_counts; i++)
		if (w->counts[i].left_out == left_out)
			json_add_integer(j, w->counts[i].what, w->counts[i].n);
	return j;
}

json_t *input_describe(json_t *j, const struct sched_workload *w,
		       const struct cluster *c)
{
	json_object_set_new(j, "trace",
			    json_pack("{s:s,s:I,s:o,s:o}", "format", w->format,
				      "jobs", (json_int_t)w->n, "left_out",
				      counts_json(w, true), "assumed",
				      counts_json(w, false)));
	if (c)
		json_object_set_new(
			j, "cluster",
			json_pack("{s:I,s:f,s:f,s:f}", "nodes",
				  (json_int_t)c->n, "gpus",
				  (double)c->whole.gpu_milli / GPU_MILLI,
				  "cpus", (double)c->whole.cpu_milli / 1e3,
				  "memory_mib", (double)c->whole.memory_mib));
	return j;
}

static int check_policy(void *ctx, const char *choice, struct err *err)
{
	(void)ctx;
	return plugin_choice_check(schedule_table, "policy", &choice, err);
}

static int check_placement(void *ctx, const char *choice, struct err *err)
{
	(void)ctx;
	return plugin_choice_check(placement_table, "placement", &choice, err);
}

int input_check_policies(const void *object, struct err *err)
{
	return plugin_choice_each(schedule_table, *(char *const *)object,
				  check_policy, NULL, err);
}

int input_check_placements(const void *object, struct err *err)
{
	return plugin_choice_each(placement_table, *(char *const *)object,
				  check_placement, NULL, err);
}

int input_check_chart(const void *object, struct err *err)
{
	return gnuplot_check(*(char *const *)object, err);
}

int input_percentages(const char *text, size_t most, double *ret,
		      struct err *err)
{
	_cleanup_free_ char *copy = strdup(text);
	char *rest = copy, *word;
	size_t n = 0;

	if (!copy)
		return -ENOMEM;
	while ((word = strsep(&rest, ","))) {
		size_t length = strlen(word);

		if (length && word[length - 1] == '%')
			word[length - 1] = 0;
		if (n == most || units_parse_double(word, &ret[n]) < 0 ||
		    ret[n] < 0 || ret[n] > 1000)
			return err_set(err, -EINVAL,
				       "'%s' is not one of up to %zu "
				       "percentages",
				       word, most);
		ret[n++] /= 100;
	}
	return (int)n;
}

/* --- from options to a simulation ----------------------------------------- */

int driver_cell(struct sched_sim_cell *c, const char *policy,
		const char *placement, const char *clock, struct err *err)
{
	int r = plugin_choose(schedule_table, "policy", policy, &c->policy,
			      err);
	bool places;

	if (r == 0)
		r = plugin_choose(placement_table, "placement", placement,
				  &c->placement, err);
	if (r < 0)
		return r;
	places = container_of(c->policy.plugin, struct schedule_ops, plugin)
			 ->places;
	return asprintf(&c->name, "%s%s%s%s", policy, places ? "" : " ",
			places ? "" : placement, clock) < 0
		       ? -ENOMEM
		       : places;
}

/* Of the words of --by. -EINVAL with a text. */
static int settle_by(struct chart_options *o, struct err *err)
{
	static const char *const words[] = {
		[REPORT_USERS] = "user", [REPORT_CLASSES] = "class"
	};
	_cleanup_free_ char *copy = strdup(o->by ? o->by : "");
	char *rest = o->by ? copy : NULL, *word;

	if (!copy)
		return -ENOMEM;
	while ((word = strsep(&rest, ","))) {
		int i = WORD_FIND(words, "--by", word, err);

		if (i < 0)
			return i;
		o->by_table[i] = true;
	}
	return 0;
}

int driver_settle(void *options, struct err *err)
{
	struct driver_options *o = options;
	int r = settle_by(&o->charts, err);

	return r < 0 ? r : progress_parse(o->progress, &o->progress_mode, err);
}

int driver_command(const struct driver *d, void *options, int argc, char **argv)
{
	struct driver_options *o = options;
	struct cluster c = { 0 };
	struct sched_workload w = { 0 };
	struct err err = { 0 };
	int r;

	o->progress = strdup("auto");
	cli_parse(d->program, argc, argv, options, NULL);
	r = check_input(&o->input, &err);
	if (r == 0 && d->check)
		r = d->check(options, &err);
	if (r < 0) {
		log_error("%s", err.text);
		r = EXIT_STATUS_USAGE;
	} else {
		r = read_cluster(&o->input, &c, &err);
		if (r == 0)
			r = input_workload(&o->input, &c, d->use, &w, &err);
		if (r == 0)
			r = d->run(options, &c, &w, &err);
		r = r < 0 ? cli_fail(r, &err) : EXIT_STATUS_DONE;
	}
	workload_fini(&w);
	cluster_fini(&c);
	conf_free(d->program->fields, options);
	return r;
}

struct sched_sim driver_sim(const struct driver_options *d,
			    const struct cluster *c,
			    const struct sched_workload *w)
{
	return (struct sched_sim){ .cluster = c,
				   .workload = w,
				   .seed = d->common.seed,
				   .round_ns = d->round_ns,
				   .keep_history = d->charts.gantt ||
						   d->charts.timeline };
}

/* Can what is asked for be drawn, of all cells? -EINVAL with a text. */
static int check_charts(const struct chart_options *o,
			const struct sched_sim *sim, struct err *err)
{
	if (o->plot && !sim->cluster->whole.gpu_milli)
		return err_set(err, -EINVAL,
			       "%s: the cluster has no GPUs to plot", o->plot);
	return o->gantt ? gantt_check(o->gantt, sim->workload, sim->cluster,
				      sim->n_cells, err)
			: 0;
}

int driver_check(const struct driver_options *d, const struct sched_sim *sim,
		 struct err *err)
{
	struct err note = { 0 };
	int r = sim_check(sim->workload, sim->cluster, err);

	if (r == 0)
		r = check_charts(&d->charts, sim, err);
	if (r == 0 && sim_cpus_idle(sim->workload, sim->cluster, &note))
		log_warn("%s", note.text);
	return r;
}

void driver_tables(const struct chart_options *o, const struct sched_sim *sim,
		   const char *kind)
{
	report_table(sim, kind);
	for (int i = REPORT_USERS; i <= REPORT_CLASSES; i++)
		if (o->by_table[i])
			report_groups(sim, (enum report_by)i);
}

int driver_draw(const struct chart_options *o, const struct sched_sim *sim,
		struct err *err)
{
	_cleanup_free_ struct history_named *v =
		calloc(sim->n_cells + 1, sizeof(*v));
	size_t n = 0;
	int r = 0;

	if (!v)
		return -ENOMEM;
	for (size_t i = 0; i < sim->n_cells; i++)
		if (sim->cells[i].done)
			v[n++] = (struct history_named){
				sim->cells[i].name, &sim->cells[i].history
			};
	if (o->plot)
		r = plot_draw(sim, o->plot, err);
	if (r == 0 && o->timeline)
		r = perfetto_write(o->timeline, sim->workload, sim->cluster, v,
				   n, err);
	if (r == 0 && o->gantt)
		r = gantt_draw(o->gantt, sim->workload, sim->cluster, v, n,
			       err);
	return r;
}

int input_record(json_t *j, const struct conf_field *fields,
		 const void *options, const struct cli_common *common,
		 struct err *err)
{
	json_auto_t *record = j;

	if (!record)
		return err_set(err, -ENOMEM, "out of memory");
	json_object_set_new(record, "gpemu", json_version());
	if (!json_object_get(record, "kind"))
		json_add_text(record, "kind", "SIMULATED");
	json_object_set_new(record, "config", conf_json(fields, options));
	json_add_integer(record, "seed", common->seed);
	return json_write(record, common->json, err);
}

/* SPDX-License-Identifier: MIT */
/*
 * gpemu-cachesim: from the command line to tables, records and plots.
 *
 * Rooms, in the order in which a request meets them:
 *
 *	emu/profile	the files of a dataset profile; or
 *	fs/source	those of a folder; or a trace: cachesim_trace.c,
 *			cachesim_mount.c
 *	fs/server	how a file is cut into objects
 *	cachesim	requests in memory; a thread replays a cell
 *	fs/cache	the cache and its policies, as gpemu-fs has them
 */
#include "cachesim/cachesim.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "common/conf/plugin_choice.h"
#include "common/program/cli.h"
#include "common/json.h"
#include "common/log.h"
#include "common/util.h"
#include "common/version.h"
#include "emu/profile/profile.h"

struct options {
	struct cli_common common;
	char *dataset, *dir, *trace, *trace_format;
	char *order, *policies, *sizes, *plot;
	uint64_t files, epochs, warmup, jobs;
	bool per_epoch, metadata;
};

enum { DEFAULT_EPOCHS = 5, DEFAULT_WARMUP = 2 };

static const struct conf_field fields[] = {
	{ "dataset", CONF_STRING, offsetof(struct options, dataset),
	  .arg = "NAME|FILE", .help = "epochs over a dataset profile's files" },
	{ "files", CONF_UINT, offsetof(struct options, files), .arg = "N",
	  .max = UINT32_MAX,
	  .help = "number of files, with its size distribution (default: 0, "
		  "as many as it has)" },
	{ "dir", CONF_STRING, offsetof(struct options, dir), .arg = "DIR",
	  .help = "epochs over the files of a directory" },
	{ "trace", CONF_STRING, offsetof(struct options, trace), .arg = "FILE",
	  .help = "requests from a file, such as that of gpemu-fs --trace" },
	{ "trace_format", CONF_STRING, offsetof(struct options, trace_format),
	  .arg = "csv|bin",
	  .help = "time,id,size or libCacheSim's oracleGeneral (default: by "
		  "the file suffix)" },
	{ "order", CONF_STRING, offsetof(struct options, order), .arg = "ORDER",
	  .help = "sampler: shuffle (as gpemu-train; default), sequential, "
		  "replacement" },
	{ "epochs", CONF_UINT, offsetof(struct options, epochs),
	  .short_opt = 'e', .arg = "N", .max = 1e6,
	  .help = "passes over the requests (default: 0, that is 5, for a "
		  "trace 1)" },
	{ "warmup", CONF_UINT, offsetof(struct options, warmup), .arg = "N",
	  .max = 1e6,
	  .help = "exclude the first N epochs from the mean (default: 2), at "
		  "most all but the last" },
	{ "policies", CONF_STRING, offsetof(struct options, policies),
	  .short_opt = 'p', .arg = "NAME,...|all",
	  .help = "cache policies (default: all)" },
	{ "sizes", CONF_STRING, offsetof(struct options, sizes),
	  .short_opt = 'c', .arg = "SIZE|P%,...",
	  .help = "capacities, in bytes or percent of all bytes (default: "
		  "10%,20%,35%,50%,65%,80%)" },
	{ "metadata", CONF_BOOL, offsetof(struct options, metadata),
	  .help = "the capacity includes the metadata of each object, as "
		  "with gpemu-fs --cache-metadata on" },
	{ "jobs", CONF_UINT, offsetof(struct options, jobs), .short_opt = 'j',
	  .arg = "N", .min = 1, .max = 4096,
	  .help = "threads (default: one per processor)" },
	{ "per_epoch", CONF_BOOL, offsetof(struct options, per_epoch),
	  .help = "print one line per epoch instead of the mean" },
	{ "plot", CONF_STRING, offsetof(struct options, plot),
	  .arg = "FILE.svg|FILE.png", .cli_only = true,
	  .help = "plot hit ratio against cache size (needs gnuplot)" },
	CLI_COMMON_FIELDS(struct options, common),
	{ 0 },
};

static const struct cli_kind kinds[] = {
	{ "policy", .table = policy_table },
	{ "dataset", .print = profile_names_print, .which = PROFILE_DATASET },
	{ 0 },
};

static const struct cli_program program = {
	.name = "gpemu-cachesim",
	.summary = "Replay requests through gpemu-fs's cache policies without "
		   "I/O: hit ratios for many policies and sizes at once.",
	.notes = "One of --dataset, --dir and --trace is required. --list "
		 "policy or dataset lists the names.",
	.fields = fields,
	.kinds = kinds,
};

/* --- the cells: every policy at every size -------------------------------- */

struct selected_policy {
	struct plugin_choice choice;
	char *text;
};

struct selection {
	struct selected_policy *policies;
	size_t n_policies;
	struct units_capacity *sizes;
	size_t n_sizes;
};

static void selection_fini(struct selection *s)
{
	for (size_t p = 0; p < s->n_policies; p++) {
		plugin_choice_fini(&s->policies[p].choice);
		free(s->policies[p].text);
	}
	free(s->policies);
	free(s->sizes);
}

static const struct policy_ops *ops_of(const struct selected_policy *p)
{
	return container_of(p->choice.plugin, const struct policy_ops, plugin);
}

static int add_policy(struct selection *s, const char *text, struct err *err)
{
	struct selected_policy *v =
		reallocarray(s->policies, s->n_policies + 1, sizeof(*v));
	struct selected_policy *p;
	int r;

	if (!v)
		return -ENOMEM;
	s->policies = v;
	p = &v[s->n_policies++];
	p->text = NULL;
	r = plugin_choose(policy_table, "cache policy", text, &p->choice, err);
	if (r < 0)
		return r;
	p->text = plugin_choice_text(p->choice.plugin, p->choice.options);
	return p->text ? 0 : -ENOMEM;
}

static int select_policies(struct selection *s, const char *list,
			   struct err *err)
{
	int r = 0;

	if (!strcmp(list, "all")) {
		for (size_t p = 0; r == 0 && policy_table[p]; p++)
			r = add_policy(s, policy_table[p]->name, err);
		return r;
	}
	for (;;) {
		size_t n = plugin_choice_length(list);
		_cleanup_free_ char *one = strndup(list, n);

		r = one ? add_policy(s, one, err) : -ENOMEM;
		if (r < 0 || !list[n])
			return r;
		list += n + 1;
	}
}

static int select_sizes(struct selection *s, const char *list, struct err *err)
{
	_cleanup_free_ char *copy = strdup(list);
	char *rest = copy, *word;

	if (!copy)
		return -ENOMEM;
	while ((word = strsep(&rest, ","))) {
		struct units_capacity *v =
			reallocarray(s->sizes, s->n_sizes + 1, sizeof(*v));
		int r;

		if (!v)
			return -ENOMEM;
		s->sizes = v;
		r = units_parse_capacity(word, &v[s->n_sizes]);
		if (r < 0)
			return err_set(
				err, r,
				"'%s' is not a cache size such as 35%% or 8G",
				word);
		s->n_sizes++;
	}
	return 0;
}

static int make_cells(const struct selection *s, struct sim_run *run)
{
	run->cells = calloc(s->n_policies * s->n_sizes, sizeof(*run->cells));
	if (!run->cells)
		return -ENOMEM;
	for (size_t p = 0; p < s->n_policies; p++)
		for (size_t i = 0; i < s->n_sizes; i++)
			run->cells[run->n_cells++] = (struct sim_cell){
				.ops = ops_of(&s->policies[p]),
				.options = s->policies[p].choice.options,
				.policy = s->policies[p].text,
				.size = s->sizes[i],
				.capacity_bytes = units_capacity_bytes(
					&s->sizes[i], run->trace->total_bytes)
			};
	return 0;
}

static bool needs_future(const struct selection *s)
{
	for (size_t p = 0; p < s->n_policies; p++)
		if (ops_of(&s->policies[p])->offline)
			return true;
	return false;
}

/* --- from options to results ---------------------------------------------- */

static int load(const struct options *o, struct sim_trace *t, struct err *err)
{
	struct sim_dataset d = { 0 };
	uint64_t epochs = o->epochs ? o->epochs : o->trace ? 1 : DEFAULT_EPOCHS;
	int r;

	if (o->trace)
		return sim_trace_load(o->trace, o->trace_format, epochs, t,
				      err);
	r = o->dir ? sim_dataset_dir(o->dir, t, &d, err)
		   : sim_dataset_profile(o->dataset, o->files, o->common.seed,
					 t, &d, err);
	if (r == 0)
		r = sim_dataset_epochs(&d, o->order, epochs, o->common.seed,
				       err);
	sim_dataset_fini(&d);
	return r;
}

static int write_record(const struct options *o, const struct sim_run *run,
			struct err *err)
{
	json_auto_t *j = sim_json(run);

	if (!j)
		return err_set(err, -ENOMEM, "out of memory");
	json_object_set_new(j, "gpemu",
			    json_pack("{s:s,s:s}", "version", GPEMU_RELEASE,
				      "git", GPEMU_VERSION));
	json_object_set_new(j, "kind", json_string("SIMULATED"));
	json_object_set_new(j, "config", conf_json(fields, o));
	json_object_set_new(j, "seed",
			    json_integer((json_int_t)o->common.seed));
	return json_write(j, o->common.json, err);
}

static int report(const struct options *o, const struct sim_run *run,
		  struct err *err)
{
	int r = 0;

	if (!o->common.json || strcmp(o->common.json, "-"))
		sim_print_table(run, o->per_epoch);
	if (run->trace->n_resized)
		log_warn("%" PRIu64
			 " requests differ in size from the first one of their "
			 "object; the first size is used",
			 run->trace->n_resized);
	if (run->trace->n_lost)
		log_warn("%" PRIu64 " accesses are missing in the trace: the "
			 "hits are not those of the mount",
			 run->trace->n_lost);
	if (o->common.json)
		r = write_record(o, run, err);
	if (r == 0 && o->plot)
		r = sim_plot(run, o->plot, err);
	return r;
}

static int simulate(const struct options *o, const struct selection *s,
		    struct err *err)
{
	struct sim_trace t = { 0 };
	struct sim_run run = { .trace = &t,
			       .seed = o->common.seed,
			       .count_metadata = o->metadata };
	int r = load(o, &t, err);

	if (r == 0 && needs_future(s))
		r = sim_trace_look_ahead(&t);
	if (r == 0) {
		run.warmup = MIN(o->warmup, t.n_epochs - 1);
		r = make_cells(s, &run);
	}
	if (r == 0)
		r = sim_replay(&run, (unsigned)o->jobs, err);
	if (r == 0)
		r = report(o, &run, err);
	for (size_t i = 0; i < run.n_cells; i++)
		free(run.cells[i].epochs);
	free(run.cells);
	sim_trace_fini(&t);
	return r < 0 ? err_set(err, r, "%s", strerror(-r)) : 0;
}

static int usage(const struct options *o, struct selection *s, struct err *err)
{
	int sources = !!o->dataset + !!o->dir + !!o->trace;
	int r;

	if (sources != 1)
		return err_set(err, -EINVAL,
			       "give one of --dataset, --dir and --trace "
			       "(try --help)");
	if (o->trace_format && !o->trace)
		return err_set(err, -EINVAL,
			       "--trace-format goes with --trace");
	if (o->files && !o->dataset)
		return err_set(err, -EINVAL, "--files goes with --dataset");
	r = o->plot ? sim_plot_check(o->plot, err) : 0;
	if (r == 0)
		r = select_policies(s, o->policies, err);
	return r == 0 ? select_sizes(s, o->sizes, err) : r;
}

int main(int argc, char **argv)
{
	struct options o = { .warmup = DEFAULT_WARMUP,
			     .jobs = (uint64_t)sysconf(_SC_NPROCESSORS_ONLN) };
	struct selection s = { 0 };
	struct err err = { 0 };
	int r;

	o.order = strdup("shuffle");
	o.policies = strdup("all");
	o.sizes = strdup("10%,20%,35%,50%,65%,80%");
	cli_parse(&program, argc, argv, &o, NULL);
	r = usage(&o, &s, &err);
	if (r < 0) {
		log_error("%s", err.text);
		r = EXIT_STATUS_USAGE;
	} else {
		r = simulate(&o, &s, &err);
		r = r < 0 ? cli_fail(r, &err) : EXIT_STATUS_DONE;
	}
	selection_fini(&s);
	conf_free(fields, &o);
	return r;
}

/* SPDX-License-Identifier: MIT */
/*
 * gpemu-cachesim: from the command line to tables, records and plots.
 *
 * Rooms, in the order in which a request meets them:
 *
 *	emu/profile	the files of a dataset profile; or
 *	fs/source	those of a folder; or a trace: input.c, layout_*.c
 *	fs/server	how a file is cut into objects
 *	cachesim	requests in memory; a thread replays a cell
 *	fs/cache	the cache and its policies, as gpemu-fs has them
 */
#include "cachesim/layout.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "common/program/cli.h"
#include "common/program/gnuplot.h"
#include "common/json.h"
#include "common/log.h"
#include "common/util.h"
#include "emu/profile/profile.h"
#include "fs/config/fs_config.h"

struct options {
	struct cli_common common;
	char *dataset, *dir, *trace, *trace_format;
	char *order, *importance, *policies, *sizes, *plot;
	struct conf_list tiers; /* of char * */
	char *admit;
	uint64_t files, epochs, warmup, jobs;
	bool per_epoch, metadata;
};

enum { DEFAULT_EPOCHS = 5, DEFAULT_WARMUP = 2 };

static int check_tier(const void *object, struct err *err)
{
	struct tiers t = { 0 };
	int r = tiers_parse(*(char *const *)object, true, profile_check_storage,
			    &t, err);

	tiers_fini(&t);
	return r;
}

static int check_policies(const void *object, struct err *err)
{
	struct tiers t = { .n = 1 };
	int r = tier_add_policies(&t.v[0], *(char *const *)object, err);

	tiers_fini(&t);
	return r;
}

static const struct conf_field fields[] = {
	{ CONF_KEY(dataset, CONF_STRING, struct options), .arg = "NAME|FILE",
	  .help = "epochs over a dataset profile's files" },
	{ CONF_KEY(files, CONF_UINT, struct options), .arg = "N",
	  .max = UINT32_MAX,
	  .help = "number of files, drawn from its size distribution (default: "
		  "0, as many as the profile has)" },
	{ CONF_KEY(dir, CONF_STRING, struct options), .arg = "DIR",
	  .help = "epochs over the files of a directory" },
	{ CONF_KEY(trace, CONF_STRING, struct options),
	  .arg = "FILE[:LAYOUT][:OPTIONS]",
	  .help = "a trace of requests, such as of gpemu-fs --trace; zstd is "
		  "decompressed, - is standard input; --list layout prints the "
		  "layouts, --list layout:csv the options, KEY=VALUE,..." },
	{ CONF_KEY(trace_format, CONF_STRING, struct options),
	  .arg = "LAYOUT[:KEY=VALUE,...]",
	  .help = "the layout apart from the file (default: by its first "
		  "bytes, or by its name)" },
	{ CONF_KEY(order, CONF_STRING, struct options), .arg = "ORDER",
	  .help = "sampler: shuffle (as gpemu-train; default), sequential, "
		  "replacement" },
	{ CONF_KEY(importance, CONF_STRING, struct options), .arg = "FILE",
	  .help = "how much each file matters, one number a line, in the order "
		  "of the files, for policies that use it; replacement draws "
		  "in proportion to it" },
	{ CONF_KEY(epochs, CONF_UINT, struct options), .short_opt = 'e',
	  .arg = "N", .max = 1e6,
	  .help = "passes over the requests (default: 0: 5, or 1 for a "
		  "trace)" },
	{ CONF_KEY(warmup, CONF_UINT, struct options), .arg = "N", .max = 1e6,
	  .help = "exclude the first N epochs from the mean (default: 2), at "
		  "most all but the last" },
	{ CONF_KEY(policies, CONF_STRING, struct options), .short_opt = 'p',
	  .check = check_policies, .arg = "NAME,...|all",
	  .help = "cache policies (default: all)" },
	{ CONF_KEY(sizes, CONF_STRING, struct options), .short_opt = 'c',
	  .arg = "SIZE|P%,...",
	  .help = "capacities, in bytes or percent of all bytes (default: "
		  "10%,20%,35%,50%,65%,80%)" },
	{ "tier", CONF_LIST, offsetof(struct options, tiers),
	  .item = CONF_STRING, .item_size = sizeof(char *), .lone = true,
	  .check = check_tier, .arg = "[STORAGE:]POLICY:SIZE",
	  .help = "instead of -p and -c: the next cache tier, such as "
		  "nvme:lru:50%; POLICY and SIZE may be lists" },
	{ "tier_admit", CONF_STRING, offsetof(struct options, admit),
	  .check = fs_config_check_admit, .arg = "every|first",
	  .help = "which tiers may admit a missed object: every tier, or only "
		  "the first that does (default: every)" },
	{ CONF_KEY(metadata, CONF_BOOL, struct options),
	  .help = "the capacity includes the metadata of each object, as "
		  "with gpemu-fs --cache-metadata on" },
	{ CONF_KEY(jobs, CONF_UINT, struct options), .short_opt = 'j',
	  .arg = "N", .min = 1, .max = 4096,
	  .help = "threads (default: one per processor)" },
	{ CONF_KEY(per_epoch, CONF_BOOL, struct options),
	  .help = "print one line per epoch instead of the mean" },
	{ CONF_KEY(plot, CONF_STRING, struct options),
	  .arg = "FILE.svg|FILE.png|FILE.pdf", .cli_only = true,
	  .help = "plot hit ratio against cache size (needs gnuplot)" },
	CLI_COMMON_FIELDS(struct options, common),
	{ 0 },
};

static const struct cli_kind kinds[] = {
	{ "policy", .table = policy_table },
	{ "layout", .table = layout_table },
	{ "dataset", .print = profile_names_print, .which = PROFILE_DATASET },
	{ 0 },
};

static int settle_options(void *options, struct err *err)
{
	struct options *o = options;

	if (o->tiers.n && (o->policies || o->sizes))
		return err_set(err, -EINVAL,
			       "--tier replaces --policies and --sizes: leave "
			       "those out");
	if (o->tiers.n)
		return 0;
	if (!o->policies)
		o->policies = strdup("all");
	if (!o->sizes)
		o->sizes = strdup("10%,20%,35%,50%,65%,80%");
	return o->policies && o->sizes ? 0 : -ENOMEM;
}

static const struct cli_program program = {
	.name = "gpemu-cachesim",
	.summary = "Replay requests through gpemu-fs's cache policies without "
		   "I/O: hit ratios for many policies and sizes at once.",
	.notes = "One of --dataset, --dir and --trace is required. --list "
		 "policy, layout or dataset lists the names.",
	.fields = fields,
	.kinds = kinds,
	.settle = settle_options,
};

/* --- the cells: every policy at every size -------------------------------- */

static int make_tiers(const struct options *o, struct tiers *t, struct err *err)
{
	int r = 0;

	if (!o->tiers.n) {
		t->n = 1;
		r = tier_add_policies(&t->v[0], o->policies, err);
		return r == 0 ? tier_add_sizes(&t->v[0], o->sizes, err) : r;
	}
	for (size_t i = 0; r == 0 && i < o->tiers.n; i++)
		r = tiers_parse(((char **)o->tiers.items)[i], true,
				profile_check_storage, t, err);
	return r;
}

/* Of a dataset's files; the objects of a trace may have any size. */
static int check_sizes(const struct tiers *t, struct err *err)
{
	int r = 0;

	for (size_t k = 0; k < t->n; k++)
		for (size_t i = 0; r == 0 && i < t->v[k].n_sizes; i++)
			r = tier_check_size(&t->v[k].sizes[i], err);
	return r;
}

/* The `at`-th of a tier's caches, by policy and then by size. */
static struct sim_tier tier_at(const struct tier *t, size_t at, uint64_t bytes)
{
	const struct tier_policy *policy = &t->policies[at / t->n_sizes];
	const struct units_capacity *size = &t->sizes[at % t->n_sizes];

	return (struct sim_tier){
		.storage = tier_storage(t),
		.ops = tier_policy_ops(policy),
		.options = policy->choice.options,
		.policy = policy->text,
		.size = *size,
		.capacity_bytes = units_capacity_bytes(size, bytes),
	};
}

/* One for each combination, the last tier fastest. */
static int make_cells(const struct tiers *t, struct sim_run *run,
		      struct err *err)
{
	size_t n = 1;

	for (size_t k = 0; k < t->n; k++)
		if (__builtin_mul_overflow(
			    n, t->v[k].n_policies * t->v[k].n_sizes, &n))
			return err_set(
				err, -E2BIG,
				"too many combinations of policies and sizes");
	run->cells = calloc(n, sizeof(*run->cells));
	if (!run->cells)
		return -ENOMEM;
	for (run->n_cells = 0; run->n_cells < n; run->n_cells++) {
		struct sim_cell *c = &run->cells[run->n_cells];
		size_t at = run->n_cells;

		c->n_tiers = t->n;
		for (size_t k = t->n; k-- > 0;) {
			size_t of = t->v[k].n_policies * t->v[k].n_sizes;

			c->tiers[k] = tier_at(&t->v[k], at % of,
					      run->trace->total_bytes);
			at /= of;
		}
	}
	return 0;
}

static bool needs_future(const struct tiers *t)
{
	for (size_t k = 0; k < t->n; k++)
		for (size_t p = 0; p < t->v[k].n_policies; p++)
			if (tier_policy_ops(&t->v[k].policies[p])->offline)
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
	if (r == 0 && o->importance)
		r = sim_dataset_weigh(&d, o->importance, err);
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
	json_object_set_new(j, "gpemu", json_version());
	json_add_text(j, "kind", "SIMULATED");
	json_object_set_new(j, "config", conf_json(fields, o));
	json_add_integer(j, "seed", o->common.seed);
	return json_write(j, o->common.json, err);
}

static int report(const struct options *o, const struct sim_run *run,
		  struct err *err)
{
	int r = 0;

	if (!o->common.json || strcmp(o->common.json, "-")) {
		sim_print_table(run, o->per_epoch);
		if (run->trace->read.path)
			sim_print_read(&run->trace->read);
	}
	if (run->trace->n_resized)
		log_warn("%" PRIu64
			 " requests differ in size from the first one of their "
			 "object; the first size is used",
			 run->trace->n_resized);
	if (run->trace->n_lost)
		log_warn("the trace lacks %" PRIu64
			 " accesses: the hits differ from those of the mount",
			 run->trace->n_lost);
	if (o->common.json)
		r = write_record(o, run, err);
	if (r == 0 && o->plot)
		r = sim_plot(run, o->plot, err);
	return r;
}

static int simulate(const struct options *o, const struct tiers *tiers,
		    struct err *err)
{
	struct sim_trace t = { 0 };
	struct sim_run run = { .trace = &t,
			       .seed = o->common.seed,
			       .count_metadata = o->metadata };
	int r = load(o, &t, err);

	tier_admit_parse(o->admit, &run.admit, NULL);
	if (r == 0 && needs_future(tiers))
		r = sim_trace_look_ahead(&t);
	if (r == 0) {
		run.warmup = MIN(o->warmup, t.n_epochs - 1);
		r = make_cells(tiers, &run, err);
	}
	if (r == 0)
		r = sim_replay(&run, (unsigned)o->jobs, err);
	if (r == 0)
		r = report(o, &run, err);
	sim_run_fini(&run);
	sim_trace_fini(&t);
	return r < 0 ? err_set(err, r, "%s", strerror(-r)) : 0;
}

static int usage(const struct options *o, struct tiers *tiers, struct err *err)
{
	int sources = !!o->dataset + !!o->dir + !!o->trace;
	int r;

	if (sources != 1)
		return err_set(err, -EINVAL,
			       "give one of --dataset, --dir and --trace "
			       "(try --help)");
	if (o->trace_format && !o->trace)
		return err_set(err, -EINVAL, "--trace-format needs --trace");
	if (o->importance && o->trace)
		return err_set(err, -EINVAL,
			       "--importance needs --dataset or --dir");
	if (o->files && !o->dataset)
		return err_set(err, -EINVAL, "--files needs --dataset");
	r = o->plot ? gnuplot_check(o->plot, err) : 0;
	if (r == 0)
		r = make_tiers(o, tiers, err);
	if (r == 0 && !o->trace)
		r = check_sizes(tiers, err);
	if (r == 0 && o->plot && tiers->n > 1)
		r = err_set(
			err, -EINVAL,
			"--plot shows the sizes of one tier, but there are %zu",
			tiers->n);
	return r;
}

int main(int argc, char **argv)
{
	struct options o = { .warmup = DEFAULT_WARMUP,
			     .jobs = (uint64_t)sysconf(_SC_NPROCESSORS_ONLN) };
	struct tiers tiers = { 0 };
	struct err err = { 0 };
	int r;

	o.order = strdup("shuffle");
	o.admit = strdup("every");
	cli_parse(&program, argc, argv, &o, NULL);
	r = usage(&o, &tiers, &err);
	if (r < 0) {
		log_error("%s", err.text);
		r = EXIT_STATUS_USAGE;
	} else {
		r = simulate(&o, &tiers, &err);
		r = r < 0 ? cli_fail(r, &err) : EXIT_STATUS_DONE;
	}
	tiers_fini(&tiers);
	conf_free(fields, &o);
	return r;
}

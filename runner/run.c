/* SPDX-License-Identifier: MIT */
/*
 * gpemu-run: an experiment from its workload file to records, table, plots.
 *
 * Rooms, in the order in which a workload meets them (docs/architecture.md):
 *
 *	runner/spec	the file: axes, points, expressions, metrics
 *	runner		experiments, suites of them, searches
 *	runner/run	runs cells: starts, watches and records programs
 *	runner/result	aggregates records, checks expectations
 *	runner/page	reports, plots, tables
 */
#include <errno.h>
#include <string.h>

#include "common/json.h"
#include "common/log.h"
#include "common/util.h"
#include "runner/run_check.h"
#include "runner/result/run_compare.h"
#include "runner/run_experiment.h"
#include "runner/run_find.h"
#include "runner/run_loop.h"
#include "runner/run_suite.h"

#define AT(member) offsetof(struct run_options, member)
static const struct conf_field fields[] = {
	CLI_COMMON_FIELDS(struct run_options, common),
	{ "output", CONF_STRING, AT(output), .short_opt = 'o', .arg = "DIR",
	  .help = "result folder (default results/NAME)" },
	{ "fresh", CONF_BOOL, AT(fresh),
	  .help = "run all cells, even those with a record" },
	{ "jobs", CONF_UINT, AT(jobs), .short_opt = 'j', .arg = "N", .min = 1,
	  .max = RUN_MAX_JOBS,
	  .help = "number of concurrent cells; the workload must say "
		  "independent (1)" },
	{ "dry_run", CONF_BOOL, AT(dry_run), .short_opt = 'n',
	  .help = "print the commands of all cells, and exit" },
	{ "repetitions", CONF_UINT, AT(repetitions), .short_opt = 'r',
	  .arg = "N", .max = 1000,
	  .help = "override the workload; 0: keep its value" },
	{ "time_scale", CONF_DOUBLE, AT(time_scale), .arg = "X", .max = 1000,
	  .help = "override the workload; 0: keep its value" },
	{ "no_mount", CONF_BOOL, AT(no_mount),
	  .help = "run on the plain folders, without gpemu-fs" },
	{ "data_dir", CONF_STRING, AT(data_dir), .arg = "DIR",
	  .help = "folder in which datasets are made and kept (default "
		  "$XDG_CACHE_HOME/gpemu, else ~/.cache/gpemu)" },
	{ "bin_dir", CONF_STRING, AT(bin_dir), .arg = "DIR",
	  .help = "folder of the other programs (default $GPEMU_BIN, else that "
		  "of gpemu-run)" },
	{ "metric", CONF_STRING, AT(metric), .arg = "NAME",
	  .help = "compare: only this metric" },
	{ "find_max_gpus", CONF_BOOL, AT(find_max_gpus),
	  .help = "at each point, search the largest number of GPUs that the "
		  "storage keeps at the utilisation of --au" },
	{ "au", CONF_DOUBLE, AT(au), .arg = "SHARE", .min = 0, .max = 1,
	  .help = "--find-max-gpus: minimum accelerator utilisation (0.9)" },
	{ "progress", CONF_STRING, AT(progress), .arg = "auto|on|off",
	  .help = "progress bar on stderr; off: one line per cell" },
	{ 0 },
};

/* --list: 0, keys of a workload; 1, of a file that lists workloads */
static int list_keys(int which, struct err *err)
{
	if (which) {
		suite_print_keys(stdout);
		return 0;
	}
	return workload_print_keys(stdout) < 0
		       ? err_set(err, -ENOMEM, "out of memory")
		       : 0;
}

static const struct cli_kind kinds[] = {
	{ .name = "keys", .print = list_keys, .which = 0 },
	{ .name = "list-keys", .print = list_keys, .which = 1 },
	{ 0 },
};

static const struct cli_program program = {
	.name = "gpemu-run",
	.args = "FILE.yaml | check FILE.yaml | compare A B",
	.n_args = 1,
	.n_optional = 2,
	.summary = "Run an experiment: repeat mounts and training runs over a "
		   "grid, store a record of each, check the expectations, and "
		   "write a table, plots and a report. For a list of "
		   "workloads, run each and write one page on all. check: "
		   "print what would run and the estimated time. compare: "
		   "print the differences between two result folders.",
	.notes = "Cells with a record do not run again, unless the workload, a "
		 "profile or a program has changed. --seed 0 keeps the seed of "
		 "the workload.",
	.fields = fields,
	.kinds = kinds,
};

/* gpemu-run compare A B: no workload is needed, no program runs. */
static int compare(const struct run_options *o, char **args)
{
	json_auto_t *j = NULL;
	struct err err = { 0 };
	int code;

	if (!args[1] || !args[2]) {
		log_error("compare takes two result folders");
		return EXIT_STATUS_USAGE;
	}
	code = compare_folders(args[1], args[2], o->metric, &j, &err);
	if (code == 0 && !o->quiet)
		compare_print(j, stdout);
	if (code == 0 && o->common.json)
		code = json_write(j, o->common.json, &err);
	return code < 0 ? cli_fail(code, &err) : EXIT_STATUS_DONE;
}

static int execute(struct experiment *e, const struct run_options *o,
		   bool *ret_failed, struct err *err)
{
	json_auto_t *summary = NULL;
	int code = (o->find_max_gpus ? find_run : experiment_run)(
		e, o, ret_failed, &summary, err);

	if (code == 0 && o->common.json)
		code = json_write(summary, o->common.json, err);
	return code;
}

/* Load and check, then run the command; returns the exit status. */
static int workload_main(const char *path, const struct run_options *o,
			 bool check, struct stop *ret_stop)
{
	struct experiment e;
	struct err err = { 0 };
	bool failed = false;
	int code = experiment_open(&e, path, o->output, o, &err), status;

	if (code == 0)
		code = check	    ? check_print(&e.r, stdout, &err)
		       : o->dry_run ? experiment_dry_run(&e)
				    : execute(&e, o, &failed, &err);
	if (e.r.stop.signal)
		log_error("stopped by %s; finished cells are kept",
			  strsignal(e.r.stop.signal));
	status = failed ? EXIT_STATUS_FAILED : EXIT_STATUS_DONE;
	if (code < 0 && !e.r.stop.signal)
		status = cli_fail(code, &err);
	*ret_stop = e.r.stop;
	experiment_close(&e);
	return status;
}

int main(int argc, char **argv)
{
	struct run_options o = { .au = .9, .jobs = 1 };
	struct stop stop = { .fd = -1 };
	struct err err = { 0 };
	char *args[3] = { 0 };
	bool check;
	int status;

	cli_parse(&program, argc, argv, &o, args);
	check = !strcmp(args[0], "check");
	o.quiet = o.common.json && !strcmp(o.common.json, "-");
	if (o.progress &&
	    progress_parse(o.progress, &o.progress_mode, &err) < 0) {
		log_error("--progress: %s", err.text);
		status = EXIT_STATUS_USAGE;
	} else if (!strcmp(args[0], "compare")) {
		status = compare(&o, args);
	} else if (check ? !args[1] || args[2] : args[1] != NULL) {
		log_error("expected one workload file; see --help");
		status = EXIT_STATUS_USAGE;
	} else if (suite_is(args[check]) && o.find_max_gpus) {
		log_error("--find-max-gpus takes one workload, not a list");
		status = EXIT_STATUS_USAGE;
	} else if (suite_is(args[check])) {
		status = suite_main(args[check], &o, check, &stop);
	} else {
		status = workload_main(args[check], &o, check, &stop);
	}
	conf_free(fields, &o);
	stop_raise(&stop);
	return status;
}

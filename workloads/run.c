/* SPDX-License-Identifier: MIT */
/* gpemu-run: an experiment from its workload file to records, table, plots. */
#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "common/cli.h"
#include "common/json.h"
#include "common/log.h"
#include "common/progress.h"
#include "common/tick.h"
#include "common/units.h"
#include "common/util.h"
#include "workloads/run_cell.h"
#include "workloads/run_check.h"
#include "workloads/run_compare.h"
#include "workloads/run_dataset.h"
#include "workloads/run_expect.h"
#include "workloads/run_loop.h"
#include "workloads/run_plot.h"
#include "workloads/run_profiles.h"
#include "workloads/run_report.h"

struct options {
	struct cli_common common;
	char *output;
	bool fresh, dry_run, no_mount;
	uint64_t repetitions; /* 0: as the workload says */
	double time_scale;    /* 0: as the workload says */
	char *data_dir, *bin_dir, *progress, *metric;
};

#define AT(member) offsetof(struct options, member)
static const struct conf_field fields[] = {
	CLI_COMMON_FIELDS(struct options, common),
	{ "output", CONF_STRING, AT(output), .short_opt = 'o', .arg = "DIR",
	  .help = "where the results go (default results/NAME)" },
	{ "fresh", CONF_BOOL, AT(fresh),
	  .help = "run all cells, also those that have a record" },
	{ "dry_run", CONF_BOOL, AT(dry_run), .short_opt = 'n',
	  .help = "print what would run, and exit" },
	{ "repetitions", CONF_UINT, AT(repetitions), .short_opt = 'r',
	  .arg = "N", .max = 1000,
	  .help = "instead of the workload's; 0: as it says" },
	{ "time_scale", CONF_DOUBLE, AT(time_scale), .arg = "X", .max = 1000,
	  .help = "instead of the workload's; 0: as it says" },
	{ "no_mount", CONF_BOOL, AT(no_mount),
	  .help = "run on the plain folder, without gpemu-fs" },
	{ "data_dir", CONF_STRING, AT(data_dir), .arg = "DIR",
	  .help = "where datasets are made and kept (default "
		  "$XDG_CACHE_HOME/gpemu, else ~/.cache/gpemu)" },
	{ "bin_dir", CONF_STRING, AT(bin_dir), .arg = "DIR",
	  .help = "where the other programs are (default $GPEMU_BIN, else "
		  "the folder of gpemu-run)" },
	{ "metric", CONF_STRING, AT(metric), .arg = "NAME",
	  .help = "compare: print this metric only" },
	{ "progress", CONF_STRING, AT(progress), .arg = "auto|on|off",
	  .help = "progress bar on stderr; off: a line a cell" },
	{ 0 },
};

static const struct cli_program program = {
	.name = "gpemu-run",
	.args = "WORKLOAD.yaml | check WORKLOAD.yaml | compare A B",
	.n_args = 1,
	.n_optional = 2,
	.summary = "Run an experiment: mounts and training runs over a grid, "
		   "repeated; keep a record of each, judge what was expected, "
		   "write a table, plots and a report. check: say what would "
		   "run and how long it takes. compare: what differs between "
		   "two result folders.",
	.notes = "Records that are there already are not run again, unless "
		 "the workload has changed for them. --seed 0 is the "
		 "workload's own seed.",
	.fields = fields,
};

/* --- steps ------------------------------------------------------------ */

static int load(const char *path, const struct options *o, struct workload *w,
		struct err *err)
{
	int code = workload_load(path, w, err);

	if (code < 0)
		return code;
	if (o->repetitions)
		w->repetitions = o->repetitions;
	if (o->time_scale > 0)
		w->time_scale = o->time_scale;
	if (o->common.seed)
		w->seed = o->common.seed;
	return 0;
}

/* Decide r->mounted, and say it when it is not as the workload means it. */
static int choose_mount(struct runner *r, struct err *err)
{
	struct err why = { 0 };
	int code;

	if (!r->mounted)
		return 0;
	code = cell_probe_mount(r, &why);
	if (code == -ENODEV) {
		log_warn("nothing can be mounted here (%s): the cells run on "
			 "the plain folder, without the emulated storage and "
			 "its cache",
			 why.text);
		r->mounted = false;
		return 0;
	}
	return code < 0 ? err_set(err, code, "%s", why.text) : 0;
}

static int dry_run(struct runner *r)
{
	size_t n = workload_n_cells(r->w);
	int code = 0;

	printf("%s: %zu points, %" PRIu64 " repetitions, %zu cells\n",
	       r->w->name, r->w->n_points, r->w->repetitions, n);
	for (size_t i = 0; code == 0 && i < n; i++) {
		struct cell cell;

		code = workload_cell(r->w, i, r->mounted, &cell);
		if (code < 0)
			break;
		code = cell_print(r, &cell, stdout);
		cell_free(&cell);
	}
	return code;
}

/* What cannot be drawn is said; without gnuplot there is still the table. */
static int draw_plots(struct runner *r, const struct result *res, bool quiet,
		      struct err *ret_err)
{
	const struct plot *plots = r->w->plots.items;
	int worst = 0;

	for (size_t i = 0; i < r->w->plots.n && !r->stop.signal; i++) {
		struct err err = { 0 };
		int code = plot_draw(res, &plots[i], r, &err);

		if (code == 0 && !quiet)
			printf("plot      %s/plots/%s.svg\n", r->out,
			       plots[i].name);
		if (code == 0)
			continue;
		if (code == -ENOENT || code == -ENODATA)
			log_warn("%s", err.text);
		else
			worst = err_set(ret_err, code, "%s", err.text);
	}
	return worst;
}

static int write_summary(const struct runner *r, const struct result *res,
			 const struct verdicts *v, const struct options *o,
			 struct err *err)
{
	json_auto_t *j = result_json(res);
	_cleanup_free_ char *path = NULL;
	int code;

	if (!j || json_object_set_new(j, "verdicts", verdicts_json(v)) < 0 ||
	    asprintf(&path, "%s/summary.json", r->out) < 0)
		return -ENOMEM;
	code = json_write(j, path, err);
	if (code == 0 && o->common.json)
		code = json_write(j, o->common.json, err);
	return code;
}

/* table.txt, and on stdout unless that is for the record alone. */
static int write_table(const struct runner *r, const struct result *res,
		       const struct verdicts *v, bool quiet, struct err *err)
{
	_cleanup_free_ char *path = NULL;
	_cleanup_fclose_ FILE *f = NULL;

	if (asprintf(&path, "%s/table.txt", r->out) < 0)
		return -ENOMEM;
	f = fopen(path, "we");
	if (!f)
		return err_set(err, -errno, "%s: %s", path, strerror(errno));
	for (int i = 0; i < (quiet ? 1 : 2); i++) {
		FILE *to = i ? stdout : f;

		result_print(res, to);
		if (v->n)
			fputc('\n', to);
		verdicts_print(v, to);
	}
	return 0;
}

static int write_csv(const struct runner *r, const struct result *res,
		     struct err *err)
{
	_cleanup_free_ char *path = NULL;
	FILE *f;

	if (asprintf(&path, "%s/results.csv", r->out) < 0)
		return -ENOMEM;
	f = fopen(path, "we");
	if (!f)
		return err_set(err, -errno, "%s: %s", path, strerror(errno));
	result_csv(res, f);
	return fclose(f) ? err_set(err, -errno, "%s: %s", path, strerror(errno))
			 : 0;
}

static int report(struct runner *r, const struct options *o, bool *ret_failed,
		  struct err *err)
{
	bool quiet = o->common.json && !strcmp(o->common.json, "-");
	struct verdicts v = { 0 };
	struct result res;
	int code = result_init(&res, r, err);

	if (code == 0)
		code = verdicts_init(&v, &res, err);
	if (code == 0)
		code = write_table(r, &res, &v, quiet, err);
	if (code == 0)
		code = write_summary(r, &res, &v, o, err);
	if (code == 0)
		code = write_csv(r, &res, err);
	if (code == 0 && !quiet)
		printf("\nrecords   %s/records/\n", r->out);
	if (code == 0)
		code = draw_plots(r, &res, quiet, err);
	if (code == 0)
		code = report_write(&res, &v, err);
	if (code == 0 && !quiet)
		printf("report    %s/report.html\n", r->out);
	*ret_failed = *ret_failed || v.n_failed;
	verdicts_fini(&v);
	result_fini(&res);
	return code;
}

static int prepare(struct workload *w, struct runner *r,
		   const struct options *o, struct err *err)
{
	json_auto_t *defaults = NULL;
	int code = workload_check(w, runner_check, r, err);

	if (code == 0)
		code = runner_defaults(r, &defaults, err);
	if (code == 0)
		code = profiles_collect(w, defaults, err);
	if (code == 0)
		code = dataset_init(r, o->data_dir, err);
	return code;
}

static int execute(struct runner *r, const struct options *o,
		   enum progress_mode mode, bool *ret_failed, struct err *err)
{
	struct tally tally = { 0 };
	int code = runner_open(r, err);

	if (code == 0)
		code = dataset_make(r, err);
	if (code == 0)
		code = choose_mount(r, err);
	if (code == 0)
		code = loop_run(r, o->fresh, mode, &tally);
	/* what was measured before an interruption is there for next time */
	if (code == 0)
		code = report(r, o, ret_failed, err);
	if (tally.n_failed && !r->stop.signal)
		log_error("%zu of %zu cells failed; logs are in %s/logs",
			  tally.n_failed, workload_n_cells(r->w), r->out);
	*ret_failed = *ret_failed || tally.n_failed;
	return code;
}

/* gpemu-run compare A B: no workload is needed, no program runs. */
static int compare(const struct options *o, char **args)
{
	bool quiet = o->common.json && !strcmp(o->common.json, "-");
	json_auto_t *j = NULL;
	struct err err = { 0 };
	int code;

	if (!args[1] || !args[2]) {
		log_error("compare takes two result folders");
		return EXIT_STATUS_USAGE;
	}
	code = compare_folders(args[1], args[2], &j, &err);
	if (code == 0 && !quiet)
		compare_print(j, o->metric, stdout);
	if (code == 0 && o->common.json)
		code = json_write(j, o->common.json, &err);
	return code < 0 ? cli_fail(code, &err) : EXIT_STATUS_DONE;
}

/* Load and check, then do what is asked; the exit status. */
static int workload_main(const char *path, const struct options *o, bool check,
			 struct stop *ret_stop)
{
	struct workload w = { 0 };
	struct runner r = { .lock_fd = -1, .stop.fd = -1 };
	enum progress_mode mode = PROGRESS_AUTO;
	struct err err = { 0 };
	bool failed = false;
	int code, status;

	if (o->progress && progress_parse(o->progress, &mode, &err) < 0) {
		log_error("--progress: %s", err.text);
		return EXIT_STATUS_USAGE;
	}
	code = load(path, o, &w, &err);
	if (code == 0)
		code = runner_init(&r, &w, o->bin_dir, o->output, &err);
	r.mounted = !o->no_mount;
	if (code == 0)
		code = prepare(&w, &r, o, &err);
	if (code == 0)
		code = check	    ? check_print(&r, stdout, &err)
		       : o->dry_run ? dry_run(&r)
				    : execute(&r, o, mode, &failed, &err);
	if (r.stop.signal)
		log_error("stopped by %s; what is done is kept",
			  strsignal(r.stop.signal));
	status = failed ? EXIT_STATUS_FAILED : EXIT_STATUS_DONE;
	if (code < 0 && !r.stop.signal)
		status = cli_fail(code, &err);
	*ret_stop = r.stop;
	runner_fini(&r);
	workload_free(&w);
	return status;
}

int main(int argc, char **argv)
{
	struct options o = { 0 };
	struct stop stop = { .fd = -1 };
	char *args[3] = { 0 };
	bool check;
	int status;

	cli_parse(&program, argc, argv, &o, args);
	check = !strcmp(args[0], "check");
	if (!strcmp(args[0], "compare")) {
		status = compare(&o, args);
	} else if (check ? !args[1] || args[2] : args[1] != NULL) {
		log_error("one workload is expected; see --help");
		status = EXIT_STATUS_USAGE;
	} else {
		status = workload_main(args[check], &o, check, &stop);
	}
	conf_free(fields, &o);
	stop_raise(&stop);
	return status;
}

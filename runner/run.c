/* SPDX-License-Identifier: MIT */
/*
 * gpemu-run: an experiment from its workload file to records, table, plots.
 *
 * Rooms, in the order in which a workload meets them (docs/architecture.md):
 *
 *	runner/tree	the file: what it extends, what is overridden
 *	runner/spec	the file, decoded: axes, points, metrics, checks
 *	runner		experiments, suites of them, searches, merges
 *	runner/run	result folder, locks, shards, processes
 *	runner/cell	runs one cell, and writes its record
 *	runner/result	aggregates records, judges checks, exports
 *	runner/page	reports, plots, tables
 *	runner/dlio	workloads of DLIO, to import
 */
#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <unistd.h>

#include "common/err.h"
#include "common/json.h"
#include "common/log.h"
#include "common/program/launcher.h"
#include "common/replace.h"
#include "common/text/wrap.h"
#include "common/units.h"
#include "common/util.h"
#include "common/word.h"
#include "emu/profile/profile.h"
#include "runner/cell/run_estimate.h"
#include "runner/cell/run_machine.h"
#include "runner/dlio/dlio.h"
#include "runner/cell/run_record.h"
#include "runner/page/run_page.h"
#include "runner/page/run_rules.h"
#include "runner/result/run_compare.h"
#include "runner/result/run_export.h"
#include "runner/result/run_study.h"
#include "runner/run/run_dataset.h"
#include "runner/run_experiment.h"
#include "runner/run_find.h"
#include "runner/run_loop.h"
#include "runner/run_slurm.h"
#include "runner/run_suite.h"
#include "runner/spec/run_evidence.h"

/* The workloads that come with gpemu, by name: `demo` is workloads/demo.yaml in
 * the source tree, or in {share}/gpemu. */

#define SUFFIX ".yaml"

/* Bytes of a name before ".yaml", if it ends so. */
static size_t stem(const char *name)
{
	size_t n = strlen(name), suffix = strlen(SUFFIX);

	return n > suffix && !strcmp(name + n - suffix, SUFFIX) ? n - suffix
								: n;
}

static int is_workload(const struct dirent *e)
{
	return e->d_name[stem(e->d_name)] != 0;
}

static int unknown(const char *name, const char *folder, struct err *err)
{
	struct word_list words = WORD_LIST(name, stem(name));
	struct dirent **v;
	int n = scandir(folder, &v, is_workload, alphasort);

	for (int i = 0; i < n; i++) {
		v[i]->d_name[stem(v[i]->d_name)] = 0;
		word_list_add(&words, v[i]->d_name);
		free(v[i]);
	}
	if (n >= 0)
		free(v);
	/* the name of a file, and like none of ours */
	if (name[stem(name)] && !*words.hint)
		return err_set(err, -ENOENT, "%s: %s", name, strerror(ENOENT));
	return err_set(err, -ENOENT,
		       "%s: neither a file nor a shipped workload%s (known: "
		       "%s)",
		       name, words.hint, words.known);
}

/*
 * The path of the workload that the user calls `name`: the file of that name;
 * else the shipped one, with or without ".yaml". *ret is malloc'ed. -ENOENT:
 * neither, with a text that names the nearest; -ENOMEM.
 */
static int shipped_find(const char *name, char **ret, struct err *err)
{
	_cleanup_free_ char *folder = NULL, *path = NULL;

	/* what is no bare name is reported where it is opened */
	if (strchr(name, '/') || access(name, F_OK) == 0 ||
	    profile_beside_executable("../workloads",
				      "../share/gpemu/workloads", &folder,
				      NULL) < 0)
		return (*ret = strdup(name)) ? 0 : -ENOMEM;
	path = util_text("%s/%.*s" SUFFIX, folder, (int)stem(name), name);
	if (!path)
		return -ENOMEM;
	if (access(path, F_OK) < 0)
		return unknown(name, folder, err);
	*ret = TAKE_PTR(path);
	return 0;
}

/* arbitrary: folders to merge, or keys to override */
enum { MOST_ARGS = 1000 };

#define OPTION(member, type) CONF_KEY(member, type, struct run_options)
static const struct conf_field fields[] = {
	CLI_COMMON_FIELDS(struct run_options, common),
	{ OPTION(output, CONF_STRING), .short_opt = 'o', .arg = "DIR",
	  .help = "result folder (default results/NAME)" },
	{ OPTION(fresh, CONF_BOOL),
	  .help = "run all cells, even those with a record" },
	{ OPTION(again, CONF_BOOL),
	  .help = "also run the cells that other load disturbed" },
	{ OPTION(jobs, CONF_UINT), .short_opt = 'j', .arg = "N", .min = 1,
	  .max = RUN_MAX_JOBS,
	  .help = "number of concurrent cells; the workload needs "
		  "'independent: true' (1)" },
	{ "shard", CONF_STRING, offsetof(struct run_options, shard_text),
	  .arg = "I/N",
	  .help = "run part I of N of the cells; 'merge' joins the parts" },
	{ OPTION(slurm, CONF_UINT), .arg = "N", .max = 100000,
	  .help = "submit to Slurm: an array of N shards, and a job that "
		  "merges them" },
	{ OPTION(slurm_options, CONF_STRING), .arg = "'WORDS'",
	  .help = "options of sbatch for --slurm, separated by spaces" },
	{ OPTION(dry_run, CONF_BOOL), .short_opt = 'n',
	  .help = "print the commands of all cells, and exit" },
	{ OPTION(repetitions, CONF_UINT), .short_opt = 'r', .arg = "N",
	  .max = 1000, .help = "override the workload; 0: keep its value" },
	{ OPTION(time_scale, CONF_DOUBLE), .arg = "X", .max = 1000,
	  .help = "override the workload; 0: keep its value" },
	{ OPTION(network, CONF_STRING), .arg = "auto|namespaces|loopback",
	  .help = "network between the nodes of a job with 'fs.peers: auto' "
		  "(default auto: namespaces where permitted, else loopback "
		  "addresses)" },
	{ OPTION(no_mount, CONF_BOOL),
	  .help = "run on the plain folders, without gpemu-fs" },
	{ OPTION(data_dir, CONF_STRING), .arg = "DIR",
	  .help = "folder for generated datasets (default "
		  "$XDG_CACHE_HOME/gpemu, else ~/.cache/gpemu)" },
	{ OPTION(bin_dir, CONF_STRING), .arg = "DIR",
	  .help = "folder of the other programs (default $GPEMU_BIN, else that "
		  "of gpemu-run)" },
	{ OPTION(find_max_gpus, CONF_BOOL),
	  .help = "at each point, find the largest number of GPUs that the "
		  "storage keeps at the utilisation of --au" },
	{ OPTION(au, CONF_DOUBLE), .arg = "SHARE", .min = 0, .max = 1,
	  .help = "--find-max-gpus: minimum accelerator utilisation (0.9)" },
	{ OPTION(progress, CONF_STRING), .arg = "auto|on|off",
	  .help = "progress bar on stderr; off: one line per cell" },
	{ 0 },
};

static const struct conf_field compare_fields[] = {
	CLI_JSON_FIELD(struct run_options, common),
	CLI_PLAIN_FIELDS(struct run_options, common),
	{ OPTION(metric, CONF_STRING), .arg = "NAME",
	  .help = "only this metric" },
	{ 0 },
};

static const struct conf_field merge_fields[] = {
	CLI_JSON_FIELD(struct run_options, common),
	CLI_PLAIN_FIELDS(struct run_options, common),
	{ OPTION(output, CONF_STRING), .short_opt = 'o', .arg = "DIR",
	  .help = "the folder to make, or one of those to merge" },
	{ 0 },
};

static const struct conf_field export_fields[] = {
	CLI_PLAIN_FIELDS(struct run_options, common),
	{ OPTION(output, CONF_STRING), .short_opt = 'o', .arg = "FILE",
	  .help = "write there instead of to stdout" },
	{ OPTION(epochs, CONF_BOOL),
	  .help = "a line for each epoch instead of each metric" },
	{ 0 },
};

static const struct conf_field import_fields[] = {
	CLI_PLAIN_FIELDS(struct run_options, common),
	{ OPTION(output, CONF_STRING), .short_opt = 'o', .arg = "FILE",
	  .help = "write there instead of to stdout" },
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

/* gpemu-run compare A B: no workload is needed, no program runs. */
static int compare_main(struct run_options *o, char **args,
			struct stop *ret_stop)
{
	json_auto_t *j = NULL;
	struct err err = { 0 };
	int code;

	(void)ret_stop;
	code = compare_folders(args[0], args[1], o->metric, &j, &err);
	if (code == 0)
		code = page_print(NULL, NULL, o->quiet, compare_print, j, &err);
	if (code == 0 && o->common.json)
		code = json_write(j, o->common.json, &err);
	return code < 0 ? cli_fail(code, &err) : EXIT_STATUS_DONE;
}

static int status_of(bool failed, const json_t *summary)
{
	struct score score = { 0 };

	score_add_json(&score, json_object_get(summary, "verdicts"));
	if (failed)
		return EXIT_STATUS_FAILED;
	return score_in(&score, VERDICT_UNDECIDED) ? EXIT_STATUS_UNDECIDED
						   : EXIT_STATUS_DONE;
}

/* --- merge ------------------------------------------------------------ */

/* arbitrary: enough to see which part is missing */
enum { MISSING_SHOWN = 8 };

struct merge {
	struct study *studies;
	size_t n;
	struct runner *to; /* of the first study, with the folder to fill */
	size_t n_missing, n_failed;
};

/* Of the first folder where the cell has run well, else of the first where it
 * has failed; NULL: it has not run. */
static json_t *find_record(const struct merge *m, const struct cell *cell,
			   bool *ret_ok)
{
	json_t *record = NULL;

	*ret_ok = false;
	for (size_t i = 0; !record && i < m->n; i++)
		record = cell_record(&m->studies[i].r, cell);
	*ret_ok = record != NULL;
	for (size_t i = 0; !record && i < m->n; i++)
		record = cell_any_record(&m->studies[i].r, cell);
	return record;
}

static void say_missing(const struct merge *m, const struct cell *cell)
{
	char label[90];

	workload_label(m->to->w, cell->point, label, sizeof(label));
	if (m->n_missing <= MISSING_SHOWN)
		log_error("no folder has a record of %s, repetition %zu", label,
			  cell->repetition + 1);
}

static int merge_cell(struct merge *m, size_t index, struct err *err)
{
	_cleanup_free_ char *path = NULL;
	json_auto_t *record = NULL;
	_cleanup_(cell_free) struct cell cell = { 0 };
	bool ok;
	int code = workload_cell(m->to->w, index, m->to->mounted, &cell);

	if (code < 0)
		return code;
	path = runner_path(m->to, "records", cell.id, "json");
	record = find_record(m, &cell, &ok);
	m->n_missing += !record;
	m->n_failed += record && !ok;
	if (!record)
		say_missing(m, &cell);
	else
		code = path ? json_replace(record, path, err) : -ENOMEM;
	return code;
}

static int merge_cells(struct merge *m, struct err *err)
{
	size_t n = workload_n_cells(m->to->w);
	int code = study_write(m->to, err);

	for (size_t i = 0; code == 0 && i < n; i++)
		code = merge_cell(m, i, err);
	if (m->n_missing)
		log_error("%zu of %zu cells have no record: run their shards "
			  "again, which resumes them",
			  m->n_missing, n);
	if (m->n_failed)
		log_error("%zu of %zu cells failed; logs are in the folders "
			  "that were merged",
			  m->n_failed, n);
	return code;
}

static int open_studies(struct merge *m, char *const *folders, struct err *err)
{
	int code = 0;

	for (size_t i = 0; code == 0 && i < m->n; i++) {
		code = study_open(&m->studies[i], folders[i], err);
		if (code == 0 && i > 0)
			code = study_same(&m->studies[0], &m->studies[i], err);
	}
	return code;
}

/* Fill the folder of `to`, and report it. */
static int merge_to(struct merge *m, const struct run_options *o,
		    bool *ret_failed, json_t **ret_summary, struct err *err)
{
	int code = stop_init(&m->to->stop, err);

	if (code == 0)
		code = runner_open(m->to, err);
	if (code == 0)
		code = merge_cells(m, err);
	if (code == 0)
		code = experiment_report(m->to, o->quiet, ret_failed,
					 ret_summary, err);
	*ret_failed = *ret_failed || m->n_missing || m->n_failed;
	return code;
}

/*
 * Copy the records of the result folders `folders`, ended by NULL, to
 * o->output, which may be one of them, and report. -EINVAL: they are of
 * different workloads, versions or inputs. *ret_failed: a cell or a check
 * failed, or a cell has no record, which the log says. *ret_summary as of
 * experiment_report().
 */
static int merge_folders(char *const *folders, const struct run_options *o,
			 bool *ret_failed, json_t **ret_summary,
			 struct stop *ret_stop, struct err *err)
{
	struct merge m = { 0 };
	struct runner to;
	int code;

	while (folders[m.n])
		m.n++;
	m.studies = calloc(m.n + 1, sizeof(*m.studies));
	if (!m.studies)
		return -ENOMEM;
	for (size_t i = 0; i < m.n; i++)
		m.studies[i].r =
			(struct runner){ .lock_fd = -1, .stop.fd = -1 };
	code = open_studies(&m, folders, err);
	to = (struct runner){ .w = &m.studies[0].w,
			      .mounted = m.studies[0].r.mounted,
			      .out = strdup(o->output),
			      .lock_fd = -1,
			      .stop.fd = -1 };
	m.to = &to;
	if (code == 0)
		code = to.out ? merge_to(&m, o, ret_failed, ret_summary, err)
			      : -ENOMEM;
	*ret_stop = to.stop;
	runner_fini(&to);
	for (size_t i = 0; i < m.n; i++)
		study_close(&m.studies[i]);
	free(m.studies);
	return code;
}

/* gpemu-run merge FOLDER... -o DIR: no workload is needed, no program runs. */
static int merge(struct run_options *o, char **args, struct stop *ret_stop)
{
	json_auto_t *summary = NULL;
	struct err err = { 0 };
	bool failed = false;
	int code;

	if (!o->output) {
		log_error("--output is needed: the folder to make");
		return EXIT_STATUS_USAGE;
	}
	code = merge_folders(args, o, &failed, &summary, ret_stop, &err);
	if (code == 0 && o->common.json)
		code = json_write(summary, o->common.json, &err);
	if (code < 0 && !ret_stop->signal)
		return cli_fail(code, &err);
	return status_of(failed, summary);
}

static int export_to(const char *folder, const struct run_options *o,
		     struct err *err)
{
	struct replace file;
	FILE *f;
	int code;

	if (!o->output)
		return export_folder(folder, o->epochs, stdout, err);
	code = replace_open(&file, NULL, o->output, &f, err);
	if (code < 0)
		return code;
	code = export_folder(folder, o->epochs, f, err);
	return replace_close(&file, f, code, err);
}

/* gpemu-run export FOLDER [-o FILE] */
static int export(struct run_options *o, char **args, struct stop *ret_stop)
{
	struct err err = { 0 };
	int code;

	(void)ret_stop;
	code = export_to(args[0], o, &err);
	return code < 0 ? cli_fail(code, &err) : EXIT_STATUS_DONE;
}

/* Arbitrary: a thousand times the largest one known. */
enum { IMPORT_MOST = 4 << 20 };

static int import_to(const char *path, const struct run_options *o,
		     const struct dlio *d, struct err *err)
{
	struct replace file;
	FILE *f;
	int code;

	if (!o->output) {
		code = dlio_write(d, path, stdout);
		return code < 0 ? err_set(err, code, "stdout: %s",
					  strerror(-code))
				: 0;
	}
	code = replace_open(&file, NULL, o->output, &f, err);
	if (code < 0)
		return code;
	return replace_close(&file, f, dlio_write(d, path, f), err);
}

/* gpemu-run import FILE.yaml [-o FILE] */
static int import(struct run_options *o, char **args, struct stop *ret_stop)
{
	const char *path = args[0];
	_cleanup_free_ char *bytes = NULL;
	struct dlio d = { 0 };
	struct err err = { 0 };
	size_t n;
	int code;

	(void)ret_stop;
	code = util_read_file(path, IMPORT_MOST, &bytes, &n);
	if (code < 0)
		err_set(&err, code, "%s: %s", path, strerror(-code));
	else
		code = dlio_parse(bytes, n, path, &d, &err);
	if (code == 0 && d.n_notes)
		log_warn("%s: left out or changed:", path);
	for (size_t i = 0; code == 0 && i < d.n_notes; i++)
		log_warn("%s:%u:%u: %s", path, d.notes[i].line,
			 d.notes[i].column, d.notes[i].text);
	if (code == 0)
		code = import_to(path, o, &d, &err);
	dlio_free(&d);
	return code < 0 ? cli_fail(code, &err) : EXIT_STATUS_DONE;
}

/* *ret_status: of what ran, when it returns 0. */
static int execute(struct experiment *e, const struct run_options *o,
		   int *ret_status, struct err *err)
{
	json_auto_t *summary = NULL;
	bool failed = false;
	int code = (o->find_max_gpus ? find_run : experiment_run)(
		e, o, &failed, &summary, err);

	*ret_status = status_of(failed, summary);
	if (code == 0 && o->common.json)
		code = json_write(summary, o->common.json, err);
	return code;
}

/* --- check ------------------------------------------------------------- */

/* arbitrary: enough to show the order of the cells */
enum { ORDER_SHOWN = 8 };

static int print_dataset(struct runner *r, const json_t *recipe, void *f,
			 struct err *err)
{
	_cleanup_free_ char *path = NULL;
	int code = dataset_path(r, recipe, &path, err);

	if (code == 0)
		fprintf(f, "dataset     %s (%s)\n", path,
			dataset_is_synth(recipe) ? "generated on read"
			: access(path, F_OK) == 0 || !dataset_is_folder(recipe)
				? "exists"
				: "will be made");
	return code;
}

static void print_jobs(const struct cell *cell, bool mounted, FILE *f)
{
	for (size_t i = 0; i < cell->n_jobs; i++) {
		const struct cell_job *j = &cell->jobs[i];
		bool simulated = cell_job_is_simulated(j);
		char start[UNITS_TEXT];

		fprintf(f, "job         %s: %s%s %s", j->name,
			cell_is_exec(j) ? "a program" : "gpemu-train",
			simulated	   ? " --simulate, without mounts, of"
			: mounted	   ? " on mount"
			: cell->store_only ? " on the object store with"
					   : " on the plain folder of",
			cell->mounts[j->mount].name);
		if (j->start_ns)
			fprintf(f, ", starts after %s",
				units_exact_duration(j->start_ns, start));
		fputc('\n', f);
	}
}

static void print_axes(const struct workload *w, FILE *f)
{
	for (size_t a = 0; a < w->n_axes; a++) {
		fprintf(f, "axis        %s:", w->axes[a].name);
		for (size_t i = 0; i < w->axes[a].n_points; i++)
			fprintf(f, " %s", w->axes[a].points[i].label);
		fputc('\n', f);
	}
}

static void print_checks(const struct workload *w, FILE *f)
{
	const struct published *p = w->published.items;
	const struct expect *e = w->expects.items;
	const struct plot *plots = w->plots.items;

	for (size_t i = 0; i < w->expects.n; i++) {
		fprintf(f, "expects     %s%s", e[i].name ? e[i].name : "",
			e[i].name ? ": " : "");
		if (e[i].that)
			fputs(e[i].that, f);
		else
			fprintf(f, "%s %s along %s",
				e[i].rising ? e[i].rising : e[i].falling,
				e[i].rising ? "rises" : "falls", e[i].along);
		fprintf(f, " (%s)\n", evidence_name(e[i].evidence.kind));
	}
	for (size_t i = 0; i < w->published.n; i++)
		fprintf(f, "published   %s: %s along %s (%s)\n", p[i].name,
			p[i].metric, p[i].along,
			published_is_judged(&p[i])
				? evidence_name(p[i].evidence.kind)
				: "shown");
	for (size_t i = 0; i < w->plots.n; i++)
		fprintf(f, "plot        %s: %s over %s\n", plots[i].name,
			plots[i].y, plots[i].x);
}

static int print_order(const struct runner *r, const size_t *todo, size_t n,
		       FILE *f)
{
	char label[90];

	for (size_t i = 0; i < MIN(n, ORDER_SHOWN); i++) {
		_cleanup_(cell_free) struct cell cell = { 0 };

		if (workload_cell(r->w, todo[i], r->mounted, &cell) < 0)
			return -ENOMEM;
		workload_label(r->w, cell.point, label, sizeof(label));
		fprintf(f, "%s%s, repetition %zu, seed %" PRIu64 "\n",
			i ? "            " : "first       ", label,
			cell.repetition + 1, cell.seed);
	}
	if (n > ORDER_SHOWN)
		fprintf(f, "            and %zu more\n", n - ORDER_SHOWN);
	return 0;
}

/* Cells without an estimate, on a line of their own. */
static void print_rest(size_t n, const char *why, const char *more, bool first,
		       FILE *f)
{
	if (n)
		fprintf(f, "%s%zu cell%s %s%s\n", first ? "" : "            ",
			n, n == 1 ? "" : "s", why, more);
}

static void print_left_out(const json_t *left_out, FILE *f)
{
	const char *what, *before = "            left out: ";
	json_t *value;

	json_object_foreach ((json_t *)left_out, what, value) {
		fprintf(f, "%s%s", before, what);
		before = ", ";
	}
	if (json_object_size(left_out))
		fputc('\n', f);
}

static void print_estimate(const struct estimate *e, FILE *f)
{
	size_t n = e->n_measured + e->n_simulated + e->n_mean;
	char text[UNITS_TEXT];

	fputs("time        ", f);
	if (!e->n_cells)
		fputs("nothing to run\n", f);
	if (n)
		fprintf(f, "about %s for %zu cells",
			units_human_duration(e->seconds * NS_PER_S, text), n);
	if (e->n_measured)
		fprintf(f, ", %zu of them from earlier runs", e->n_measured);
	if (e->n_simulated)
		fprintf(f, ", %zu simulated", e->n_simulated);
	if (e->n_mean)
		fprintf(f, ", %zu as the mean of these", e->n_mean);
	if (n)
		fputc('\n', f);
	print_left_out(e->left_out, f);
	print_rest(e->n_itself,
		   "simulated, in the time of the computation: not estimated",
		   "", !n, f);
	print_rest(e->n_unknown, "without an estimate: ", e->why.text,
		   !n && !e->n_itself, f);
}

/* `gpemu-run check`: the experiment, how much of it is done, and the estimated
 * time of the rest. -ENOMEM. */
static int check_print(struct runner *r, FILE *f, struct err *err)
{
	const struct workload *w = r->w;
	_cleanup_free_ size_t *todo = NULL;
	size_t n = 0, n_mine;
	struct estimate e = { 0 };
	struct rules rules;
	_cleanup_(cell_free) struct cell cell = { 0 };
	int code = workload_cell(w, 0, r->mounted, &cell);

	if (code < 0)
		return code;
	fprintf(f, "%s: %s\n", w->name, w->question);
	code = dataset_each(r, print_dataset, f, err);
	if (cell.gpud)
		fputs("gpud        the jobs share the GPUs of gpemu-gpud\n", f);
	if (cell.s3)
		fprintf(f,
			"s3          gpemu-s3 serves the dataset of mount %s "
			"as "
			"bucket %s\n",
			cell.mounts[0].name,
			config_text(w, cell.s3, "s3", "bucket"));
	if (w->base[RUN_PREPD])
		fputs("prepd       jobs with loader: service take the batches "
		      "of gpemu-prepd\n",
		      f);
	print_jobs(&cell, r->mounted, f);
	print_axes(w, f);
	fprintf(f,
		"cells       %zu points x %" PRIu64 " repetitions = %zu, %zu "
		"warm-ups, time scale %.9g\n",
		w->n_points, w->repetitions, workload_n_cells(w),
		w->n_points * w->warmup, w->time_scale);
	print_checks(w, f);
	if (code == 0)
		code = loop_list(r, LOOP_NEW, &todo, &n);
	if (code == 0)
		code = estimate_run(r, todo, n, &e, err);
	if (code < 0) {
		estimate_fini(&e);
		return code;
	}
	n_mine = shard_n_cells(&r->shard, w);
	if (r->shard.n)
		fprintf(f, "shard       %zu of %zu: %zu of these cells\n",
			r->shard.index + 1, r->shard.n, n_mine);
	fprintf(f, "records     %zu of %zu cells have one in %s\n", n_mine - n,
		n_mine, r->out);
	code = print_order(r, todo, n, f);
	print_estimate(&e, f);
	rules_expected(&rules, r, e.records);
	rules_print(&rules, r, f);
	estimate_fini(&e);
	return code;
}

static int print_check(struct runner *r, struct err *err)
{
	struct wrap w;
	int code = wrap_begin(&w, stdout);

	if (code < 0)
		return code;
	code = check_print(r, w.f, err);
	wrap_end(&w);
	return code;
}

/* --- run ---------------------------------------------------------------- */

/* Load and check, then run the command; returns the exit status. */
static int workload_main(const char *path, const struct run_options *o,
			 bool check, struct stop *ret_stop)
{
	struct experiment e;
	struct err err = { 0 };
	int code = experiment_open(&e, path, o->output, o, &err);
	int status = EXIT_STATUS_DONE;

	if (code == 0)
		code = check	    ? print_check(&e.r, &err)
		       : o->slurm   ? slurm_submit(&e, path, fields, o, &status,
						   &err)
		       : o->dry_run ? experiment_dry_run(&e)
				    : execute(&e, o, &status, &err);
	if (e.r.stop.signal)
		log_error("stopped by %s; finished cells are kept",
			  strsignal(e.r.stop.signal));
	if (code < 0 && !e.r.stop.signal)
		status = cli_fail(code, &err);
	*ret_stop = e.r.stop;
	experiment_close(&e);
	return status;
}

/* A workload, or a list of them, to check or to run. */
static int run_file(struct run_options *o, const char *path, bool check,
		    struct stop *ret_stop)
{
	const char *refused = NULL;

	if (o->find_max_gpus && (o->shard.n || o->slurm))
		refused = "--find-max-gpus cannot be combined with shards";
	else if (o->slurm && (o->shard.n || o->fresh))
		refused = o->fresh ? "--slurm cannot be combined with --fresh: "
				     "a requeued shard would start over"
				   : "--slurm cannot be combined with --shard";
	else if (o->slurm_options && !o->slurm)
		refused = "--slurm-options is only valid with --slurm";
	else if (!suite_is(path))
		return workload_main(path, o, check, ret_stop);
	else if (o->find_max_gpus || o->shard.n || o->slurm)
		refused = o->find_max_gpus
				  ? "--find-max-gpus takes one workload, not a "
				    "list"
				  : "a list of workloads has no shards";
	if (!refused)
		return suite_main(path, o, check, ret_stop);
	log_error("%s", refused);
	return EXIT_STATUS_USAGE;
}

/* FILE|NAME [KEY=VALUE...] */
static int find_and_run(struct run_options *o, char **args, bool check,
			struct stop *ret_stop)
{
	_cleanup_free_ char *path = NULL;
	struct err err = { 0 };
	int r;

	for (char **key = args + 1; *key; key++)
		if (!strchr(*key, '=')) {
			log_error("'%s' is not KEY=VALUE; expected one "
				  "workload file, or a command in front of the "
				  "options",
				  *key);
			return EXIT_STATUS_USAGE;
		}
	o->overrides = args + 1;
	r = shipped_find(args[0], &path, &err);
	return r < 0 ? cli_fail(r, &err) : run_file(o, path, check, ret_stop);
}

static int run_main(struct run_options *o, char **args, struct stop *ret_stop)
{
	return find_and_run(o, args, false, ret_stop);
}

static int check_main(struct run_options *o, char **args, struct stop *ret_stop)
{
	return find_and_run(o, args, true, ret_stop);
}

/* --- commands ----------------------------------------------------------- */

#define NOTES                                                              \
	"NAME is a shipped workload, such as demo. KEY=VALUE overrides a " \
	"key of the workload: repetitions=3, fs.storage=nvme, "            \
	"axes.fs.cache_size='[10%, 20%]'. Cells with a record do not run " \
	"again, unless the workload, a profile or a program has changed. " \
	"--seed 0 keeps the seed of the workload."

/* The first word of the command line; "": any other. `run` has the arguments,
 * ended by NULL, and returns the exit status. *ret_stop: the signal that
 * stopped it. */
static const struct subcommand {
	const char *word;
	int (*run)(struct run_options *o, char **args, struct stop *ret_stop);
	struct cli_program program;
} commands[] = {
	{ "check",
	  check_main,
	  { .name = "gpemu-run check",
	    .args = "FILE|NAME [KEY=VALUE...]",
	    .n_args = 1,
	    .n_optional = MOST_ARGS - 1,
	    .summary = "Print what would run and the estimated time.",
	    .notes = NOTES,
	    .fields = fields } },
	{ "compare",
	  compare_main,
	  { .name = "gpemu-run compare",
	    .args = "A B",
	    .n_args = 2,
	    .summary = "Print the differences between two result folders.",
	    .fields = compare_fields } },
	{ "merge",
	  merge,
	  { .name = "gpemu-run merge",
	    .args = "FOLDER...",
	    .n_args = 1,
	    .n_optional = MOST_ARGS - 1,
	    .summary = "Join the result folders of shards into one folder.",
	    .fields = merge_fields } },
	{ "export",
	  export,
	  { .name = "gpemu-run export",
	    .args = "FOLDER",
	    .n_args = 1,
	    .summary = "Write the runs of a result folder as CSV.",
	    .fields = export_fields } },
	{ "import",
	  import,
	  { .name = "gpemu-run import",
	    .args = "FILE.yaml",
	    .n_args = 1,
	    .summary = "Convert a workload of DLIO or MLPerf Storage to one "
		       "of gpemu-run.",
	    .fields = import_fields } },
	{ "",
	  run_main,
	  { .name = "gpemu-run",
	    .args = "FILE|NAME [KEY=VALUE...] | COMMAND ...",
	    .n_args = 1,
	    .n_optional = MOST_ARGS - 1,
	    .summary =
		    "Run an experiment: repeat mounts and training runs over a "
		    "grid, store a record of each, check the expectations, and "
		    "write a table, plots and a report. For a list of "
		    "workloads, run each and write one page on all.",
	    .notes = NOTES
	    "\n\n'gpemu-run COMMAND --help' describes one command:\n\n"
	    "  check      what would run, and the estimated time\n"
	    "  compare    the differences between two result folders\n"
	    "  merge      the result folders of shards, in one\n"
	    "  export     the runs of a result folder, as CSV\n"
	    "  import     a workload of DLIO or MLPerf Storage, as one "
	    "of gpemu-run",
	    .fields = fields,
	    .kinds = kinds } },
};

/* The options that are texts. */
static int read_options(struct run_options *o, struct err *err)
{
	int code = 0;

	if (o->progress) {
		code = progress_parse(o->progress, &o->progress_mode, err);
		if (code < 0)
			err_prefix(err, "--progress");
	}
	if (code == 0 && o->shard_text) {
		code = shard_parse(o->shard_text, &o->shard, err);
		if (code < 0)
			err_prefix(err, "--shard");
	}
	return code;
}

int main(int argc, char **argv)
{
	struct run_options o = { .au = .9, .jobs = 1 };
	const struct subcommand *c = commands;
	struct stop stop = { .fd = -1 };
	char *args[MOST_ARGS + 1] = { 0 };
	struct err err = { 0 };
	int status = EXIT_STATUS_USAGE;

	while (*c->word && (argc < 2 || strcmp(argv[1], c->word)))
		c++;
	cli_parse(&c->program, argc - !!*c->word, argv + !!*c->word, &o, args);
	o.quiet = o.common.json && !strcmp(o.common.json, "-");
	launcher_forget();
	if (read_options(&o, &err) < 0)
		log_error("%s", err.text);
	else
		status = c->run(&o, args, &stop);
	conf_free(c->program.fields, &o);
	stop_raise(&stop);
	return status;
}

/* SPDX-License-Identifier: MIT */
#include "runner/result/run_export.h"

#include <errno.h>
#include <math.h>
#include <string.h>

#include "common/json.h"
#include "common/util.h"
#include "runner/cell/run_record.h"
#include "runner/result/run_result.h"
#include "runner/result/run_study.h"
#include "runner/result/run_verdict.h"

/* All runs, and all verdicts, as tidy tables (RFC 4180). */

/* In quotes where needed. */
static void csv_text(FILE *f, const char *s)
{
	bool plain = !s[strcspn(s, ",\"\r\n")];

	if (plain) {
		fputs(s, f);
		return;
	}
	fputc('"', f);
	for (; *s; s++)
		fprintf(f, *s == '"' ? "\"\"" : "%c", *s);
	fputc('"', f);
}

/* The fewest digits that read back to the same number. */
static void csv_number(FILE *f, double v)
{
	char digits[RESULT_TEXT];

	result_exact(digits, sizeof(digits), v);
	fputs(digits, f);
}

/* Text, number, or anything else as JSON; nothing for NULL and null. */
static void csv_value(FILE *f, const json_t *j)
{
	_cleanup_free_ char *dump = NULL;

	if (json_is_string(j)) {
		csv_text(f, json_string_value(j));
	} else if (json_is_number(j)) {
		csv_number(f, json_number_value(j));
	} else if (j && !json_is_null(j)) {
		dump = json_dumps(j, JSON_COMPACT | JSON_ENCODE_ANY);
		csv_text(f, dump ? dump : "");
	}
}

/* Workload, id, labels of the axes, repetition and seed. */
static void csv_cell(FILE *f, const struct workload *w, const struct cell *cell)
{
	csv_text(f, w->name);
	fprintf(f, ",%s", cell->id);
	for (size_t a = 0; a < w->n_axes; a++) {
		fputc(',', f);
		csv_text(f, workload_at(w, cell->point, a)->label);
	}
	fprintf(f, ",%zu,%llu", cell->repetition + 1,
		(unsigned long long)cell->seed);
}

/* A member of a record. */
struct column {
	const char *group, *key, *column;
};

/* The names of the columns that all lines of a table begin with. */
static void csv_head(FILE *f, const struct workload *w,
		     const struct column *columns, size_t n)
{
	fputs("workload,cell", f);
	for (size_t a = 0; a < w->n_axes; a++) {
		fputc(',', f);
		csv_text(f, w->axes[a].name);
	}
	fputs(",repetition,seed", f);
	for (size_t i = 0; i < n; i++)
		fprintf(f, ",%s", columns[i].column);
}

/* What is in them. */
static void csv_begin(FILE *f, const struct workload *w,
		      const struct cell *cell, const json_t *record,
		      const struct column *columns, size_t n)
{
	csv_cell(f, w, cell);
	for (size_t i = 0; i < n; i++) {
		const char *group = columns[i].group;
		const json_t *j = group ? json_object_get(record, group)
					: record;

		fputc(',', f);
		csv_value(f, json_object_get(j, columns[i].key));
	}
}

static const struct column result_columns[] = {
	{ NULL, "status", "status" },
	{ "cell", "started", "started" },
	{ "cell", "wall_seconds", "cell_wall_seconds" },
	{ "cell", "attempts", "attempts" },
	{ "cell", "disturbed", "disturbed" },
	{ "cell", "gpemu", "gpemu" },
	{ "host", "name", "host" },
	{ "host", "kernel", "kernel" },
	{ "host", "load_before", "load_before" },
	{ "host", "other_cpu_share", "other_cpu_share" },
};

static void line(const struct result *res, const struct cell *cell,
		 const json_t *record, FILE *f)
{
	csv_begin(f, res->r->w, cell, record, result_columns,
		  ARRAY_SIZE(result_columns));
	for (size_t i = 0; i < res->n_metrics; i++) {
		double v = *result_value(res, cell->point, cell->repetition, i);

		fputc(',', f);
		if (!isnan(v))
			csv_number(f, v);
	}
	fputs("\n", f);
}

void result_csv(const struct result *res, FILE *f)
{
	const struct workload *w = res->r->w;

	csv_head(f, w, result_columns, ARRAY_SIZE(result_columns));
	for (size_t i = 0; i < res->n_metrics; i++) {
		fputc(',', f);
		csv_text(f, res->metrics[i]->name);
	}
	fputc('\n', f);
	for (size_t i = 0; i < workload_n_cells(w); i++) {
		json_auto_t *record = NULL;
		_cleanup_free_ char *path = NULL;
		_cleanup_(cell_free) struct cell cell = { 0 };

		if (workload_cell(w, i, res->r->mounted, &cell) < 0)
			return;
		path = runner_path(res->r, "records", cell.id, "json");
		if (path)
			json_read(path, &record, NULL);
		line(res, &cell, record, f);
	}
}

/* An end of an interval, or nothing. */
static void end(FILE *f, double v)
{
	if (!isnan(v))
		csv_number(f, v);
	fputc(',', f);
}

void verdicts_csv(const struct verdicts *v, const char *workload, FILE *f)
{
	fputs("workload,check,kind,at,ours,wanted,interval,low,high,"
	      "repetitions,needed,verdict,note\n",
	      f);
	for (size_t i = 0; i < v->n; i++) {
		const struct verdict *one = &v->items[i];
		const char *const texts[] = {
			workload,     one->check, evidence_name(one->kind),
			one->at,      one->ours,  one->wanted,
			one->interval
		};

		for (size_t k = 0; k < ARRAY_SIZE(texts); k++) {
			csv_text(f, texts[k]);
			fputc(',', f);
		}
		end(f, one->low);
		end(f, one->high);
		fprintf(f, "%zu,", one->n);
		if (one->needed && one->needed != SIZE_MAX)
			fprintf(f, "%zu", one->needed);
		fprintf(f, ",%s,", verdict_state_name(one->state));
		csv_text(f, one->note);
		fputc('\n', f);
	}
}

static const struct column run_columns[] = {
	{ "cell", "started", "started_utc" },
	{ "cell", "wall_seconds", "cell_wall_s" },
	{ "cell", "time_scale", "time_scale_wall_s_per_s" },
	{ "cell", "attempts", "attempts" },
	{ "cell", "disturbed", "disturbed" },
	{ "cell", "gpemu", "gpemu_version" },
	{ "host", "name", "host" },
	{ "host", "kernel", "kernel" },
	{ "host", "cpus", "cpus" },
	{ "host", "memory_bytes", "memory_bytes" },
	{ "host", "other_cpu_share", "other_cpu_share" },
};

/* Members of an epoch whose names lack the unit. */
static const struct {
	const char *key, *column;
} unit_columns[] = {
	{ "seconds", "epoch_s" },
	{ "wall_seconds", "epoch_wall_s" },
	{ "au", "au_share" },
};

struct export
{
	struct result res;
	json_t *settings; /* {column: true}, in the order of the columns */
	json_t *numbers;  /* the same, of epochs */
	FILE *f;
};

/* --- one record ------------------------------------------------------- */

/* Add "PREFIX.KEY": value; several mounts or jobs: "NAME.PREFIX.KEY". */
static int add_keys(json_t *to, const char *name, bool alone,
		    const char *prefix, const json_t *map)
{
	const char *key;
	json_t *value;

	json_object_foreach ((json_t *)map, key, value) {
		_cleanup_free_ char *column = NULL;

		if (asprintf(&column, "%s%s%s.%s", alone ? "" : name,
			     alone ? "" : ".", prefix, key) < 0 ||
		    json_object_set(to, column, value) < 0)
			return -ENOMEM;
	}
	return 0;
}

/* {column: value} of a run's configuration; NULL: no memory. */
static json_t *settings_of(const json_t *record)
{
	static const struct {
		const char *group, *member, *prefix;
	} parts[] = { { "mounts", "dataset", "dataset" },
		      { "mounts", "fs", "fs" },
		      { "jobs", "train", "train" },
		      { "jobs", "exec", "exec" },
		      { "jobs", "environment", "env" } };
	json_t *cell = json_object_get(record, "cell"), *to = json_object();
	json_t *group, *one;
	const char *name;
	int r = to ? 0 : -ENOMEM;

	for (size_t i = 0; i < ARRAY_SIZE(parts); i++) {
		group = json_object_get(cell, parts[i].group);
		json_object_foreach (group, name, one)
			if (r == 0)
				r = add_keys(
					to, name, json_object_size(group) == 1,
					parts[i].prefix,
					json_object_get(one, parts[i].member));
	}
	for (enum run_program p = RUN_GPUD; r == 0 && p <= RUN_S3; p++)
		r = add_keys(to, "", true, run_program_word(p),
			     json_object_get(cell, run_program_word(p)));
	if (r == 0)
		return to;
	json_decref(to);
	return NULL;
}

/* The record of a job, with the mount's statistics; several jobs have one in
 * `mounts`, of which no epochs are theirs. */
static const json_t *job_record(const json_t *record, const char *job)
{
	const json_t *jobs = json_object_get(record, "jobs");

	return jobs ? json_object_get(jobs, job) : record;
}

static int add_numbers(json_t *to, const char *prefix, const json_t *epoch)
{
	const char *key;
	json_t *value;

	json_object_foreach ((json_t *)epoch, key, value) {
		_cleanup_free_ char *column = NULL;
		const char *name = key;

		for (size_t i = 0; i < ARRAY_SIZE(unit_columns); i++)
			if (!strcmp(unit_columns[i].key, key))
				name = unit_columns[i].column;
		if (!json_is_number(value) || !strcmp(key, "epoch"))
			continue;
		if (asprintf(&column, "%s%s", prefix, name) < 0 ||
		    json_object_set(to, column, value) < 0)
			return -ENOMEM;
	}
	return 0;
}

/* {column: number} of epoch `i` of a job; NULL: no memory. */
static json_t *numbers_of(const json_t *record, const char *job, size_t i)
{
	const json_t *own = job_record(record, job);
	const json_t *mount = json_object_get(record, "mount");
	json_t *to = json_object();
	int r = to ? add_numbers(to, "",
				 json_array_get(json_object_get(own, "epochs"),
						i))
		   : -ENOMEM;

	if (r == 0)
		r = add_numbers(to, "mount_",
				json_array_get(json_object_get(mount, "epochs"),
					       i));
	if (r == 0)
		return to;
	json_decref(to);
	return NULL;
}

static size_t n_epochs(const json_t *record, const char *job)
{
	return json_array_size(
		json_object_get(job_record(record, job), "epochs"));
}

/* --- columns ---------------------------------------------------------- */

/* An axis that is called like a key has its column already. */
static int note_columns(const struct workload *w, json_t *known, json_t *of)
{
	const char *key;
	json_t *value;

	if (!of)
		return -ENOMEM;
	json_object_foreach (of, key, value)
		if (workload_axis(w, key) < 0 &&
		    json_object_set_new(known, key, json_true()) < 0)
			return -ENOMEM;
	return 0;
}

static int find_columns(struct export *x)
{
	const struct workload *w = x->res.r->w;
	const char *job;
	json_t *record, *one;
	size_t i;
	int r = 0;

	json_array_foreach (x->res.records, i, record) {
		json_auto_t *settings = settings_of(record);
		json_t *jobs = json_object_get(json_object_get(record, "cell"),
					       "jobs");

		r = note_columns(w, x->settings, settings);
		json_object_foreach (jobs, job, one)
			for (size_t k = 0; r == 0 && k < n_epochs(record, job);
			     k++) {
				json_auto_t *numbers =
					numbers_of(record, job, k);

				r = note_columns(w, x->numbers, numbers);
			}
		if (r < 0)
			return r;
	}
	return 0;
}

static void head(const struct export *x, bool epochs)
{
	const struct workload *w = x->res.r->w;
	const char *column;
	json_t *ignored;

	csv_head(x->f, w, run_columns, ARRAY_SIZE(run_columns));
	json_object_foreach (x->settings, column, ignored) {
		fputc(',', x->f);
		csv_text(x->f, column);
	}
	if (!epochs)
		fputs(",metric,unit,value\n", x->f);
	else
		fputs(",job,epoch", x->f);
	json_object_foreach (x->numbers, column, ignored)
		if (epochs)
			fprintf(x->f, ",%s", column);
	if (epochs)
		fputc('\n', x->f);
}

/* --- lines ------------------------------------------------------------ */

/* The start of each line of a run; malloc'ed. */
static char *start_of(const struct export *x, const struct cell *cell,
		      const json_t *record, const json_t *settings)
{
	const struct workload *w = x->res.r->w;
	const char *column;
	json_t *ignored;
	char *text = NULL;
	size_t n;
	FILE *f = open_memstream(&text, &n);

	if (!f)
		return NULL;
	csv_begin(f, w, cell, record, run_columns, ARRAY_SIZE(run_columns));
	json_object_foreach (x->settings, column, ignored) {
		fputc(',', f);
		csv_value(f, json_object_get(settings, column));
	}
	fclose(f);
	return text;
}

static void metric_lines(struct export *x, const struct cell *cell,
			 const char *start)
{
	for (size_t i = 0; i < x->res.n_metrics; i++) {
		const struct metric *m = x->res.metrics[i];
		double v = *result_value(&x->res, cell->point, cell->repetition,
					 i);

		if (isnan(v))
			continue;
		fprintf(x->f, "%s,", start);
		csv_text(x->f, m->name);
		fputc(',', x->f);
		csv_text(x->f, m->unit ? m->unit : "");
		fputc(',', x->f);
		csv_number(x->f, v);
		fputc('\n', x->f);
	}
}

static int epoch_lines(struct export *x, const json_t *record,
		       const char *start)
{
	json_t *jobs = json_object_get(json_object_get(record, "cell"), "jobs");
	const char *job, *column;
	json_t *one, *ignored;

	json_object_foreach (jobs, job, one)
		for (size_t i = 0; i < n_epochs(record, job); i++) {
			json_auto_t *numbers = numbers_of(record, job, i);

			if (!numbers)
				return -ENOMEM;
			fprintf(x->f, "%s,%s,%zu", start, job, i);
			json_object_foreach (x->numbers, column, ignored) {
				fputc(',', x->f);
				csv_value(x->f,
					  json_object_get(numbers, column));
			}
			fputc('\n', x->f);
		}
	return 0;
}

static int run_lines(struct export *x, size_t index, bool epochs)
{
	const struct runner *r = x->res.r;
	_cleanup_free_ char *start = NULL;
	json_auto_t *record = NULL, *settings = NULL;
	_cleanup_(cell_free) struct cell cell = { 0 };
	int code = workload_cell(r->w, index, r->mounted, &cell);

	if (code < 0)
		return code;
	record = cell_record(r, &cell);
	settings = record ? settings_of(record) : NULL;
	start = settings ? start_of(x, &cell, record, settings) : NULL;
	if (record && !start)
		code = -ENOMEM;
	else if (record && epochs)
		code = epoch_lines(x, record, start);
	else if (record)
		metric_lines(x, &cell, start);
	return code;
}

int export_folder(const char *folder, bool epochs, FILE *f, struct err *err)
{
	struct export x = { .settings = json_object(),
			    .numbers = json_object(),
			    .f = f };
	struct study s;
	int code = study_open(&s, folder, err);

	if (code == 0)
		code = result_init(&x.res, &s.r, err);
	if (code == 0)
		code = find_columns(&x);
	if (code == 0)
		head(&x, epochs);
	for (size_t i = 0; code == 0 && i < workload_n_cells(&s.w); i++)
		code = run_lines(&x, i, epochs);
	result_fini(&x.res);
	study_close(&s);
	json_decref(x.settings);
	json_decref(x.numbers);
	return code < 0 ? err_set(err, code, "out of memory") : 0;
}

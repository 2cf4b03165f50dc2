/* SPDX-License-Identifier: MIT */
#include "runner/run_find.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "common/json.h"
#include "common/log.h"
#include "common/text/columns.h"
#include "common/tick.h"
#include "common/units.h"
#include "common/util.h"
#include "emu/gpu/gpus.h"
#include "runner/cell/run_cell.h"
#include "runner/cell/run_record.h"
#include "runner/cell/run_disturb.h"
#include "runner/page/run_page.h"
#include "runner/page/run_plot.h"
#include "runner/result/run_origins.h"
#include "runner/run/run_host.h"
#include "runner/run/run_lock.h"
#include "runner/run_again.h"
#include "runner/run_experiment.h"
#include "runner/spec/run_metric.h"

/* The results of --find-max-gpus: JSON, table, plot and page. */

#define PLOT "find-max"

/* --- JSON ------------------------------------------------------------- */

/* The median of `key` over the tries with `gpus`; their number in *ret_n. */
static double median_of(const json_t *tries, uint64_t gpus, const char *key,
			size_t *ret_n)
{
	_cleanup_free_ double *v =
		calloc(json_array_size(tries) + 1, sizeof(*v));
	const json_t *one;
	size_t i;

	*ret_n = 0;
	json_array_foreach ((json_t *)tries, i, one)
		if (v && (uint64_t)json_integer_value(
				 json_object_get(one, "gpus")) == gpus)
			v[(*ret_n)++] = json_get_number(one, key);
	return stats_spread(v, *ret_n).median;
}

static json_t *number(const json_t *tries, uint64_t gpus, const char *key)
{
	size_t n;
	double v = median_of(tries, gpus, key, &n);

	return n ? json_real(v) : json_null();
}

static json_t *by_gpus(const json_t *tries)
{
	json_t *j = json_array();
	const json_t *one;
	uint64_t largest = 0;
	size_t i, n;

	json_array_foreach ((json_t *)tries, i, one)
		largest = MAX(largest, (uint64_t)json_integer_value(
					       json_object_get(one, "gpus")));
	for (uint64_t gpus = 1; gpus <= largest; gpus++) {
		double au = median_of(tries, gpus, "au", &n);

		if (n)
			json_array_append_new(
				j,
				json_pack("{s:I, s:f, s:o, s:I}", "gpus",
					  (json_int_t)gpus, "au", au,
					  "samples_per_s",
					  number(tries, gpus, "samples_per_s"),
					  "n", (json_int_t)n));
	}
	return j;
}

/*
 * A point: {axes{}, label, max_gpus, au, au_above, samples_per_s, runs,
 * by_gpus: [{gpus, au, samples_per_s, n}], tries, error}. AU are medians in
 * percent; au_above, with one more GPU, is null if not tried. With an `error`
 * max_gpus is null.
 */
static json_t *find_point_json(const struct workload *w, size_t point,
			       const json_t *tries, uint64_t most,
			       const char *error)
{
	char label[90];

	workload_label(w, point, label, sizeof(label));
	return json_pack("{s:o, s:s, s:o, s:o, s:o, s:o, s:I, s:o, s:O, s:o?}",
			 "axes", workload_labels(w, point), "label", label,
			 "max_gpus",
			 error ? json_null() : json_integer((json_int_t)most),
			 "au", number(tries, most, "au"), "au_above",
			 number(tries, most + 1, "au"), "samples_per_s",
			 number(tries, most, "samples_per_s"), "runs",
			 (json_int_t)json_array_size(tries), "by_gpus",
			 by_gpus(tries), "tries", tries, "error",
			 json_bytes(error));
}

/* {gpemu, workload, question, file, au, time_scale, seed, profiles, host,
 * points, runs}; NULL: no memory. */
static json_t *find_json(const struct runner *r, double au, json_t *points,
			 json_t *origins)
{
	const struct workload *w = r->w;

	return json_pack("{s:o, s:s, s:s, s:o, s:b, s:f, s:f, s:I, s:O?, "
			 "s:o, s:O, s:O}",
			 "gpemu", json_version(), "workload", w->name,
			 "question", w->question, "file", json_bytes(w->path),
			 "mounted", r->mounted, "au", au, "time_scale",
			 w->time_scale, "seed", (json_int_t)w->seed, "profiles",
			 w->profiles, "host", host_about(), "points", points,
			 "runs", origins);
}

/* --- table ------------------------------------------------------------ */

static void value(const json_t *point, const char *key, char *buf, size_t n)
{
	const json_t *v = json_object_get(point, key);

	if (json_is_integer(v))
		snprintf(buf, n, "%" JSON_INTEGER_FORMAT,
			 json_integer_value(v));
	else if (json_is_real(v))
		result_number(buf, n, json_real_value(v));
	else
		snprintf(buf, n, "-");
}

static const struct {
	const char *key, *title, *unit;
} columns[] = {
	{ "max_gpus", "most GPUs", "" },
	{ "au", "AU", "%" },
	{ "au_above", "AU of one more", "%" },
	{ "samples_per_s", "throughput", "samples/s" },
	{ "runs", "runs", "" },
};

static void print_columns(const json_t *found, size_t width, FILE *f)
{
	const json_t *points = json_object_get(found, "points"), *point;
	struct columns t;
	size_t i;

	if (columns_init(&t, json_array_size(points) + 1,
			 ARRAY_SIZE(columns) + 1) < 0)
		return;
	t.words = 1;
	for (size_t c = 0; c < ARRAY_SIZE(columns); c++)
		snprintf(columns_at(&t, 0, c + 1), COLUMNS_TEXT, "%s",
			 columns[c].title);
	json_array_foreach ((json_t *)points, i, point) {
		snprintf(columns_at(&t, i + 1, 0), COLUMNS_TEXT, "%s",
			 json_get_text(point, "label"));
		for (size_t c = 0; c < ARRAY_SIZE(columns); c++)
			value(point, columns[c].key,
			      columns_at(&t, i + 1, c + 1), COLUMNS_TEXT);
	}
	columns_print(&t, width, f);
	columns_fini(&t);
}

static void print_table(const void *ctx, size_t width, FILE *f)
{
	const json_t *found = ctx;

	fprintf(f, "%s: %s\n\n", json_get_text(found, "workload"),
		json_get_text(found, "question"));
	print_columns(found, width, f);
	fprintf(f,
		"\nLargest number of GPUs that this storage keeps at %.3g %% "
		"utilisation; medians of several runs at the boundary.\n",
		100 * json_get_number(found, "au"));
	origins_print(json_object_get(found, "runs"), f);
}

/* --- plot ------------------------------------------------------------- */

static void plot_files(const json_t *found, FILE *data, FILE *script)
{
	double wanted = 100 * json_get_number(found, "au");
	const json_t *point, *at;
	size_t i, k;

	plot_begin(script);
	fputs("set xlabel 'GPUs'\nset ylabel 'AU (%)'\nset xtics 1\n"
	      "set yrange [0:105]\nset offsets 0.3, 0.3, 0, 0\n"
	      "set key outside right center vertical Left reverse\n",
	      script);
	plot_svg(PLOT, 420, script);
	fprintf(script,
		"plot %.9g with lines dt 2 lc rgb '#707070' title 'wanted'",
		wanted);
	json_array_foreach (json_object_get(found, "points"), i, point) {
		if (!json_array_size(json_object_get(point, "by_gpus")))
			continue;
		fputs(", \\\n     ", script);
		plot_series(script, PLOT ".dat", i,
			    json_get_text(point, "label"));
		json_array_foreach (json_object_get(point, "by_gpus"), k, at)
			fprintf(data, "%" JSON_INTEGER_FORMAT " %.9g\n",
				json_integer_value(json_object_get(at, "gpus")),
				json_get_number(at, "au"));
		fputs("\n\n", data);
	}
	fputs("\nunset output\n", script);
}

static int draw(struct runner *r, const json_t *found, struct err *err)
{
	FILE *d = NULL, *s = NULL;
	int code = plot_open(r, PLOT, &d, &s, err);

	if (code == 0)
		plot_files(found, d, s);
	if (d && fclose(d))
		code = -errno;
	if (s && fclose(s))
		code = -errno;
	return code < 0 ? err_set(err, code, "plot " PLOT ": %s",
				  strerror(-code))
			: plot_gnuplot(PLOT, r, err);
}

/* --- page ------------------------------------------------------------- */

static json_t *page_json(const struct runner *r, const json_t *found)
{
	_cleanup_free_ char *svg = runner_path(r, "plots", PLOT, "svg");
	json_t *doc = json_deep_copy(found), *all = json_array(), *point;
	char text[32];
	size_t i;

	json_array_foreach (json_object_get(doc, "points"), i, point) {
		json_t *values = json_array();

		for (size_t c = 0; c < ARRAY_SIZE(columns); c++) {
			value(point, columns[c].key, text, sizeof(text));
			json_array_append_new(values, json_string(text));
		}
		json_object_set_new(point, "values", values);
	}
	for (size_t c = 0; c < ARRAY_SIZE(columns); c++)
		json_array_append_new(all, json_pack("{s:s, s:s}", "title",
						     columns[c].title, "unit",
						     columns[c].unit));
	json_object_set_new(doc, "columns", all);
	json_add_text(doc, "name", r->w->name);
	json_object_set_new(doc, "title",
			    json_sprintf("How many GPUs does this storage keep "
					 "at %.3g %%?",
					 100 * json_get_number(found, "au")));
	json_object_set_new(doc, "svg",
			    svg ? page_svg(svg, "find",
					   "AU over the number of GPUs")
				: NULL);
	json_object_set_new(doc, "scale",
			    json_sprintf("%.9g", r->w->time_scale));
	return doc;
}

/* --- all -------------------------------------------------------------- */

static int write_page(const struct runner *r, const json_t *found,
		      struct err *err)
{
	json_auto_t *doc = page_json(r, found);

	return page_write(r->out, "find-max.html", "find", doc, err);
}

/* The table (also on stdout unless quiet), the plot, the page, the JSON. */
static int find_report(struct runner *r, const struct run_options *o,
		       const json_t *found, struct err *err)
{
	_cleanup_free_ char *path = util_join(r->out, "find-max.json");
	struct err why = { 0 };
	int code = path ? json_replace(found, path, err) : -ENOMEM;

	if (code == 0)
		code = page_print(r->out, "find-max.txt", o->quiet, print_table,
				  found, err);
	if (code == 0 && draw(r, found, &why) < 0)
		log_warn("%s", why.text);
	if (code == 0)
		code = write_page(r, found, err);
	if (code == 0 && !o->quiet)
		printf("\npage      %s/find-max.html\n", r->out);
	return code;
}

/* Minimum number of steps for a rate; the first one is not counted. arbitrary:
 * two steps besides the first. */
enum { MIN_STEPS = 3 };

/* --- the search ------------------------------------------------------- */

struct tried {
	double au[FIND_RUNS];
	size_t n;
};

struct search {
	find_au_fn au;
	void *ctx;
	double wanted;
	struct tried *tried; /* by number */
};

/* Does the median of `runs` runs with `gpus` reach the utilisation? */
static int holds(struct search *s, uint64_t gpus, size_t runs, bool *ret)
{
	struct tried *t = &s->tried[gpus];
	double sorted[FIND_RUNS];

	for (; t->n < runs; t->n++) {
		int code = s->au(s->ctx, gpus, t->n, &t->au[t->n]);

		if (code < 0)
			return code;
	}
	memcpy(sorted, t->au, sizeof(sorted));
	*ret = stats_spread(sorted, t->n).median >= s->wanted;
	return 0;
}

/* By one run each: `*lo` passes (or is 0), `*hi` = `*lo` + 1 fails (or is
 * `most` + 1). */
static int bracket(struct search *s, uint64_t most, uint64_t *lo, uint64_t *hi)
{
	uint64_t gpus = 1;
	bool ok = true;
	int code = 0;

	*lo = 0;
	*hi = most + 1;
	while (code == 0 && *hi - *lo > 1) {
		code = holds(s, gpus, 1, &ok);
		*(ok ? lo : hi) = gpus;
		/* double until it fails, then bisect */
		gpus = *hi > most ? MIN(2 * gpus, most) : *lo + (*hi - *lo) / 2;
	}
	return code;
}

/*
 * Confirm both sides of the boundary by several runs. The boundary moves in one
 * direction only: once the lower side was moved down, the upper one is
 * confirmed, and vice versa.
 */
static int settle_bounds(struct search *s, uint64_t most, uint64_t *lo,
			 uint64_t *hi)
{
	bool lower = true, upper = false;
	int code = 0;

	for (;;) {
		if (*lo)
			code = holds(s, *lo, FIND_RUNS, &lower);
		if (code == 0 && *lo && !lower) {
			*hi = (*lo)--;
			continue;
		}
		if (code == 0 && *hi <= most)
			code = holds(s, *hi, FIND_RUNS, &upper);
		if (code < 0 || *hi > most || !upper)
			return code;
		*lo = (*hi)++;
	}
}

int find_most(find_au_fn au, void *ctx, double wanted, uint64_t most,
	      uint64_t *ret)
{
	struct search s = { .au = au, .ctx = ctx, .wanted = wanted };
	uint64_t lo = 0, hi;
	int code;

	s.tried = calloc(most + 2, sizeof(*s.tried));
	if (!s.tried)
		return -ENOMEM;
	code = bracket(&s, most, &lo, &hi);
	if (code == 0)
		code = settle_bounds(&s, most, &lo, &hi);
	free(s.tried);
	*ret = lo;
	return code;
}

/* --- one try ---------------------------------------------------------- */

struct point_search {
	struct experiment *e;
	const struct run_options *o;
	size_t point;
	json_t *tries; /* [{gpus, run, au, samples_per_s, steps, disturbed}] */
	json_t *origins;
	struct err err;
};

static double of_last_epoch(const json_t *record, const char *key)
{
	const json_t *epochs = json_object_get(record, "epochs");
	size_t n = json_array_size(epochs);

	return n ? json_get_number(json_array_get(epochs, n - 1), key) : 0;
}

static int note_try(struct point_search *p, uint64_t gpus, size_t run,
		    const json_t *record, double *ret)
{
	const struct metric *m = metric_find(&p->e->w.metrics, "au");
	double steps = of_last_epoch(record, "steps");
	int code = metric_value(m, record, ret);

	if (code < 0)
		return err_set(&p->err, -EIO,
			       "with %" PRIu64 " GPUs: the record has no AU",
			       gpus);
	if (steps < MIN_STEPS)
		return err_set(&p->err, -EIO,
			       "with %" PRIu64 " GPUs an epoch has %.0f steps: "
			       "the dataset or max_steps is too small to tell",
			       gpus, steps);
	json_array_append_new(
		p->tries,
		json_pack("{s:I, s:I, s:f, s:f, s:f, s:b}", "gpus",
			  (json_int_t)gpus, "run", (json_int_t)run + 1, "au",
			  *ret, "samples_per_s",
			  of_last_epoch(record, "samples_per_s"), "steps",
			  steps, "disturbed", disturb_is(record)));
	return origins_add(p->origins, record);
}

static int try_gpus(void *ctx, uint64_t gpus, size_t run, double *ret)
{
	struct point_search *p = ctx;
	struct experiment *e = p->e;
	uint64_t begin = tick_wall();
	json_auto_t *record = NULL;
	struct cell_outcome out;
	char label[90], took[UNITS_TEXT];
	size_t index = run * e->w.n_points + p->point;
	_cleanup_(cell_free) struct cell cell = { 0 };
	int code;

	e->w.gpus = gpus;
	code = workload_cell(&e->w, index, e->r.mounted, &cell);
	if (code < 0)
		return code;
	code = runner_lock(&e->r, lock_of_cell(cell.id), &p->err);
	if (code == 0 && !p->o->fresh)
		record = cell_record(&e->r, &cell);
	if (code == 0 && !record)
		code = cell_run(&e->r, &cell, 1, &out, &p->err);
	runner_unlock(&e->r, lock_of_cell(cell.id));
	if (code == 0 && !record)
		code = again_run(&e->r, &index, 1, false, PROGRESS_OFF);
	if (code == 0 && !record)
		record = cell_record(&e->r, &cell);
	if (code == 0)
		code = note_try(p, gpus, run, record, ret);
	if (code < 0)
		return code;
	workload_label(&e->w, p->point, label, sizeof(label));
	fprintf(stderr,
		"find-max  %s: %" PRIu64 " GPUs, run %zu: AU %.1f %%, %s%s\n",
		label, gpus, run + 1, *ret,
		units_human_duration((double)(tick_wall() - begin), took),
		disturb_is(record) ? ", disturbed by other load" : "");
	return 0;
}

/* --- all points ------------------------------------------------------- */

static int refuse(const struct workload *w, struct err *err)
{
	const struct conf_node *base = conf_node_get(w->root, "base");
	const struct conf_node *node = base;

	if (w->base[RUN_GPUD])
		node = conf_node_get(base, "gpud");
	else if (w->base[RUN_EXEC])
		node = conf_node_get(base, "exec");
	else if (w->jobs.n > 1)
		node = conf_node_get(w->root, "jobs");
	else if (w->base[RUN_TRAIN] &&
		 conf_node_get(w->base[RUN_TRAIN], "gpus"))
		node = conf_node_get(w->base[RUN_TRAIN], "gpus");
	else if (workload_axis(w, "train.gpus") >= 0)
		node = conf_node_get(w->axes_tree, "train.gpus");
	else
		return 0;
	return conf_node_error(node, w->path, err,
			       "--find-max-gpus sets train.gpus of one "
			       "gpemu-train itself");
}

/* One point into `points`; -EINTR and -ENOMEM only. */
static int find_point(struct experiment *e, const struct run_options *o,
		      size_t point, json_t *points, json_t *origins,
		      bool *ret_failed)
{
	struct point_search p = { .e = e,
				  .o = o,
				  .point = point,
				  .tries = json_array(),
				  .origins = origins };
	uint64_t most = 0;
	char label[90];
	int code =
		p.tries ? find_most(try_gpus, &p, 100 * o->au, GPUS_MAX, &most)
			: -ENOMEM;

	e->w.gpus = 0;
	if (e->r.stop.signal || code == -ENOMEM) {
		json_decref(p.tries);
		return e->r.stop.signal ? -EINTR : code;
	}
	if (code < 0) {
		*ret_failed = true;
		workload_label(&e->w, point, label, sizeof(label));
		log_error("%s: %s", label,
			  p.err.text[0] ? p.err.text : strerror(-code));
	}
	json_array_append_new(points,
			      find_point_json(&e->w, point, p.tries, most,
					      code < 0 ? p.err.text : NULL));
	json_decref(p.tries);
	return 0;
}

int find_run(struct experiment *e, const struct run_options *o,
	     bool *ret_failed, json_t **ret_summary, struct err *err)
{
	json_auto_t *points = json_array(), *origins = json_object();
	int code = refuse(&e->w, err);

	if (code == 0)
		code = experiment_ready(e, err);
	for (size_t i = 0; code == 0 && i < e->w.n_points; i++)
		code = find_point(e, o, i, points, origins, ret_failed);
	if (code < 0)
		return code;
	*ret_summary = find_json(&e->r, o->au, points, origins);
	return *ret_summary ? find_report(&e->r, o, *ret_summary, err)
			    : -ENOMEM;
}

/* SPDX-License-Identifier: MIT */
#include "runner/run_check.h"

#include <errno.h>
#include <inttypes.h>

#include "common/units.h"
#include "common/util.h"
#include "runner/run/run_dataset.h"
#include "runner/cell/run_estimate.h"
#include "runner/cell/run_machine.h"
#include "runner/spec/run_evidence.h"
#include "runner/run_loop.h"
#include "runner/page/run_rules.h"

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

int check_print(struct runner *r, FILE *f, struct err *err)
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

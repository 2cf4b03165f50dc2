/* SPDX-License-Identifier: MIT */
#include "runner/run_find.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "common/json.h"
#include "common/log.h"
#include "common/tick.h"
#include "common/units.h"
#include "common/util.h"
#include "emu/gpu/gpus.h"
#include "runner/cell/run_cell.h"
#include "runner/run/run_lock.h"
#include "runner/run_again.h"
#include "runner/run_find_page.h"
#include "runner/spec/run_metric.h"
#include "runner/result/run_origins.h"

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
static int settle(struct search *s, uint64_t most, uint64_t *lo, uint64_t *hi)
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
		code = settle(&s, most, &lo, &hi);
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

	return n ? json_number_value(
			   json_object_get(json_array_get(epochs, n - 1), key))
		 : 0;
}

static bool disturbed(const json_t *record)
{
	return json_is_true(
		json_object_get(json_object_get(record, "cell"), "disturbed"));
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
			  steps, "disturbed", disturbed(record)));
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
	struct cell cell;
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
	cell_free(&cell);
	if (code < 0)
		return code;
	workload_label(&e->w, p->point, label, sizeof(label));
	fprintf(stderr,
		"find-max  %s: %" PRIu64 " GPUs, run %zu: AU %.1f %%, %s%s\n",
		label, gpus, run + 1, *ret,
		units_human_duration((double)(tick_wall() - begin), took),
		disturbed(record) ? ", disturbed by other load" : "");
	return 0;
}

/* --- all points ------------------------------------------------------- */

static int refuse(const struct workload *w, struct err *err)
{
	const struct conf_node *base = conf_node_get(w->root, "base");
	const struct conf_node *node = base;

	if (w->base.gpud)
		node = conf_node_get(base, "gpud");
	else if (w->base.exec)
		node = conf_node_get(base, "exec");
	else if (w->jobs.n > 1)
		node = conf_node_get(w->root, "jobs");
	else if (w->base.train && conf_node_get(w->base.train, "gpus"))
		node = conf_node_get(w->base.train, "gpus");
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

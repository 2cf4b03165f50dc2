/* SPDX-License-Identifier: MIT */
#include "runner/cell/run_estimate.h"

#include <errno.h>
#include <string.h>

#include "common/json.h"
#include "common/tick.h"
#include "common/util.h"
#include "runner/cell/run_record.h"
#include "runner/cell/run_machine.h"
#include "runner/run/run_dataset.h"

/* measured: wall time of a cell minus that of its epochs, 0.6 to 1.2 s over 15
 * shipped workloads, mostly start of mount and loader; 2 idle cores */
#define CELL_OVERHEAD_S 0.9

/* arbitrary: what a user waits for; jobs of shipped workloads take 0.02 to
 * 0.3 s */
#define BUDGET_NS (10 * NS_PER_S)

/* arbitrary: more change the mean but little */
enum { MOST_POINTS = 64 };

struct point {
	/* LATER: there was no time */
	enum { NEW, MEASURED, SIMULATED, LATER, ITSELF, UNKNOWN } how;
	double seconds; /* MEASURED, SIMULATED: of a cell */
};

struct estimator {
	struct runner *r;
	struct estimate *ret;
	uint64_t end_ns; /* of the budget */
	size_t n_tried, n_simulated;
	double sum_s; /* of the simulated points */
	struct point *points;
};

/* --- a job ------------------------------------------------------------ */

/* OUT/estimate-fs.yaml, *ret: what a mount has; *ret_caches: "partitioned", if
 * its nodes share their caches. */
static int write_fs(const struct runner *r, const struct cell_mount *m,
		    char **ret, const char **ret_caches, struct err *err)
{
	json_auto_t *fs = json_copy(m->fs);

	if (!fs || asprintf(ret, "%s/estimate-fs.yaml", r->scratch) < 0)
		return -ENOMEM;
	if (json_object_get(fs, "peers")) {
		*ret_caches = "partitioned";
		json_object_del(fs, "peers");
		json_object_del(fs, "node");
	}
	cell_unwritable(fs);
	return json_write(fs, *ret, err);
}

/* The record of a job that is simulated. -EINVAL: gpemu-train refuses it, or
 * -ETIMEDOUT; with a text. */
static int simulate(struct estimator *e, const struct cell *cell,
		    const struct cell_job *job, json_t **ret, struct err *err)
{
	const struct runner *r = e->r;
	const struct cell_mount *m = &cell->mounts[job->mount];
	_cleanup_free_ char *source = NULL, *fs = NULL;
	json_auto_t *train = json_copy(job->train);
	const char *caches = "private";
	uint64_t now = tick_wall();
	int code = dataset_like(r, m->dataset, &source, err);

	if (code == 0 && r->mounted)
		code = write_fs(r, m, &fs, &caches, err);
	if (code < 0)
		return code;
	/* a check writes no file of the user's */
	json_object_del(train, "dump_order");
	/* those on the host's own disk have no model */
	if ((!r->mounted || !cell_writable(m)) &&
	    json_object_del(train, "checkpoint_every") == 0)
		json_object_set_new(e->ret->left_out, "--checkpoint-every",
				    json_true());
	if (json_object_update_new(
		    train,
		    json_pack("{s:b, s:b, s:s, s:s, s:s, s:s*, s:s*, s:I}",
			      "simulate", true, "approximate", true, "progress",
			      "off", "data", source, "caches", caches,
			      "fs_config", fs, "gpu",
			      cell->gpud ? config_text(r->w, cell->gpud, "gpud",
						       "gpu")
					 : NULL,
			      "seed", (json_int_t)r->w->seed)) < 0)
		return -ENOMEM;
	return runner_simulate(e->r, train,
			       e->end_ns > now ? e->end_ns - now : 1, ret, err);
}

/* --- points ----------------------------------------------------------- */

static void keep_left_out(struct estimate *e, json_t *record)
{
	const json_t *list =
		json_object_get(json_object_get(record, "fs"), "left_out");
	json_t *what;
	size_t i;

	json_array_foreach ((json_t *)list, i, what)
		json_object_set_new(e->left_out, json_string_value(what),
				    json_true());
	json_array_append_new(e->records, record);
}

static int simulate_point(struct estimator *e, const struct cell *cell,
			  struct err *err)
{
	const struct workload *w = e->r->w;
	double end = 0, busy = 0, n_shared = 0;

	for (size_t i = 0; i < cell->n_jobs; i++)
		if (cell_is_exec(&cell->jobs[i]))
			return err_set(err, -EINVAL, "a user's program");
	if (cell->store_only)
		return err_set(err, -EINVAL, "jobs on an object store");
	if (cell->gpud)
		n_shared = config_number(w, cell->gpud, "gpud", "gpus");
	for (size_t i = 0; i < cell->n_jobs; i++) {
		const struct cell_job *job = &cell->jobs[i];
		json_t *record, *totals;
		int code = simulate(e, cell, job, &record, err);

		if (code < 0)
			return code;
		totals = json_object_get(record, "totals");
		end = MAX(end, (double)job->start_ns * 1e-9 +
				       json_get_number(totals, "seconds"));
		if (n_shared >= 1)
			busy += json_get_number(totals, "compute_s") / n_shared;
		keep_left_out(e->ret, record);
	}
	e->points[cell->point].seconds =
		MAX(end, busy) * w->time_scale + CELL_OVERHEAD_S;
	e->sum_s += e->points[cell->point].seconds;
	e->n_simulated++;
	return 0;
}

/* Wall seconds of an earlier run of the point; -ENOENT. */
static int known_seconds(const struct runner *r, size_t point, double *ret)
{
	for (size_t i = 0; i < r->w->repetitions; i++) {
		json_auto_t *record = NULL;
		_cleanup_(cell_free) struct cell cell = { 0 };

		if (workload_cell(r->w, i * r->w->n_points + point, r->mounted,
				  &cell) < 0)
			return -ENOMEM;
		record = cell_record(r, &cell);
		if (!record)
			continue;
		*ret = json_get_number(json_object_get(record, "cell"),
				       "wall_seconds");
		return 0;
	}
	return -ENOENT;
}

/* Where the time of a new point comes from. */
static int look(struct estimator *e, const struct cell *cell)
{
	struct point *p = &e->points[cell->point];
	int code = known_seconds(e->r, cell->point, &p->seconds);
	struct err err = { 0 };

	if (code != -ENOENT) {
		p->how = MEASURED;
		return code;
	}
	p->how = cell_is_simulated(cell) ? ITSELF
		 : e->n_tried == MOST_POINTS || tick_wall() >= e->end_ns
			 ? LATER
			 : SIMULATED;
	if (p->how != SIMULATED)
		return 0;
	e->n_tried++;
	code = simulate_point(e, cell, &err);
	if (code == 0 || code == -ENOMEM || code == -EINTR)
		return code;
	p->how = code == -ETIMEDOUT ? LATER : UNKNOWN;
	if (p->how == LATER)
		err_set(&e->ret->why, code,
			"its simulation takes longer than %g s",
			(double)BUDGET_NS / NS_PER_S);
	else
		err_set(&e->ret->why, code, "%s", err.text);
	return 0;
}

/* --- cells ------------------------------------------------------------ */

static void add_cell(struct estimator *e, size_t index)
{
	const struct workload *w = e->r->w;
	const struct point *p = &e->points[index % w->n_points];
	struct estimate *ret = e->ret;
	double s = p->seconds;

	if (p->how == LATER && e->n_simulated)
		s = e->sum_s / (double)e->n_simulated;
	ret->n_measured += p->how == MEASURED;
	ret->n_simulated += p->how == SIMULATED;
	ret->n_itself += p->how == ITSELF;
	ret->n_mean += p->how == LATER && e->n_simulated;
	ret->n_unknown += p->how == UNKNOWN ||
			  (p->how == LATER && !e->n_simulated);
	/* warm-ups precede the first repetition */
	ret->seconds += index < w->n_points ? s * (1 + (double)w->warmup) : s;
}

int estimate_run(struct runner *r, const size_t *todo, size_t n,
		 struct estimate *ret, struct err *err)
{
	struct estimator e = {
		.r = r,
		.ret = ret,
		.end_ns = tick_wall() + BUDGET_NS,
		.points = calloc(r->w->n_points, sizeof(*e.points)),
	};
	int code = e.points ? 0 : -ENOMEM;

	*ret = (struct estimate){ .n_cells = n,
				  .records = json_array(),
				  .left_out = json_object() };
	for (size_t i = 0; code == 0 && i < n; i++) {
		_cleanup_(cell_free) struct cell cell = { 0 };

		if (e.points[todo[i] % r->w->n_points].how != NEW)
			continue;
		code = workload_configure(r->w, todo[i], &cell);
		if (code == 0)
			code = look(&e, &cell);
	}
	for (size_t i = 0; code == 0 && i < n; i++)
		add_cell(&e, todo[i]);
	free(e.points);
	return code < 0 ? err_set(err, code, "%s", strerror(-code)) : 0;
}

void estimate_fini(struct estimate *e)
{
	json_decref(e->records);
	json_decref(e->left_out);
}

/* SPDX-License-Identifier: MIT */
/*
 * The points: all combinations of the axes, or a sample of them, less those
 * that are excluded. They are kept as rows of indices of values, in ascending
 * order, without equal ones.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/rng.h"
#include "common/util.h"
#include "runner/spec/run_workload.h"

/* arbitrary: more is an error in the axes, not a feasible experiment */
enum { MAX_POINTS = 100000 };

/* How often a sample is drawn before it counts as impossible. arbitrary: all
 * of 1000 combinations in a random order take about 8 draws for each; half a
 * second at worst. */
enum { DRAWS_PER_POINT = 200, MOST_LHS = 1000, MOST_LHS_POINTS = 1000000 };

static uint32_t *row_at(const struct workload *w, size_t point)
{
	return &w->points[point * w->n_axes];
}

static bool is_excluded(const struct workload *w, const uint32_t *row)
{
	struct conf_node *const *items = w->excludes.items;

	for (size_t i = 0; i < w->excludes.n; i++)
		if (workload_row_matches(w, row, items[i]))
			return true;
	return false;
}

/* --- all combinations ------------------------------------------------- */

/* The next combination, the last axis being the lowest digit; false: that was
 * the last one. */
static bool advance(const struct workload *w, uint32_t *row)
{
	for (size_t a = w->n_axes; a-- > 0;) {
		if (++row[a] < w->axes[a].n_points)
			return true;
		row[a] = 0;
	}
	return false;
}

static int make_grid(struct workload *w, struct err *err)
{
	uint32_t row[WORKLOAD_MAX_AXES] = { 0 };
	size_t n = 1;

	for (size_t a = 0; a < w->n_axes; a++) {
		n *= w->axes[a].n_points;
		if (n > MAX_POINTS)
			return conf_node_error(w->axes_tree, w->path, err,
					       "more than %d points",
					       MAX_POINTS);
	}
	w->points = calloc(n * MAX(w->n_axes, 1u), sizeof(*w->points));
	if (!w->points)
		return err_set(err, -ENOMEM, "out of memory");
	do {
		if (!is_excluded(w, row))
			memcpy(row_at(w, w->n_points++), row,
			       w->n_axes * sizeof(*row));
	} while (advance(w, row));
	return 0;
}

/* --- samples ---------------------------------------------------------- */

static void sort_rows(struct workload *w)
{
	size_t n = w->n_axes;

	qsort_r(w->points, w->n_points, n * sizeof(*w->points),
		workload_compare_rows, &n);
}

/* Sorted, is each row new and allowed? */
static bool is_sound(const struct workload *w)
{
	size_t n = w->n_axes;

	for (size_t i = 0; i < w->n_points; i++)
		if (is_excluded(w, row_at(w, i)) ||
		    (i && !workload_compare_rows(row_at(w, i - 1), row_at(w, i),
						 &n)))
			return false;
	return true;
}

/* 0 to n - 1 in a random order, dealt to the values of one axis: each as often
 * as any other, or once more. */
static void deal(struct workload *w, size_t axis, uint64_t nth, uint32_t *order)
{
	struct rng rng = rng_stream(w->sample.seed, w->axes[axis].name,
				    UINT64_MAX - nth);
	uint64_t n = w->n_points;

	for (size_t i = 0; i < n; i++)
		order[i] = (uint32_t)i;
	rng_shuffle_u32(&rng, order, n);
	for (size_t i = 0; i < n; i++)
		row_at(w, i)[axis] =
			(uint32_t)(order[i] * w->axes[axis].n_points / n);
}

/* Latin hypercubes, until one has no excluded and no equal points. */
static bool draw_lhs(struct workload *w, uint32_t *order)
{
	size_t most = MIN(MOST_LHS, MOST_LHS_POINTS / w->n_points);

	for (size_t nth = 0; nth < most; nth++) {
		for (size_t a = 0; a < w->n_axes; a++)
			deal(w, a, nth, order);
		sort_rows(w);
		if (is_sound(w))
			return true;
	}
	return false;
}

/* Is row `i` like an earlier one? */
static bool is_repeated(const struct workload *w, size_t i)
{
	size_t n = w->n_axes;

	for (size_t k = 0; k < i; k++)
		if (!workload_compare_rows(row_at(w, k), row_at(w, i), &n))
			return true;
	return false;
}

/* Points drawn one by one; the values of a range, which are random themselves,
 * are taken once each. */
static bool draw_random(struct workload *w, uint32_t *order)
{
	struct rng rng = rng_stream(w->sample.seed, "sample", 0);
	size_t draws = DRAWS_PER_POINT * w->n_points;

	for (size_t a = 0; a < w->n_axes; a++)
		deal(w, a, 0, order);
	for (size_t i = 0; i < w->n_points; i++) {
		uint32_t *row = row_at(w, i);

		do {
			for (size_t a = 0; a < w->n_axes; a++)
				if (w->axes[a].n_points != w->n_points)
					row[a] = (uint32_t)rng_below(
						&rng, w->axes[a].n_points);
			if (!draws--)
				return false;
		} while (is_excluded(w, row) || is_repeated(w, i));
	}
	sort_rows(w);
	return true;
}

static int make_sample(struct workload *w, struct err *err)
{
	_cleanup_free_ uint32_t *order = NULL;
	bool lhs = w->sample.kind == SAMPLE_LHS;

	if (!w->n_axes)
		return conf_node_error(conf_node_get(w->root, "sample"),
				       w->path, err, "a sample needs axes");
	w->n_points = w->sample.points;
	w->points = calloc(w->n_points * w->n_axes, sizeof(*w->points));
	order = calloc(w->n_points, sizeof(*order));
	if (!w->points || !order)
		return err_set(err, -ENOMEM, "out of memory");
	if (lhs ? draw_lhs(w, order) : draw_random(w, order))
		return 0;
	return conf_node_error(conf_node_get(w->root, "sample"), w->path, err,
			       "found no %s of %zu different points that are "
			       "not excluded%s",
			       lhs ? "Latin hypercube" : "sample", w->n_points,
			       lhs ? ": take fewer points, or kind: random"
				   : "");
}

/* --- all -------------------------------------------------------------- */

static int check_excludes(const struct workload *w, struct err *err)
{
	struct conf_node *const *items = w->excludes.items;
	int r = 0;

	for (size_t i = 0; r == 0 && i < w->excludes.n; i++) {
		r = workload_check_where(w, items[i], true, err);
		if (r == 0 && !items[i]->n)
			r = conf_node_error(items[i], w->path, err,
					    "this excludes all points");
	}
	return r;
}

int workload_make_points(struct workload *w, struct err *err)
{
	int r = check_excludes(w, err);

	if (r == 0)
		r = w->sample.points ? make_sample(w, err) : make_grid(w, err);
	if (r == 0 && !w->n_points)
		r = conf_node_error(conf_node_get(w->root, "exclude"), w->path,
				    err, "all points are excluded");
	return r;
}

/* SPDX-License-Identifier: MIT */
/*
 * Reduces a table of all batch sizes to the rows that matter.
 *
 * A kept row has its measured values, including spikes and dips: if cuDNN uses
 * another algorithm at one batch size, a user of that batch size gets the time
 * of the real device. A row may be dropped if it lies on the line between two
 * kept rows, within a tolerance.
 *
 * The tolerance is 1 %. Where the measurement itself was not repeatable to
 * that, a table that follows each wiggle is longer, not better: there it is
 * three standard deviations of the noise, but never more than twice what was
 * asked for, since a wiggle can also be real (kernels that like multiples of
 * eight). Without that bound small batch sizes came out up to 26 % off, with
 * it the six shipped tables are 45 % longer. The noise is estimated at each
 * point and for each column: of the 17 points around it, how far each is from
 * the middle of its two neighbours, relative to that middle. A smooth curve
 * gives 0 there and white noise of deviation s gives a deviation of
 * s sqrt(3/2); the median of the absolute values, times 1.4826 (normal
 * distribution) and over sqrt(3/2), is s, and single spikes and steps do not
 * move it. Only points whose neighbours are one batch size away count, so
 * that the curve's own bend is not taken for noise.
 *
 * The fewest rows are a shortest path: an edge from point i to point j may be
 * taken when the line between them passes all points between. With i fixed,
 * each point between narrows the cone of slopes that pass it; j can be
 * reached when its slope is in the cone, and when a column's cone is empty no
 * later j can. So each i costs as long as its cone lives. No edge but that
 * between neighbours crosses the jump of the transfer: what is left out is
 * found again from one side of it.
 */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "common/util.h"
#include "emu/profile/profile_table.h"

enum {
	WINDOW = 8,    /* points to either side for the noise */
	MIN_POINTS = 5 /* fewer say nothing about noise */
};

void table_sort(double *v, size_t n)
{
	qsort(v, n, sizeof(*v), util_compare_double);
}

double table_median(double *v, size_t n)
{
	table_sort(v, n);
	return n % 2 ? v[n / 2] : (v[n / 2 - 1] + v[n / 2]) / 2;
}

/* Relative standard deviation around point i. */
static double noise(const struct table_model *m, size_t i, size_t column)
{
	const struct table_point *p = m->points;
	size_t from = i > WINDOW ? i - WINDOW : 1, n = 0;
	double d[2 * WINDOW + 1];

	for (size_t k = from; k + 1 < m->n && k <= i + WINDOW; k++) {
		double middle = (p[k - 1].v[column] + p[k + 1].v[column]) / 2;

		if (p[k + 1].batch - p[k - 1].batch == 2 && middle > 0)
			d[n++] = fabs(p[k].v[column] - middle) / middle;
	}
	if (n < MIN_POINTS)
		return 0;
	return 1.4826 * table_median(d, n) / sqrt(1.5);
}

double table_tolerance(const struct table_model *m, size_t i, size_t column,
		       double tolerance)
{
	double noisy = fmin(3 * noise(m, i, column), 2 * tolerance);

	return m->points[i].v[column] * fmax(tolerance, noisy);
}

/* The five numbers of a row by column. */
static double table_row_value(const struct gpu_row *row, size_t column)
{
	const double v[TABLE_COLUMNS] = { row->forward_ms, row->backward_ms,
					  row->transfer_ms, row->peak_mib,
					  row->persistent_mib };

	return v[column];
}

/* Four digits: at most 0.05 % off. */
static double rounded(double v)
{
	char text[32];

	snprintf(text, sizeof(text), "%.4g", v);
	return strtod(text, NULL);
}

static struct gpu_row row_of(const struct table_point *p)
{
	return (struct gpu_row){ .batch = p->batch,
				 .forward_ms = rounded(p->v[0]),
				 .backward_ms = rounded(p->v[1]),
				 .transfer_ms = rounded(p->v[2]),
				 .peak_mib = rounded(p->v[3]),
				 .persistent_mib = rounded(p->v[4]) };
}

struct cone {
	double low[TABLE_COLUMNS], high[TABLE_COLUMNS];
};

struct search {
	const struct table_model *m;
	uint64_t jump;	      /* the last batch below it */
	struct gpu_row *rows; /* all points, rounded */
	double *tolerance;    /* n x TABLE_COLUMNS */
	size_t *length;	      /* rows on the best way to here; 0: none yet */
	size_t *before;	      /* the row before, on that way */
};

static bool reaches(const struct search *s, const struct cone *cone, size_t i,
		    size_t j)
{
	double dx = (double)(s->rows[j].batch - s->rows[i].batch);

	for (size_t c = 0; c < TABLE_COLUMNS; c++) {
		double slope = (table_row_value(&s->rows[j], c) -
				table_row_value(&s->rows[i], c)) /
			       dx;

		if (slope < cone->low[c] || slope > cone->high[c])
			return false;
	}
	return true;
}

/* Let the cone pass point j; false when nothing is left of it. */
static bool narrow(const struct search *s, struct cone *cone, size_t i,
		   size_t j)
{
	double dx = (double)(s->rows[j].batch - s->rows[i].batch);
	bool alive = true;

	for (size_t c = 0; c < TABLE_COLUMNS; c++) {
		double y =
			s->m->points[j].v[c] - table_row_value(&s->rows[i], c);
		double t = s->tolerance[j * TABLE_COLUMNS + c];

		cone->low[c] = fmax(cone->low[c], (y - t) / dx);
		cone->high[c] = fmin(cone->high[c], (y + t) / dx);
		alive = alive && cone->low[c] <= cone->high[c];
	}
	return alive;
}

static bool crosses(const struct search *s, size_t i, size_t j)
{
	return s->rows[i].batch <= s->jump && s->rows[j].batch > s->jump;
}

static void extend(struct search *s, size_t i)
{
	struct cone cone;

	for (size_t c = 0; c < TABLE_COLUMNS; c++) {
		cone.low[c] = -INFINITY;
		cone.high[c] = INFINITY;
	}
	for (size_t j = i + 1; j < s->m->n; j++) {
		if (j > i + 1 && crosses(s, i, j))
			return;
		if (reaches(s, &cone, i, j) &&
		    (!s->length[j] || s->length[i] + 1 < s->length[j])) {
			s->length[j] = s->length[i] + 1;
			s->before[j] = i;
		}
		if (!narrow(s, &cone, i, j))
			return;
	}
}

static int thin(struct search *s, double tolerance, struct gpu_row **ret,
		size_t *ret_n)
{
	size_t n = s->m->n, k, at = n - 1;

	for (size_t i = 0; i < n; i++) {
		s->rows[i] = row_of(&s->m->points[i]);
		for (size_t c = 0; c < TABLE_COLUMNS; c++)
			s->tolerance[i * TABLE_COLUMNS + c] =
				table_tolerance(s->m, i, c, tolerance);
	}
	s->length[0] = 1;
	for (size_t i = 0; i < n; i++)
		extend(s, i); /* each is reached: its neighbour always is */
	k = s->length[at];
	*ret = calloc(k, sizeof(**ret));
	if (!*ret)
		return -ENOMEM;
	*ret_n = k;
	while (k) {
		(*ret)[--k] = s->rows[at];
		at = s->before[at];
	}
	return 0;
}

int table_thin(const struct table_model *m, uint64_t jump, double tolerance,
	       struct gpu_row **ret, size_t *ret_n)
{
	_cleanup_free_ struct gpu_row *rows = calloc(m->n, sizeof(*rows));
	_cleanup_free_ double *tol = calloc(m->n, TABLE_COLUMNS * sizeof(*tol));
	_cleanup_free_ size_t *length = calloc(m->n, sizeof(*length));
	_cleanup_free_ size_t *before = calloc(m->n, sizeof(*before));
	struct search s = { m, jump, rows, tol, length, before };

	if (!rows || !tol || !length || !before)
		return -ENOMEM;
	return thin(&s, tolerance, ret, ret_n);
}

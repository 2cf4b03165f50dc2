/* SPDX-License-Identifier: MIT */
#include "emu/profile/profile_table.h"

#include <errno.h>
#include <math.h>
#include <string.h>

#include "common/text/rows.h"
#include "common/util.h"

enum { MODEL, BATCH, FIRST, N_COLUMNS = FIRST + TABLE_COLUMNS };

static const char *const columns[N_COLUMNS] = {
	"model",      "batch_size", "forward_s",      "backward_s",
	"transfer_s", "peak_mib",   "persistent_mib",
};

/* arbitrary: more samples than any GPU has room for */
enum { BATCH_MAX = 1048576 };
/* Above any valid cell; the memory tables contain diverged or negative fits,
 * which table_clean_memory replaces. */
static const double MOST = 1e9;

const char *table_column_name(size_t column)
{
	static const char *const names[TABLE_COLUMNS] = {
		"forward_ms", "backward_ms", "transfer_ms", "peak_mib",
		"persistent_mib"
	};

	return names[column];
}

static bool is_time(size_t column)
{
	return column < 3;
}

void table_free(struct table *t)
{
	for (size_t i = 0; i < t->n; i++) {
		free(t->models[i].name);
		free(t->models[i].source);
		free(t->models[i].points);
	}
	free(t->models);
	*t = (struct table){ 0 };
}

struct table_model *table_find(const struct table *t, const char *name)
{
	for (size_t i = 0; i < t->n; i++)
		if (!strcmp(t->models[i].name, name))
			return &t->models[i];
	return NULL;
}

static int more_models(struct table *t, const char *name)
{
	struct table_model *more =
		realloc(t->models, (t->n + 1) * sizeof(*more));

	if (!more)
		return -ENOMEM;
	t->models = more;
	more[t->n] = (struct table_model){ .name = strdup(name) };
	t->n++;
	return more[t->n - 1].name ? 0 : -ENOMEM;
}

/* Batch sizes stay in ascending order. */
static int insert(struct table_model *m, const struct table_point *point,
		  bool average)
{
	size_t at = m->n;
	struct table_point *p;

	while (at && m->points[at - 1].batch > point->batch)
		at--;
	p = at ? &m->points[at - 1] : NULL;
	if (p && p->batch == point->batch) {
		if (!average)
			return -EEXIST;
		p->n_runs = MAX(p->n_runs, 1u) + 1;
		for (size_t c = 0; c < TABLE_COLUMNS; c++)
			p->v[c] += (point->v[c] - p->v[c]) / p->n_runs;
		return 0;
	}
	p = realloc(m->points, (m->n + 1) * sizeof(*p));
	if (!p)
		return -ENOMEM;
	m->points = p;
	memmove(p + at + 1, p + at, (m->n - at) * sizeof(*p));
	p[at] = *point;
	m->n++;
	return 0;
}

int table_add(struct table *t, const char *model,
	      const struct table_point *point, bool average,
	      struct table_model **ret)
{
	int r = table_find(t, model) ? 0 : more_models(t, model);

	if (r < 0)
		return r;
	*ret = table_find(t, model);
	return insert(*ret, point, average);
}

bool table_column_given(const struct table_model *m, size_t column)
{
	for (size_t i = 0; i < m->n; i++)
		if (m->points[i].v[column] != 0)
			return true;
	return false;
}

static double step_of(const struct table_point *p)
{
	return p->v[0] + p->v[1];
}

double table_gap_error(const struct table_model *m)
{
	const struct table_point *p = m->points;
	double worst = 0;
	bool gap = false;

	for (size_t i = 1; i < m->n; i++)
		gap |= p[i].batch != p[i - 1].batch + 1;
	if (!gap || m->n < 3)
		return gap;
	for (size_t i = 1; i + 1 < m->n; i++) {
		double t = (double)(p[i].batch - p[i - 1].batch) /
			   (double)(p[i + 1].batch - p[i - 1].batch);
		double line = step_of(&p[i - 1]) +
			      t * (step_of(&p[i + 1]) - step_of(&p[i - 1]));

		worst = fmax(worst, fabs(line / step_of(&p[i]) - 1));
	}
	return fmin(worst, 1);
}

static int read_point(const struct rows *c, const int *at,
		      struct table_point *ret)
{
	double batch, v;
	int r = rows_number(c, at[BATCH], columns[BATCH], 1, BATCH_MAX, &batch);

	if (r < 0)
		return r;
	if (batch != floor(batch))
		return rows_error(c, &c->f[at[BATCH]],
				  "batch size %g is not whole", batch);
	ret->batch = (uint64_t)batch;
	for (size_t i = 0; i < TABLE_COLUMNS; i++) {
		r = rows_number(c, at[FIRST + i], columns[FIRST + i],
				is_time(i) ? 0 : -MOST,
				is_time(i) ? MOST / 1e3 : MOST, &v);
		if (r < 0)
			return r;
		ret->v[i] = is_time(i) ? v * 1e3 : v;
	}
	return 0;
}

static int add_row(struct table *t, const struct rows *c, const int *at)
{
	struct table_model *m = t->n ? &t->models[t->n - 1] : NULL;
	struct table_point point = { 0 };
	_cleanup_free_ char *name = NULL;
	int r = rows_check_width(c);

	if (r == 0)
		r = rows_text(c, at[MODEL], &name);
	if (r == 0)
		r = read_point(c, at, &point);
	if (r < 0)
		return r;
	if (!name)
		return rows_error(c, NULL, "a row without a model");
	if (!m || strcmp(m->name, name)) {
		if (table_find(t, name))
			return rows_error(c, NULL,
					  "the rows of '%s' are not contiguous",
					  name);
	} else if (point.batch <= m->points[m->n - 1].batch) {
		return rows_error(c, NULL, "batch sizes must ascend");
	}
	return table_add(t, name, &point, false, &m);
}

static int add_rows(struct table *t, struct rows *c)
{
	int at[N_COLUMNS];
	int r = rows_begin_table(c, columns, N_COLUMNS, N_COLUMNS, at);
	size_t n = 0;

	for (; r == 0 && rows_next(c); n++)
		r = add_row(t, c, at);
	return r == 0 && !n ? rows_error(c, NULL, "no rows") : r;
}

int table_parse(const char *bytes, size_t n, const char *name, struct table *t,
		struct err *err)
{
	struct rows c = {
		.name = name, .at = bytes, .end = bytes + n, .err = err
	};

	return add_rows(t, &c);
}

/* table_parse of a file. */
static int table_load(const char *path, struct table *ret, struct err *err)
{
	_cleanup_free_ char *bytes = NULL;
	struct rows c;
	int r = rows_load(&c, path, &bytes, err);

	return r == 0 ? add_rows(ret, &c) : r;
}

static int cover_model(struct table_model *m, const struct rows *c, int at)
{
	double last;
	size_t n = 0;
	int r = rows_number(c, at, "the last batch", 1, BATCH_MAX, &last);

	if (r < 0)
		return r;
	while (n < m->n && (double)m->points[n].batch <= last)
		n++;
	if (!n || (double)m->points[n - 1].batch != last)
		return rows_error(c, &c->f[at],
				  "batch size %g of %s is not in the table",
				  last, m->name);
	m->limit = n < m->n;
	m->n = n;
	return 0;
}

int table_cover(struct table *t, const char *path, const char *gpu,
		struct err *err)
{
	static const char *const wanted[] = { "gpu", "model",
					      "last_measured_batch_compute" };
	_cleanup_free_ char *bytes = NULL;
	int at[ARRAY_SIZE(wanted)];
	size_t covered = 0;
	struct rows c;
	int r = rows_load(&c, path, &bytes, err);

	if (r == 0)
		r = rows_begin_table(&c, wanted, ARRAY_SIZE(wanted),
				     ARRAY_SIZE(wanted), at);
	while (r == 0 && rows_next(&c)) {
		_cleanup_free_ char *model = NULL;
		struct table_model *m;

		r = rows_check_width(&c);
		if (r == 0)
			r = rows_text(&c, at[1], &model);
		m = model ? table_find(t, model) : NULL;
		if (r < 0 || !m || !rows_is(&c.f[at[0]], gpu))
			continue;
		r = cover_model(m, &c, at[2]);
		covered++;
	}
	if (r == 0 && covered != t->n)
		r = err_set(err, -EINVAL, "%s: %zu of %zu models of %s", path,
			    covered, t->n, gpu);
	return r;
}

/* --- memory cells ----------------------------------------------------- */

enum { PEAK = 3, PERSISTENT = 4 };

static const struct table_point *point_at(const struct table_model *m,
					  uint64_t batch)
{
	for (size_t i = 0; i < m->n; i++)
		if (m->points[i].batch == batch)
			return &m->points[i];
	return NULL;
}

static bool possible(const struct table_model *m, double memory_mib)
{
	for (size_t i = 0; i < m->n; i++) {
		const double *v = m->points[i].v;

		if (v[PERSISTENT] < 0 || v[PERSISTENT] > v[PEAK] ||
		    v[PEAK] > memory_mib)
			return false;
	}
	return true;
}

/* Median over the batch sizes that both have; 0 when there is none. */
static int deviation(const struct table_model *m, const struct table_model *ref,
		     double *ret)
{
	_cleanup_free_ double *d = calloc(m->n, sizeof(*d));
	size_t n = 0;

	if (!d)
		return -ENOMEM;
	for (size_t i = 0; i < m->n; i++) {
		const struct table_point *p = point_at(ref, m->points[i].batch);

		if (p && p->v[PEAK] > 0)
			d[n++] = fabs(m->points[i].v[PEAK] / p->v[PEAK] - 1);
	}
	*ret = n ? table_median(d, n) : 0;
	return 0;
}

static int clean_model(struct table_model *m, const struct table_model *ref,
		       double memory_mib, struct err *err)
{
	bool good = possible(m, memory_mib);
	double off = 0;
	int r = ref ? deviation(m, ref, &off) : 0;

	if (r < 0)
		return r;
	if (good && off <= 0.10)
		return 0;
	for (size_t i = 0; i < m->n; i++) {
		const struct table_point *p =
			ref ? point_at(ref, m->points[i].batch) : NULL;

		if (!p)
			return err_set(err, -EINVAL,
				       "%s: impossible memory cells, and no "
				       "other table has batch size %llu",
				       m->name,
				       (unsigned long long)m->points[i].batch);
		m->points[i].v[PEAK] = p->v[PEAK];
		m->points[i].v[PERSISTENT] = p->v[PERSISTENT];
	}
	m->memory_replaced = true;
	return 0;
}

/*
 * Replace impossible memory cells, for the whole model, by those of
 * `canonical`: a peak above `memory_mib` although the step ran, a persistent
 * part below 0 or above the peak, or a peak that deviates from the canonical
 * one by more than 10 % in the median. Allocations hardly depend on the GPU:
 * elsewhere the tables agree to 1 %.
 */
static int table_clean_memory(struct table *t, const struct table *canonical,
			      double memory_mib, struct err *err)
{
	for (size_t i = 0; i < t->n; i++) {
		struct table_model *m = &t->models[i];
		const struct table_model *ref =
			canonical ? table_find(canonical, m->name) : NULL;
		int r = clean_model(m, ref, memory_mib, err);

		if (r < 0)
			return r;
	}
	return 0;
}

int table_clean_memory_from(struct table *t, const char *path,
			    const char *memory_from, double memory_mib,
			    struct err *err)
{
	struct table other = { 0 };
	int r = 0;

	if (memory_from)
		r = table_load(memory_from, &other, err);
	if (r == 0)
		r = table_clean_memory(t, memory_from ? &other : NULL,
				       memory_mib, err);
	if (r < 0)
		err_prefix(err, "%s", path);
	table_free(&other);
	return r;
}

double table_error(const struct gpu_profile *p, const struct gpu_model *m,
		   const struct table_point *point, size_t column)
{
	struct gpu_cost c;
	double v, want = point->v[column];

	gpu_profile_cost(p, m, point->batch, &c);
	v = column == 0	  ? (double)c.forward_ns / 1e6
	    : column == 1 ? (double)c.backward_ns / 1e6
	    : column == 2 ? (double)c.transfer_pageable_ns / 1e6
	    : column == 3 ? c.peak_mib
			  : c.persistent_mib;
	return want > 0 ? fabs(v / want - 1) : v > 0 ? 1 : 0;
}

double table_stated_error(const struct gpu_profile *p,
			  const struct gpu_model *m,
			  const struct table_model *t)
{
	double worst = t->n > 1 ? table_gap_error(t) : 0;

	/* a single row has no line whose error could be told */
	for (size_t i = 0; t->n > 1 && i < t->n; i++)
		for (size_t c = 0; c < TABLE_COLUMNS; c++)
			worst = fmax(worst,
				     table_error(p, m, &t->points[i], c));
	return worst;
}

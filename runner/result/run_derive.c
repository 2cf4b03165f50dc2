/* SPDX-License-Identifier: MIT */
/*
 * Derived metrics. Operands are taken from the same repetition, even at other
 * points: cells of one repetition share the seed, so common random effects
 * cancel.
 */
#include <errno.h>
#include <math.h>
#include <string.h>

#include "common/util.h"
#include "runner/spec/run_expect.h"
#include "runner/result/run_result.h"

struct derive {
	const struct result *res;
	size_t point, repetition;
};

static size_t place_of(const struct result *res, const struct metric *m)
{
	size_t i = 0;

	while (res->metrics[i] != m)
		i++;
	return i;
}

static int value(void *ctx, const struct expr_ref *ref, size_t i, double *ret)
{
	const struct derive *d = ctx;
	const struct workload *w = d->res->r->w;
	const struct metric *m = metric_find(&w->metrics, ref->name);
	size_t point = d->point;

	if (expect_move(w, ref, i, &point) < 0)
		return -ERANGE;
	if (!m)
		return workload_number(workload_setting(w, point, ref->name),
				       ret);
	*ret = *result_value(d->res, point, d->repetition, place_of(d->res, m));
	return isnan(*ret) ? -ENOENT : 0;
}

static int derive_one(struct result *res, const struct metric *m)
{
	const struct workload *w = res->r->w;
	double scale = m->scale != 0 ? m->scale : 1;

	for (size_t i = 0; i < w->n_points * w->repetitions; i++) {
		struct derive d = { res, i / w->repetitions,
				    i % w->repetitions };
		struct expr_result r;
		const char *missing;
		int code = expr_eval(m->expr, value, &d, &r, &missing);

		if (code == -ENOMEM)
			return code;
		if (code == 0)
			*result_value(res, d.point, d.repetition,
				      place_of(res, m)) = r.side[0] * scale;
	}
	return 0;
}

int result_derive(struct result *res)
{
	const struct workload *w = res->r->w;
	const struct metric *m = w->metrics.items;
	int code = 0;

	for (size_t i = 0; code == 0 && i < w->metrics.n; i++)
		if (m[i].of)
			code = derive_one(res, &m[i]);
	return code;
}

/* SPDX-License-Identifier: MIT */
/*
 * Derived metrics. Operands are taken from the same repetition, even at other
 * points: cells of one repetition share the seed, so common random effects
 * cancel.
 */
#include <errno.h>
#include <math.h>

#include "runner/spec/run_expect.h"
#include "runner/result/run_result.h"

struct derive {
	const struct result *res;
	size_t point, repetition;
	bool disturbed; /* an operand is */
};

static int value(void *ctx, const struct expr_ref *ref, size_t i, double *ret)
{
	struct derive *d = ctx;
	const struct workload *w = d->res->r->w;
	const struct metric *m = metric_find(&w->metrics, ref->name);
	size_t point = d->point, at;

	if (expect_move(w, ref, i, &point) < 0)
		return i ? -ERANGE : -ENOENT;
	if (!m)
		return workload_number(workload_setting(w, point, ref->name),
				       ret);
	at = result_place(d->res, m);
	*ret = *result_value(d->res, point, d->repetition, at);
	if (*result_disturbed(d->res, point, d->repetition, at))
		d->disturbed = true;
	return isnan(*ret) ? -ENOENT : 0;
}

static int derive_one(struct result *res, const struct metric *m)
{
	const struct workload *w = res->r->w;
	double scale = m->scale != 0 ? m->scale : 1;
	size_t at = result_place(res, m);

	for (size_t i = 0; i < w->n_points * w->repetitions; i++) {
		struct derive d = { .res = res,
				    .point = i / w->repetitions,
				    .repetition = i % w->repetitions };
		struct expr_result r;
		const char *missing;
		int code = expr_eval(m->expr, value, &d, &r, &missing);

		if (code == -ENOMEM)
			return code;
		if (code < 0)
			continue;
		*result_value(res, d.point, d.repetition, at) =
			r.side[0] * scale;
		*result_disturbed(res, d.point, d.repetition, at) = d.disturbed;
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

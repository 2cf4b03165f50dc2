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
	/* the operand, counted as the expression is read, that is moved by its
	 * doubt; how many there are, and whether one has a doubt */
	size_t moved, n;
	bool doubtful;
	int sign;
};

static int value(void *ctx, const struct expr_ref *ref, size_t i, double *ret)
{
	struct derive *d = ctx;
	const struct workload *w = d->res->r->w;
	const struct metric *m = metric_find(&w->metrics, ref->name);
	size_t point = d->point, at;
	double doubt;

	if (expect_move(w, ref, i, &point) < 0)
		return i ? -ERANGE : -ENOENT;
	if (!m)
		return workload_number(workload_setting(w, point, ref->name),
				       ret);
	at = result_place(d->res, m);
	doubt = *result_doubt(d->res, point, d->repetition, at);
	*ret = *result_value(d->res, point, d->repetition, at);
	d->doubtful = d->doubtful || doubt > 0;
	if (d->n++ == d->moved)
		*ret += d->sign * doubt;
	return isnan(*ret) ? -ENOENT : 0;
}

/* The sum of what each operand alone may change. An operand of which nobody
 * knows leaves no number. */
static int doubt_of(const struct metric *m, struct derive *d, double v,
		    double *ret)
{
	size_t n = d->n;

	*ret = 0;
	for (size_t k = 0; d->doubtful && k < n; k++) {
		double most = 0;

		for (d->sign = -1; d->sign <= 1; d->sign += 2) {
			const char *missing;
			struct expr_result r;
			int code;

			d->moved = k;
			d->n = 0;
			code = expr_eval(m->expr, value, d, &r, &missing);
			if (code == -ENOMEM)
				return code;
			most = code < 0 || !isfinite(r.side[0])
				       ? INFINITY
				       : fmax(most, fabs(r.side[0] - v));
		}
		*ret += most;
	}
	return 0;
}

static int derive_one(struct result *res, const struct metric *m)
{
	const struct workload *w = res->r->w;
	double scale = m->scale != 0 ? m->scale : 1;
	size_t at = result_place(res, m);

	for (size_t i = 0; i < w->n_points * w->repetitions; i++) {
		struct derive d = { .res = res,
				    .point = i / w->repetitions,
				    .repetition = i % w->repetitions,
				    .moved = SIZE_MAX };
		struct expr_result r;
		const char *missing;
		double doubt;
		int code = expr_eval(m->expr, value, &d, &r, &missing);

		if (code == -ENOMEM)
			return code;
		if (code < 0)
			continue;
		if (doubt_of(m, &d, r.side[0], &doubt) < 0)
			return -ENOMEM;
		*result_value(res, d.point, d.repetition, at) =
			r.side[0] * scale;
		*result_doubt(res, d.point, d.repetition, at) =
			doubt * fabs(scale);
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

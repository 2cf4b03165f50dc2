/* SPDX-License-Identifier: MIT */
/* Judges published values: near enough, or in the same order. */
#include <errno.h>
#include <math.h>
#include <string.h>

#include "common/util.h"
#include "runner/result/run_judge.h"
#include "runner/result/run_verdict.h"
#include "runner/spec/run_expect.h"

/* --- the values ------------------------------------------------------- */

struct near {
	const struct metric *m;
	double wanted, tolerance;
	struct expr_result mean;
};

static int decide_near(struct judge *j, void *ctx, struct decision *ret)
{
	struct near *n = ctx;
	double v;

	j->n_found = 0;
	for (j->repetition = 0; j->repetition < j->w->repetitions;
	     j->repetition++)
		if (judge_value(j, j->point, n->m, &v) == 0)
			j->found[j->n_found++] = (struct expr_result){
				.n_sides = 2,
				.side = { v, n->wanted },
				.op = { NULL, "==" },
				.slack = { 0, n->tolerance },
			};
	if (!j->n_found)
		return -ENOENT;
	judge_decide(j, ret, &n->mean);
	return 0;
}

static int judge_near(struct judge *j, const struct published *p,
		      const struct metric *m, const char *check)
{
	char ours[RESULT_TEXT], theirs[RESULT_TEXT], slack[RESULT_TEXT];
	struct near n = { .m = m, .tolerance = p->tolerance.value }, null;
	struct decision d = { 0 };
	int digits;

	if (published_at(j->w, p, j->point, &n.wanted) < 0)
		return 0;
	if (p->tolerance.relative)
		n.tolerance *= fabs(n.wanted);
	if (decide_near(j, &n, &d) < 0)
		return judge_add_missing(j, check,
					 util_text("no value of %s", m->name));
	null = n;
	judge_null(j, decide_near, &null);
	digits = verdict_digits(&n.mean);
	result_digits(ours, sizeof(ours), n.mean.side[0], digits);
	result_digits(theirs, sizeof(theirs), n.wanted, digits);
	result_digits(slack, sizeof(slack), n.tolerance, digits);
	return judge_add(
		j, check, &d,
		(struct found){ .numbers = util_text("%s, published %s +- %s",
						     ours, theirs, slack),
				.ours = strdup(ours),
				.wanted =
					util_text("%s +- %s", theirs, slack) });
}

/* --- their order ------------------------------------------------------ */

struct ranks {
	const struct published *p;
	const struct metric *m;
	size_t axis, n; /* values that are published */
	double *ours, *theirs;
	const char *missing; /* label at which ours has no value; or NULL */
	struct expr_result mean;
};

/* Spearman's correlation in the judge's repetition. -ENOENT: a value of ours is
 * missing. */
static int correlate(struct judge *j, struct ranks *r, double *ret)
{
	const struct axis *axis = &j->w->axes[r->axis];

	r->n = 0;
	for (size_t i = 0; i < axis->n_points; i++) {
		size_t at = workload_move(j->w, j->point, r->axis, i);

		if (at == WORKLOAD_NO_POINT ||
		    published_at(j->w, r->p, at, &r->theirs[r->n]) < 0)
			continue;
		if (judge_value(j, at, r->m, &r->ours[r->n]) < 0) {
			r->missing = axis->points[i].label;
			return -ENOENT;
		}
		r->n++;
	}
	*ret = stats_spearman(r->ours, r->theirs, r->n);
	return 0;
}

/* -EDOM: too few values. */
static int decide_rank(struct judge *j, void *ctx, struct decision *ret)
{
	struct ranks *r = ctx;
	double rho;

	j->n_found = 0;
	for (j->repetition = 0; j->repetition < j->w->repetitions;
	     j->repetition++) {
		if (correlate(j, r, &rho) < 0)
			continue;
		if (isnan(rho))
			return -EDOM;
		j->found[j->n_found++] = (struct expr_result){
			.n_sides = 2,
			.side = { rho, r->p->rank },
			.op = { NULL, ">=" },
		};
	}
	if (!j->n_found)
		return -ENOENT;
	judge_decide(j, ret, &r->mean);
	return 0;
}

/* For one combination of the other axes. */
static int judge_rank(struct judge *j, struct ranks *r, const char *check)
{
	char text[RESULT_TEXT];
	struct decision d = { 0 };

	switch (decide_rank(j, r, &d)) {
	case 0: break;
	case -EDOM:
		return judge_add_missing(j, check, strdup("too few values"));
	default:
		return judge_add_missing(j, check,
					 util_text("no value of %s at %s",
						   r->m->name, r->missing));
	}
	result_digits(text, sizeof(text), r->mean.side[0],
		      verdict_digits(&r->mean));
	return judge_add(
		j, check, &d,
		(struct found){ .numbers = util_text(
					"Spearman's rho %s >= %.3g, of %zu "
					"values",
					text, r->p->rank, r->n),
				.ours = util_text("rho %s", text),
				.wanted = util_text(">= %.3g", r->p->rank) });
}

/* --- both ------------------------------------------------------------- */

static int judge_values(struct judge *j, const struct published *p,
			const struct metric *m)
{
	_cleanup_free_ char *check = util_text(
		"%s as published (%s)", m->label ? m->label : m->name, p->name);
	size_t before = j->v->n;
	int code = check ? 0 : -ENOMEM;

	for (size_t a = 0; a < j->w->n_axes; a++)
		j->depends[a] = true;
	for (size_t i = 0; code == 0 && i < j->w->n_points; i++)
		if (judge_ask(j, i))
			code = judge_near(j, p, m, check);
	return code == 0 ? judge_settle(j, before, check) : code;
}

static int judge_ranks(struct judge *j, const struct published *p,
		       const struct metric *m)
{
	_cleanup_free_ char *check = util_text("order of %s as published (%s)",
					       m->label ? m->label : m->name,
					       p->name);
	struct ranks r = { .p = p,
			   .m = m,
			   .axis = (size_t)workload_axis(j->w, p->along) };
	size_t n = j->w->axes[r.axis].n_points, before = j->v->n;
	_cleanup_free_ double *ours = calloc(n, sizeof(*ours));
	_cleanup_free_ double *theirs = calloc(n, sizeof(*theirs));
	int code = check && ours && theirs ? 0 : -ENOMEM;

	r.ours = ours;
	r.theirs = theirs;
	for (size_t a = 0; a < j->w->n_axes; a++)
		j->depends[a] = a != r.axis;
	for (size_t i = 0; code == 0 && i < j->w->n_points; i++)
		if (judge_ask(j, i))
			code = judge_rank(j, &r, check);
	return code == 0 ? judge_settle(j, before, check) : code;
}

int judge_published(struct judge *j, const struct published *p)
{
	const struct metric *m = metric_find(&j->w->metrics, p->metric);
	int code = p->tolerance.given ? judge_values(j, p, m) : 0;

	if (code < 0 || !p->ranked)
		return code;
	/* a reason is that of the values, if these are judged */
	j->kind = EVIDENCE_ORDER;
	j->reason = p->tolerance.given ? NULL : j->reason;
	return judge_ranks(j, p, m);
}

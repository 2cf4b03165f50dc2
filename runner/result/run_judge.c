/* SPDX-License-Identifier: MIT */
/*
 * A check is made once for each combination of the axes that it depends on,
 * that is, the axes that some name in it leaves open. It is made at the first
 * point of the combination that `where` selects.
 *
 * Its two sides are computed within each repetition, whose cells share a seed,
 * so that common random effects cancel. A comparison is decided when the
 * confidence interval of the mean difference lies on one side of its limit. A
 * single repetition has no interval and is taken as it is. As all comparisons
 * of a check must hold, their number needs no correction. Source: Berger,
 * "Multiparameter Hypothesis Testing and Acceptance Sampling" (1982).
 */
#include "runner/result/run_judge.h"

#include <errno.h>
#include <math.h>
#include <string.h>

#include "common/util.h"
#include "runner/spec/run_expect.h"

int judge_init(struct judge *j, const struct result *res,
	       const struct conf_node *where, const struct evidence *evidence,
	       struct verdicts *v)
{
	*j = (struct judge){ .res = res,
			     .w = res->r->w,
			     .where = where,
			     .evidence = evidence,
			     .kind = evidence->kind,
			     .reason = evidence->reason,
			     .v = v };
	j->depends = calloc(j->w->n_axes + 1, sizeof(*j->depends));
	j->found = calloc(j->w->repetitions, sizeof(*j->found));
	j->scratch = calloc(j->w->repetitions, sizeof(*j->scratch));
	return j->depends && j->found && j->scratch ? 0 : -ENOMEM;
}

void judge_fini(struct judge *j)
{
	free(j->depends);
	free(j->found);
	free(j->scratch);
}

/* --- which points ----------------------------------------------------- */

static bool same_combination(const struct judge *j, size_t a, size_t b)
{
	for (size_t i = 0; i < j->w->n_axes; i++)
		if (j->depends[i] &&
		    workload_at(j->w, a, i) != workload_at(j->w, b, i))
			return false;
	return true;
}

bool judge_ask(struct judge *j, size_t point)
{
	if (!workload_matches(j->w, point, j->where))
		return false;
	for (size_t i = 0; i < point; i++)
		if (workload_matches(j->w, i, j->where) &&
		    same_combination(j, i, point))
			return false;
	j->point = point;
	j->disturbed = false;
	j->vain = false;
	j->n_found = 0;
	return true;
}

/* Labels of the axes that distinguish this verdict from others of the check. */
static char *place(const struct judge *j)
{
	char *text = NULL;
	size_t n;
	FILE *f = open_memstream(&text, &n);
	const char *between = "";

	for (size_t a = 0; f && a < j->w->n_axes; a++)
		if (j->depends[a] && j->w->axes[a].n_points > 1 &&
		    (int)a != workload_null_axis(j->w)) {
			fprintf(f, "%s%s", between,
				workload_at(j->w, j->point, a)->label);
			between = ", ";
		}
	if (f)
		fclose(f);
	return text;
}

/* --- values ----------------------------------------------------------- */

int judge_value(struct judge *j, size_t point, const struct metric *m,
		double *ret)
{
	size_t at = result_place(j->res, m);

	if (j->null)
		point = workload_null_point(j->w, point);
	if (point == WORKLOAD_NO_POINT)
		return -ENOENT;
	*ret = *result_value(j->res, point, j->repetition, at);
	if (isnan(*ret))
		return -ENOENT;
	if (*result_disturbed(j->res, point, j->repetition, at))
		j->disturbed = true;
	return 0;
}

/* --- decisions -------------------------------------------------------- */

void decision_add(struct decision *d, const double *margin, size_t n,
		  bool strict, double rounding)
{
	struct interval in = stats_mean(margin, n);
	bool yes = strict ? in.low > 0 : in.low >= -rounding;
	bool no = strict ? in.high <= 0 : in.high < -rounding;

	if (no)
		d->state = VERDICT_FAIL;
	else if (!yes && d->state == VERDICT_PASS)
		d->state = VERDICT_UNDECIDED;
	if (!yes && !no)
		d->needed = MAX(d->needed, stats_needed(&in));
}

/*
 * By how much comparison `i` holds in each repetition: `sign` 1 if its right
 * side is to be larger, else -1. An == is two comparisons. Returns how far
 * rounding may move it.
 */
static double margins(struct judge *j, size_t i, int sign)
{
	double largest = 0;

	for (size_t k = 0; k < j->n_found; k++) {
		const struct expr_result *r = &j->found[k];
		double a = r->side[i - 1], b = r->side[i];

		j->scratch[k] = sign * (b - a) + r->slack[i];
		largest = fmax(largest, fmax(fabs(a), fabs(b)));
	}
	return j->found->op[i][0] == '=' ? EXPR_ROUNDING * largest : 0;
}

/* The interval of our side, or of the difference if the other varies, too. */
static void set_interval(struct judge *j, struct decision *d)
{
	const struct expr_result *first = j->found;
	size_t ours = first->n_sides > 2;
	bool varies = false;

	for (size_t k = 1; k < j->n_found; k++)
		varies = varies || j->found[k].side[1] != first->side[1];
	varies = varies && !ours;
	for (size_t k = 0; k < j->n_found; k++)
		j->scratch[k] = j->found[k].side[ours] -
				(varies ? j->found[k].side[1] : 0);
	d->interval = stats_mean(j->scratch, j->n_found);
	d->of = varies ? "difference " : "";
}

/* Added to the first value, so that equal values have themselves as mean. */
static struct expr_result mean_of(const struct expr_result *r, size_t n)
{
	struct expr_result mean = r[0];

	for (size_t k = 1; k < n; k++)
		for (size_t i = 0; i < mean.n_sides; i++) {
			mean.side[i] +=
				(r[k].side[i] - r[0].side[i]) / (double)n;
			mean.slack[i] +=
				(r[k].slack[i] - r[0].slack[i]) / (double)n;
		}
	return mean;
}

void judge_decide(struct judge *j, struct decision *ret,
		  struct expr_result *ret_mean)
{
	*ret = (struct decision){ .n = j->n_found };
	*ret_mean = mean_of(j->found, j->n_found);
	for (size_t i = 1; i < ret_mean->n_sides; i++)
		for (int sign = -1; sign <= 1; sign += 2) {
			const char *op = ret_mean->op[i];
			double rounding;

			if (op[0] == (sign < 0 ? '<' : '>'))
				continue;
			rounding = margins(j, i, sign);
			decision_add(ret, j->scratch, j->n_found, !op[1],
				     rounding);
		}
	set_interval(j, ret);
}

void judge_null(struct judge *j, decide_fn decide, void *ctx)
{
	bool disturbed = j->disturbed;
	struct decision d = { 0 };

	if (!evidence_reproduces(j->kind) || workload_null_axis(j->w) < 0)
		return;
	j->null = true;
	j->vain = decide(j, ctx, &d) == 0 && d.state == VERDICT_PASS;
	j->null = false;
	j->disturbed = disturbed;
}

/* --- verdicts --------------------------------------------------------- */

/* "17.1 to 17.9", or "difference 1.2 to 1.4"; empty of one repetition. */
static char *interval_text(const struct decision *d)
{
	char low[RESULT_TEXT], high[RESULT_TEXT];

	if (!d || d->n < 2)
		return strdup("");
	result_number(low, sizeof(low), d->interval.low);
	result_number(high, sizeof(high), d->interval.high);
	return util_text("%s%s to %s", d->of, low, high);
}

/* Did all other repetitions fail? The one that is left says less than two would
 * with their interval. */
static bool is_lone(const struct judge *j, const struct decision *d)
{
	return d && d->n == 1 && j->w->repetitions > 1;
}

/* Why it is neither, or not what the sides say; "" where they say it all. */
static char *note(const struct judge *j, const struct decision *d,
		  enum verdict_state state)
{
	if (d && !d->n)
		return strdup("no repetition has all values");
	if (d && j->disturbed)
		return strdup("other programs disturbed a run");
	if (is_lone(j, d))
		return util_text("one of %zu repetitions has all values",
				 (size_t)j->w->repetitions);
	if (state == VERDICT_UNDECIDED && d && d->needed == SIZE_MAX)
		return strdup("at its limit: no number of repetitions decides");
	if (state == VERDICT_UNDECIDED && d)
		return util_text("about %zu repetitions would decide",
				 d->needed);
	if (state == VERDICT_NOT_REPRODUCED)
		return strdup(j->reason);
	if (state == VERDICT_PASS && j->vain)
		return strdup("passes without the effect, too");
	return strdup("");
}

static enum verdict_state state_of(const struct judge *j,
				   const struct decision *d)
{
	if (!d || !d->n || j->disturbed || is_lone(j, d))
		return VERDICT_UNDECIDED;
	return d->state == VERDICT_FAIL && j->reason ? VERDICT_NOT_REPRODUCED
						     : d->state;
}

int judge_add(struct judge *j, const char *check, const struct decision *d,
	      struct found f)
{
	struct verdicts *v = j->v;
	struct verdict *grown = realloc(v->items, (v->n + 1) * sizeof(*grown));
	enum verdict_state state = state_of(j, d);
	enum evidence_kind kind =
		state == VERDICT_PASS && j->vain ? EVIDENCE_INPUT : j->kind;
	struct verdict *one;

	if (!grown) {
		free(f.numbers);
		free(f.ours);
		free(f.wanted);
		return -ENOMEM;
	}
	v->items = grown;
	one = &v->items[v->n++];
	*one = (struct verdict){ .check = strdup(check),
				 .at = place(j),
				 .numbers = f.numbers,
				 .ours = f.ours,
				 .wanted = f.wanted,
				 .interval = interval_text(d),
				 .note = note(j, d, state),
				 .kind = kind,
				 .state = state,
				 .n = d ? d->n : 0,
				 .low = d && d->n > 1 ? d->interval.low : NAN,
				 .high = d && d->n > 1 ? d->interval.high : NAN,
				 .needed = state == VERDICT_UNDECIDED && d
						   ? d->needed
						   : 0 };
	return one->check && one->at && one->numbers && one->ours &&
			       one->wanted && one->interval && one->note
		       ? 0
		       : -ENOMEM;
}

int judge_add_missing(struct judge *j, const char *check, char *why)
{
	return judge_add(j, check, NULL,
			 (struct found){ .numbers = why,
					 .ours = why ? strdup(why) : NULL,
					 .wanted = strdup("") });
}

/* A reason for nothing: the check holds at all of its points. */
static int refuse_reason(struct judge *j, size_t before)
{
	for (size_t i = before; i < j->v->n; i++)
		if (j->v->items[i].state != VERDICT_PASS)
			return 0;
	for (size_t i = before; i < j->v->n; i++) {
		struct verdict *one = &j->v->items[i];

		one->state = VERDICT_FAIL;
		free(one->note);
		one->note = strdup("it holds, but gives a reason why it does "
				   "not");
		if (!one->note)
			return -ENOMEM;
	}
	return 0;
}

int judge_settle(struct judge *j, size_t before, const char *check)
{
	if (j->v->n > before)
		return j->reason ? refuse_reason(j, before) : 0;
	memset(j->depends, 0, j->w->n_axes * sizeof(*j->depends));
	return judge_add_missing(j, check, strdup("no point was checked"));
}

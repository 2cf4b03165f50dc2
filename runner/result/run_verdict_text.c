/* SPDX-License-Identifier: MIT */
/* Verdicts and published values as text and JSON. */
#include <math.h>
#include <stdlib.h>

#include "common/util.h"
#include "runner/spec/run_expect.h"
#include "runner/result/run_verdict.h"

static double shown(double v, int digits)
{
	char text[RESULT_TEXT];

	result_digits(text, sizeof(text), v, digits);
	return strtod(text, NULL);
}

int verdict_digits(const struct expr_result *r)
{
	bool holds = expr_holds(r);
	int digits = 4;

	for (; digits < 17; digits++) {
		struct expr_result as_shown = *r;
		bool alike = false;

		for (size_t i = 0; i < r->n_sides; i++) {
			as_shown.side[i] = shown(r->side[i], digits);
			as_shown.slack[i] = shown(r->slack[i], digits);
		}
		for (size_t i = 1; i < r->n_sides; i++)
			alike = alike ||
				(r->op[i][0] != '=' &&
				 r->side[i] != r->side[i - 1] &&
				 as_shown.side[i] == as_shown.side[i - 1]);
		if (!alike && expr_holds(&as_shown) == holds)
			break;
	}
	return digits;
}

void verdicts_print(const struct verdicts *v, FILE *f)
{
	char score[SCORE_TEXT];
	size_t n_single = 0;

	for (size_t i = 0; i < v->n; i++) {
		const struct verdict *one = &v->items[i];

		fprintf(f, "%s (%s)  %s%s%s: %s%s%s%s%s\n",
			verdict_word(one->kind, one->state),
			evidence_name(one->kind), one->check,
			one->at[0] ? ", " : "", one->at, one->numbers,
			one->interval[0] ? "; 95 %: " : "", one->interval,
			one->note[0] ? "; " : "", one->note);
		n_single += one->n == 1;
	}
	if (!v->n)
		return;
	score_text(&v->score, score, sizeof(score));
	fprintf(f, "%s\n", score);
	if (n_single < v->n)
		fputs("95 %: confidence interval of the mean (Student's t), of "
		      "differences by pairs of a seed\n",
		      f);
	if (n_single)
		fprintf(f,
			"%zu of %zu checks have one repetition, and so no "
			"interval\n",
			n_single, v->n);
}

static json_t *needed_json(const struct verdict *v)
{
	return v->needed && v->needed != SIZE_MAX
		       ? json_integer((json_int_t)v->needed)
		       : json_null();
}

static json_t *end_json(double end)
{
	return isnan(end) ? json_null() : json_real(end);
}

json_t *verdicts_json(const struct verdicts *v)
{
	json_t *j = json_array();

	for (size_t i = 0; j && i < v->n; i++) {
		const struct verdict *one = &v->items[i];

		json_array_append_new(
			j, json_pack("{s:s, s:s, s:s, s:s, s:s, s:s, s:s, s:o, "
				     "s:o, s:I, s:o, s:s, s:s}",
				     "check", one->check, "kind",
				     evidence_name(one->kind), "at", one->at,
				     "numbers", one->numbers, "ours", one->ours,
				     "wanted", one->wanted, "interval",
				     one->interval, "low", end_json(one->low),
				     "high", end_json(one->high), "n",
				     (json_int_t)one->n, "needed",
				     needed_json(one), "verdict",
				     verdict_state_name(one->state), "note",
				     one->note));
	}
	return j;
}

/* The labels that distinguish a published value from the others. */
static void place(const struct workload *w, const struct published *p,
		  size_t point, char *buf, size_t n)
{
	size_t used = 0;

	buf[0] = 0;
	for (size_t a = 0; a < w->n_axes && used < n; a++)
		if (w->axes[a].n_points > 1 ||
		    (int)a == workload_axis(w, p->along))
			used += (size_t)snprintf(
				buf + used, n - used, "%s%s", used ? ", " : "",
				workload_at(w, point, a)->label);
}

static json_t *values_json(const struct result *res, const struct published *p,
			   const struct metric *m)
{
	const struct workload *w = res->r->w;
	json_t *j = json_array();
	char at[120];
	double v;

	for (size_t i = 0; j && i < w->n_points; i++) {
		const struct spread *s = result_at(res, i, m);

		if (!workload_matches(w, i, p->where) ||
		    published_at(w, p, i, &v) < 0)
			continue;
		place(w, p, i, at, sizeof(at));
		json_array_append_new(j, json_pack("{s:s, s:f, s:o}", "at", at,
						   "published", v, "ours",
						   s->n ? json_real(s->median)
							: json_null()));
	}
	return j;
}

json_t *published_json(const struct result *res)
{
	const struct published *p = res->r->w->published.items;
	json_t *j = json_array();

	for (size_t i = 0; j && i < res->r->w->published.n; i++) {
		const struct metric *m =
			metric_find(&res->r->w->metrics, p[i].metric);

		json_array_append_new(
			j, json_pack("{s:s, s:s, s:s?, s:s, s:s, s:b, s:o}",
				     "name", p[i].name, "source", p[i].source,
				     "doubt", p[i].doubt, "metric",
				     m->label ? m->label : m->name, "unit",
				     m->unit ? m->unit : "", "judged",
				     published_is_judged(&p[i]), "values",
				     values_json(res, &p[i], m)));
	}
	return j;
}

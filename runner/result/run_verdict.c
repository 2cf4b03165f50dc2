/* SPDX-License-Identifier: MIT */
/* Judges expectations: comparisons, and metrics along an axis. */
#include <errno.h>
#include <math.h>
#include <string.h>

#include "common/util.h"
#include "runner/result/run_judge.h"
#include "runner/result/run_verdict.h"
#include "runner/spec/run_expect.h"

/* --- that ------------------------------------------------------------- */

static int mark(void *ctx, const struct expr_ref *ref, struct err *err)
{
	struct judge *j = ctx;
	const struct workload *w = j->w;
	bool measured = metric_find(&w->metrics, ref->name) ||
			!strncmp(ref->name, "published.", 10);

	(void)err;
	for (size_t a = 0; a < w->n_axes; a++) {
		bool open = measured || workload_decides(w, a, ref->name);

		for (size_t i = 0; i < ref->n_selects; i++)
			if (workload_select(w, ref->selects[i].axis,
					    ref->selects[i].label) == (int)a)
				open = false;
		j->depends[a] = j->depends[a] || open;
	}
	return 0;
}

static int value(void *ctx, const struct expr_ref *ref, size_t i, double *ret)
{
	struct judge *j = ctx;
	const struct workload *w = j->w;
	const struct metric *m = metric_find(&w->metrics, ref->name);
	size_t point = j->point;

	if (expect_move(w, ref, i, &point) < 0)
		return i ? -ERANGE : -ENOENT;
	if (m)
		return judge_value(j, point, m, ret);
	return expect_constant(w, ref, point, ret);
}

/* Sides `from` to `to` - 1; a `hidden` side is printed as x. */
static char *sides_text(const struct expr_result *r, size_t from, size_t to,
			size_t hidden)
{
	int digits = verdict_digits(r);
	double slack = 0;
	char *text = NULL;
	char number[RESULT_TEXT];
	size_t n;
	FILE *f = open_memstream(&text, &n);

	for (size_t i = from; f && i < to; i++) {
		result_digits(number, sizeof(number), r->side[i], digits);
		fprintf(f, "%s%s%s%s", i > from ? " " : "", i ? r->op[i] : "",
			i ? " " : "", i == hidden ? "x" : number);
		slack = i && r->op[i][0] == '=' ? r->slack[i] : slack;
	}
	result_digits(number, sizeof(number), slack, digits);
	if (f && slack > 0)
		fprintf(f, " +- %s", number);
	if (f)
		fclose(f);
	return text;
}

/* "== 3 +- 1" is printed as "3 +- 1". */
static char *without_equals(char *text)
{
	if (text && !strncmp(text, "== ", 3))
		memmove(text, text + 3, strlen(text + 3) + 1);
	return text;
}

/* Our value is the first of two sides, the middle one of three. */
static struct found sides_found(const struct expr_result *r)
{
	size_t ours = r->n_sides > 2;
	char number[RESULT_TEXT];

	result_digits(number, sizeof(number), r->side[ours], verdict_digits(r));
	return (struct found){
		.numbers = sides_text(r, 0, r->n_sides, SIZE_MAX),
		.ours = strdup(number),
		.wanted = without_equals(sides_text(r, ours ? 0 : 1, r->n_sides,
						    ours ? ours : SIZE_MAX))
	};
}

/* Find the sides in each repetition. -EDOM: one of them is no number. */
static int find_sides(struct judge *j, const struct expect *e,
		      const char **ret_missing)
{
	int code = 0;

	j->n_found = 0;
	for (j->repetition = 0; j->repetition < j->w->repetitions;
	     j->repetition++) {
		code = expr_eval(e->expr, value, j, &j->found[j->n_found],
				 ret_missing);
		if (code == 0)
			j->n_found++;
		else if (code != -ENOENT)
			return code;
	}
	return j->n_found ? 0 : -ENOENT;
}

struct sides {
	const struct expect *e;
	const char *missing; /* a name without value; or NULL */
	struct expr_result mean;
};

static int decide_sides(struct judge *j, void *ctx, struct decision *ret)
{
	struct sides *s = ctx;
	int code = find_sides(j, s->e, &s->missing);

	if (code == 0)
		judge_decide(j, ret, &s->mean);
	return code;
}

static int judge_point(struct judge *j, const struct expect *e,
		       const char *check)
{
	struct sides s = { .e = e }, null = { .e = e };
	struct decision d = { 0 };

	switch (decide_sides(j, &s, &d)) {
	case 0: break;
	case -ENOENT:
		return judge_add_missing(
			j, check, util_text("no value of %s", s.missing));
	case -EDOM:
		return judge_add_missing(j, check,
					 strdup("the result is not a number"));
	default: return -ENOMEM;
	}
	judge_null(j, decide_sides, &null);
	return judge_add(j, check, &d, sides_found(&s.mean));
}

/* Does the reference name a point that is excluded? */
static int find_excluded(void *ctx, const struct expr_ref *ref, struct err *err)
{
	const struct judge *j = ctx;
	size_t point = j->point;

	(void)err;
	return expect_move(j->w, ref, 0, &point);
}

static int judge_that(struct judge *j, const struct expect *e)
{
	const char *check = e->name ? e->name : e->that;
	size_t before = j->v->n;
	int code = expr_each(e->expr, mark, j, NULL);

	for (size_t i = 0; code == 0 && i < j->w->n_points; i++)
		if (judge_ask(j, i) &&
		    expr_each(e->expr, find_excluded, j, NULL) == 0)
			code = judge_point(j, e, check);
	return code == 0 ? judge_settle(j, before, check) : code;
}

/* --- rising, falling -------------------------------------------------- */

/* The values along the axis, step after step, of each repetition that has them
 * all. A step at an excluded point is left out. */
struct walk {
	const struct expect *e;
	const struct metric *m;
	size_t axis, n_most, n_steps, n;
	size_t *points;	     /* of the steps */
	const char **labels; /* of the steps, on the axis; borrowed */
	double *v;	     /* [repetition * n_steps + step] */
	const char *label;   /* of a step without value; or NULL */
};

static void find_points(struct judge *j, struct walk *w)
{
	char *const *of = w->e->of.items;

	w->n_steps = 0;
	for (size_t i = 0; i < w->n_most; i++) {
		size_t k =
			of ? (size_t)workload_find_label(j->w, w->axis, of[i])
			   : i;
		size_t at = workload_move(j->w, j->point, w->axis, k);

		if (at == WORKLOAD_NO_POINT)
			continue;
		w->labels[w->n_steps] = j->w->axes[w->axis].points[k].label;
		w->points[w->n_steps++] = at;
	}
}

static void find_steps(struct judge *j, struct walk *w)
{
	w->n = 0;
	w->label = NULL;
	for (j->repetition = 0; j->repetition < j->w->repetitions;
	     j->repetition++) {
		bool all = true;

		for (size_t i = 0; all && i < w->n_steps; i++) {
			all = judge_value(j, w->points[i], w->m,
					  &w->v[w->n * w->n_steps + i]) == 0;
			w->label = all ? w->label : w->labels[i];
		}
		w->n += all;
	}
}

/* From `a` to `b` in the right direction, with what slack allows. */
static double step_margin(const struct expect *e, double a, double b)
{
	double slack = e->slack.relative ? e->slack.value * fabs(a)
					 : e->slack.value;

	return (e->rising ? b - a : a - b) + slack;
}

/* Without slack each step must be strict. The interval is that of the step that
 * comes nearest to failing. */
static int decide_steps(struct judge *j, void *ctx, struct decision *d)
{
	struct walk *w = ctx;

	find_steps(j, w);
	if (!w->n)
		return -ENOENT;
	*d = (struct decision){ .n = w->n, .of = "least step " };
	for (size_t i = 1; i < w->n_steps; i++) {
		struct interval in;

		for (size_t k = 0; k < w->n; k++) {
			const double *v = &w->v[k * w->n_steps + i];

			j->scratch[k] = step_margin(w->e, v[-1], v[0]);
		}
		decision_add(d, j->scratch, w->n, !w->e->slack.given, 0);
		for (size_t k = 0; k < w->n; k++) {
			const double *v = &w->v[k * w->n_steps + i];

			j->scratch[k] = w->e->rising ? v[0] - v[-1]
						     : v[-1] - v[0];
		}
		in = stats_mean(j->scratch, w->n);
		if (i == 1 || in.low < d->interval.low)
			d->interval = in;
	}
	return 0;
}

static double step_mean(const struct walk *w, size_t i)
{
	double mean = w->v[i];

	for (size_t k = 1; k < w->n; k++)
		mean += (w->v[k * w->n_steps + i] - w->v[i]) / (double)w->n;
	return mean;
}

/* The number of digits that distinguishes neighbours. */
static int step_digits(const struct walk *w)
{
	int digits = 4;

	for (size_t i = 1; i < w->n_steps; i++) {
		double a = step_mean(w, i - 1), b = step_mean(w, i);
		struct expr_result less = { .n_sides = 2,
					    .side = { MIN(a, b), MAX(a, b) },
					    .op = { NULL, "<" } };

		if (a != b)
			digits = MAX(digits, verdict_digits(&less));
	}
	return digits;
}

/* "lru 27.5, minio 17.5" */
static char *steps_text(const struct walk *w)
{
	char *text = NULL, number[RESULT_TEXT];
	int digits = step_digits(w);
	size_t n;
	FILE *f = open_memstream(&text, &n);

	for (size_t i = 0; f && i < w->n_steps; i++) {
		result_digits(number, sizeof(number), step_mean(w, i), digits);
		fprintf(f, "%s%s %s", i ? ", " : "", w->labels[i], number);
	}
	if (f)
		fclose(f);
	return text;
}

static int judge_walk(struct judge *j, struct walk *w, const char *check)
{
	struct decision d = { 0 };
	char *numbers;
	int code;

	find_points(j, w);
	if (w->n_steps < 2) /* fewer have no order */
		return 0;
	code = decide_steps(j, w, &d);
	if (code == -ENOMEM)
		return code;
	if (code < 0)
		return judge_add_missing(j, check,
					 util_text("no value of %s at %s",
						   w->m->name, w->label));
	numbers = steps_text(w);
	return judge_add(j, check, &d,
			 (struct found){ .numbers = numbers,
					 .ours = numbers ? strdup(numbers)
							 : NULL,
					 .wanted = strdup("") });
}

static int judge_order(struct judge *j, const struct expect *e)
{
	const char *metric = e->rising ? e->rising : e->falling;
	struct walk w = { .e = e,
			  .m = metric_find(&j->w->metrics, metric),
			  .axis = (size_t)workload_axis(j->w, e->along) };
	_cleanup_free_ char *check =
		e->name ? strdup(e->name)
			: util_text("%s %s along %s", metric,
				    e->rising ? "rises" : "falls", e->along);
	size_t before = j->v->n;
	int code;

	w.n_most = e->of.n ? e->of.n : j->w->axes[w.axis].n_points;
	w.points = calloc(w.n_most, sizeof(*w.points));
	w.labels = calloc(w.n_most, sizeof(*w.labels));
	w.v = calloc(w.n_most * j->w->repetitions, sizeof(*w.v));
	code = check && w.points && w.labels && w.v ? 0 : -ENOMEM;
	for (size_t a = 0; a < j->w->n_axes; a++)
		j->depends[a] = a != w.axis;
	for (size_t i = 0; code == 0 && i < j->w->n_points; i++)
		if (judge_ask(j, i))
			code = judge_walk(j, &w, check);
	free(w.points);
	free(w.labels);
	free(w.v);
	return code == 0 ? judge_settle(j, before, check) : code;
}

/* --- all -------------------------------------------------------------- */

void verdicts_fini(struct verdicts *v)
{
	for (size_t i = 0; i < v->n; i++) {
		free(v->items[i].check);
		free(v->items[i].at);
		free(v->items[i].numbers);
		free(v->items[i].ours);
		free(v->items[i].wanted);
		free(v->items[i].interval);
		free(v->items[i].note);
	}
	free(v->items);
	*v = (struct verdicts){ 0 };
}

int verdicts_init(struct verdicts *v, const struct result *res, struct err *err)
{
	const struct expect *e = res->r->w->expects.items;
	const struct published *p = res->r->w->published.items;
	struct judge j;
	int code = 0;

	*v = (struct verdicts){ 0 };
	for (size_t i = 0; code == 0 && i < res->r->w->expects.n; i++) {
		code = judge_init(&j, res, e[i].where, &e[i].evidence, v);
		if (code == 0)
			code = e[i].that ? judge_that(&j, &e[i])
					 : judge_order(&j, &e[i]);
		judge_fini(&j);
	}
	for (size_t i = 0; code == 0 && i < res->r->w->published.n; i++) {
		code = judge_init(&j, res, p[i].where, &p[i].evidence, v);
		if (code == 0)
			code = judge_published(&j, &p[i]);
		judge_fini(&j);
	}
	for (size_t i = 0; code == 0 && i < v->n; i++)
		score_add(&v->score, v->items[i].kind, v->items[i].state);
	return code < 0 ? err_set(err, code, "out of memory") : 0;
}

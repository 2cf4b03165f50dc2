/* SPDX-License-Identifier: MIT */
/*
 * An expectation is evaluated once for each combination of the axes that it
 * depends on, that is, the axes that some name in it leaves open. It is
 * evaluated at the first point of the combination that `where` selects.
 */
#include <errno.h>
#include <math.h>
#include <string.h>

#include "common/util.h"
#include "runner/spec/run_expect.h"
#include "runner/result/run_verdict.h"

/* The evaluation of one expectation. */
struct judge {
	const struct result *res;
	const struct workload *w;
	const struct conf_node *where;
	bool *depends; /* by axis */
	size_t point;
	struct verdicts *v;
};

/* --- verdicts --------------------------------------------------------- */

void verdicts_fini(struct verdicts *v)
{
	for (size_t i = 0; i < v->n; i++) {
		free(v->items[i].check);
		free(v->items[i].at);
		free(v->items[i].numbers);
		free(v->items[i].ours);
		free(v->items[i].wanted);
	}
	free(v->items);
	*v = (struct verdicts){ 0 };
}

/* Labels of the axes that distinguish this verdict from others of the check. */
static char *place(const struct judge *j)
{
	char *text = NULL;
	size_t n;
	FILE *f = open_memstream(&text, &n);
	const char *between = "";

	for (size_t a = 0; f && a < j->w->n_axes; a++)
		if (j->depends[a] && j->w->axes[a].n_points > 1) {
			fprintf(f, "%s%s", between,
				workload_at(j->w, j->point, a)->label);
			between = ", ";
		}
	if (f)
		fclose(f);
	return text;
}

__attribute__((format(printf, 1, 2))) static char *text_of(const char *fmt, ...)
{
	char *text;
	va_list ap;
	int n;

	va_start(ap, fmt);
	n = vasprintf(&text, fmt, ap);
	va_end(ap);
	return n < 0 ? NULL : text;
}

/* The result in three texts, which the verdict takes over; NULL: no memory. */
struct found {
	char *numbers, *ours, *wanted;
};

static int add(const struct judge *j, const char *check, bool pass,
	       struct found f)
{
	struct verdicts *v = j->v;
	struct verdict *grown = realloc(v->items, (v->n + 1) * sizeof(*grown));
	struct verdict *one;

	if (!grown) {
		free(f.numbers);
		free(f.ours);
		free(f.wanted);
		return -ENOMEM;
	}
	v->items = grown;
	one = &v->items[v->n];
	*one = (struct verdict){ .check = strdup(check),
				 .at = place(j),
				 .numbers = f.numbers,
				 .ours = f.ours,
				 .wanted = f.wanted,
				 .pass = pass };
	v->n_failed += !pass;
	v->n++;
	return one->check && one->at && one->numbers && one->ours && one->wanted
		       ? 0
		       : -ENOMEM;
}

/* A check that could not be evaluated, and why. */
static int add_missing(const struct judge *j, const char *check, char *why)
{
	return add(j, check, false,
		   (struct found){ .numbers = why,
				   .ours = why ? strdup(why) : NULL,
				   .wanted = strdup("") });
}

/* Add a failure if a check has added no verdict since `before`. */
static int settle(struct judge *j, size_t before, const char *check)
{
	if (j->v->n > before)
		return 0;
	memset(j->depends, 0, j->w->n_axes * sizeof(*j->depends));
	return add_missing(j, check, strdup("no point was checked"));
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

static bool is_asked(const struct judge *j, size_t point)
{
	if (!workload_matches(j->w, point, j->where))
		return false;
	for (size_t i = 0; i < point; i++)
		if (workload_matches(j->w, i, j->where) &&
		    same_combination(j, i, point))
			return false;
	return true;
}

static int judge_init(struct judge *j, const struct result *res,
		      const struct conf_node *where, struct verdicts *v)
{
	*j = (struct judge){
		.res = res, .w = res->r->w, .where = where, .v = v
	};
	j->depends = calloc(j->w->n_axes + 1, sizeof(*j->depends));
	return j->depends ? 0 : -ENOMEM;
}

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
	const struct spread *s;

	if (expect_move(w, ref, i, &point) < 0)
		return -ERANGE;
	if (m) {
		s = result_at(j->res, point, m);
		*ret = s->median;
		return s->n ? 0 : -ENOENT;
	}
	if (!strncmp(ref->name, "published.", 10))
		return published_at(w, published_find(w, ref->name + 10), point,
				    ret);
	return workload_number(workload_setting(w, point, ref->name), ret);
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

static int judge_that(struct judge *j, const struct expect *e)
{
	const char *check = e->name ? e->name : e->that;
	struct expr_result r;
	const char *missing = NULL;
	size_t before = j->v->n;
	int code = expr_each(e->expr, mark, j, NULL);

	for (size_t i = 0; code == 0 && i < j->w->n_points; i++) {
		if (!is_asked(j, i))
			continue;
		j->point = i;
		code = expr_eval(e->expr, value, j, &r, &missing);
		if (code == -ENOENT)
			code = add_missing(j, check,
					   text_of("no value of %s", missing));
		else if (code == -EDOM)
			code = add_missing(
				j, check, strdup("the result is not a number"));
		else if (code == 0)
			code = add(j, check, r.holds, sides_found(&r));
	}
	return code == 0 ? settle(j, before, check) : code;
}

/* --- rising, falling -------------------------------------------------- */

/* Is the step from `a` to `b` in the right direction, or small enough? */
static bool step_holds(const struct expect *e, double a, double b)
{
	double slack = e->slack.relative ? e->slack.value * fabs(a)
					 : e->slack.value;
	double wrong = e->rising ? a - b : b - a;

	/* without slack each step must be strict */
	return e->slack.given ? wrong <= slack : wrong < 0;
}

/* The point of the `i`-th step; *ret_label: its label on the axis. */
static size_t step_point(const struct judge *j, const struct expect *e,
			 size_t axis, size_t i, const char **ret_label)
{
	char *const *labels = e->of.items;
	size_t k = e->of.n ? (size_t)workload_find_label(j->w, axis, labels[i])
			   : i;

	*ret_label = j->w->axes[axis].points[k].label;
	return workload_move(j->w, j->point, axis, k);
}

/* The number of digits that distinguishes neighbours. */
static int step_digits(double a, double b, int digits)
{
	struct expr_result less = { .n_sides = 2,
				    .side = { MIN(a, b), MAX(a, b) },
				    .op = { NULL, "<" } };

	return a == b || isnan(a) || isnan(b)
		       ? digits
		       : MAX(digits, verdict_digits(&less));
}

static char *walk(const struct judge *j, const struct expect *e, size_t axis,
		  bool *ret_pass)
{
	const struct metric *m =
		metric_find(&j->w->metrics, e->rising ? e->rising : e->falling);
	size_t steps = e->of.n ? e->of.n : j->w->axes[axis].n_points, n;
	char *text = NULL, number[RESULT_TEXT];
	FILE *f = open_memstream(&text, &n);
	const struct spread *s;
	const char *label;
	double last = NAN;
	int digits = 4;

	*ret_pass = f && steps > 1;
	for (size_t i = 0; f && i < steps; i++) {
		s = result_at(j->res, step_point(j, e, axis, i, &label), m);
		*ret_pass = *ret_pass && s->n &&
			    (i == 0 || step_holds(e, last, s->median));
		digits = step_digits(last, s->median, digits);
		last = s->median;
	}
	for (size_t i = 0; f && i < steps; i++) {
		s = result_at(j->res, step_point(j, e, axis, i, &label), m);
		result_digits(number, sizeof(number), s->median, digits);
		fprintf(f, "%s%s %s", i ? ", " : "", label,
			s->n ? number : "(no value)");
	}
	if (f)
		fclose(f);
	return text;
}

static int judge_order(struct judge *j, const struct expect *e)
{
	size_t axis = (size_t)workload_axis(j->w, e->along);
	_cleanup_free_ char *check =
		e->name ? strdup(e->name)
			: text_of("%s %s along %s",
				  e->rising ? e->rising : e->falling,
				  e->rising ? "rises" : "falls", e->along);
	size_t before = j->v->n;
	int code = check ? 0 : -ENOMEM;

	for (size_t a = 0; a < j->w->n_axes; a++)
		j->depends[a] = a != axis;
	for (size_t i = 0; code == 0 && i < j->w->n_points; i++) {
		bool pass;

		if (!is_asked(j, i))
			continue;
		j->point = i;
		char *numbers = walk(j, e, axis, &pass);

		code = add(j, check, pass,
			   (struct found){ .numbers = numbers,
					   .ours = numbers ? strdup(numbers)
							   : NULL,
					   .wanted = strdup("") });
	}
	return code == 0 ? settle(j, before, check) : code;
}

/* --- published -------------------------------------------------------- */

static int judge_value(struct judge *j, const struct published *p,
		       const struct metric *m, const char *check)
{
	const struct spread *s = result_at(j->res, j->point, m);
	char ours[RESULT_TEXT], theirs[RESULT_TEXT], slack[RESULT_TEXT];
	struct expr_result r = { .n_sides = 2, .op = { NULL, "==" } };
	double wanted, t = p->tolerance.value;
	int digits;

	if (published_at(j->w, p, j->point, &wanted) < 0)
		return 0;
	if (!s->n)
		return add_missing(j, check,
				   text_of("no value of %s", m->name));
	if (p->tolerance.relative)
		t *= fabs(wanted);
	r.side[0] = s->median;
	r.side[1] = wanted;
	r.slack[1] = t;
	digits = verdict_digits(&r);
	result_digits(ours, sizeof(ours), s->median, digits);
	result_digits(theirs, sizeof(theirs), wanted, digits);
	result_digits(slack, sizeof(slack), t, digits);
	return add(
		j, check, expr_holds(&r),
		(struct found){ .numbers = text_of("%s, published %s +- %s",
						   ours, theirs, slack),
				.ours = strdup(ours),
				.wanted = text_of("%s +- %s", theirs, slack) });
}

/* A correlation of `n` values >= another. */
static int add_rank(const struct judge *j, const char *check,
		    const struct expr_result *r, size_t n)
{
	char rho[RESULT_TEXT];

	result_digits(rho, sizeof(rho), r->side[0], verdict_digits(r));
	return add(j, check, expr_holds(r),
		   (struct found){ .numbers =
					   text_of("Spearman's rho %s >= %.3g, "
						   "of %zu values",
						   rho, r->side[1], n),
				   .ours = text_of("rho %s", rho),
				   .wanted = text_of(">= %.3g", r->side[1]) });
}

/* Compare the ranks of our and published values, for one combination of the
 * other axes. */
static int judge_rank(struct judge *j, const struct published *p,
		      const struct metric *m, const char *check)
{
	size_t axis = (size_t)workload_axis(j->w, p->along);
	size_t n_labels = j->w->axes[axis].n_points, n = 0;
	_cleanup_free_ double *ours = calloc(n_labels, sizeof(*ours));
	_cleanup_free_ double *theirs = calloc(n_labels, sizeof(*theirs));
	struct expr_result r = { .n_sides = 2,
				 .side = { 0, p->rank },
				 .op = { NULL, ">=" } };

	for (size_t i = 0; ours && theirs && i < n_labels; i++) {
		size_t at = workload_move(j->w, j->point, axis, i);
		const struct spread *s = result_at(j->res, at, m);

		if (published_at(j->w, p, at, &theirs[n]) < 0)
			continue;
		if (!s->n)
			return add_missing(
				j, check,
				text_of("no value of %s at %s", m->name,
					j->w->axes[axis].points[i].label));
		ours[n++] = s->median;
	}
	if (!ours || !theirs)
		return -ENOMEM;
	r.side[0] = stats_spearman(ours, theirs, n);
	if (isnan(r.side[0]))
		return add_missing(j, check, strdup("too few values"));
	return add_rank(j, check, &r, n);
}

static int judge_published(struct judge *j, const struct published *p)
{
	const struct metric *m = metric_find(&j->w->metrics, p->metric);
	size_t axis = (size_t)workload_axis(j->w, p->along);
	_cleanup_free_ char *values = text_of(
		"%s as published (%s)", m->label ? m->label : m->name, p->name);
	_cleanup_free_ char *order = text_of("order of %s as published (%s)",
					     m->label ? m->label : m->name,
					     p->name);
	int code = values && order ? 0 : -ENOMEM;

	for (size_t pass = 0; pass < 2; pass++) {
		size_t before = j->v->n;

		if (pass == 0 ? !p->tolerance.given : !p->ranked)
			continue;
		for (size_t a = 0; a < j->w->n_axes; a++)
			j->depends[a] = pass == 0 || a != axis;
		for (size_t i = 0; code == 0 && i < j->w->n_points; i++) {
			if (!is_asked(j, i))
				continue;
			j->point = i;
			code = pass == 0 ? judge_value(j, p, m, values)
					 : judge_rank(j, p, m, order);
		}
		if (code == 0)
			code = settle(j, before, pass == 0 ? values : order);
	}
	return code;
}

/* --- all -------------------------------------------------------------- */

int verdicts_init(struct verdicts *v, const struct result *res, struct err *err)
{
	const struct expect *e = res->r->w->expects.items;
	const struct published *p = res->r->w->published.items;
	struct judge j;
	int code = 0;

	*v = (struct verdicts){ 0 };
	for (size_t i = 0; code == 0 && i < res->r->w->expects.n; i++) {
		code = judge_init(&j, res, e[i].where, v);
		if (code == 0)
			code = e[i].that ? judge_that(&j, &e[i])
					 : judge_order(&j, &e[i]);
		free(j.depends);
	}
	for (size_t i = 0; code == 0 && i < res->r->w->published.n; i++) {
		code = judge_init(&j, res, p[i].where, v);
		if (code == 0)
			code = judge_published(&j, &p[i]);
		free(j.depends);
	}
	return code < 0 ? err_set(err, code, "out of memory") : 0;
}

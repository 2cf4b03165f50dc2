/* SPDX-License-Identifier: MIT */
#include "emu/profile/dist.h"

#include <errno.h>
#include <math.h>
#include <stdbool.h>
#include <string.h>

#include "common/conf/plugin_choice.h"
#include "common/units.h"
#include "common/util.h"
#include "common/word.h"

static const char *const dist_names[DIST_N_KINDS] = {
	[DIST_CONST] = "const",	  [DIST_UNIFORM] = "uniform",
	[DIST_NORMAL] = "normal", [DIST_LOGNORMAL] = "lognormal",
	[DIST_GAMMA] = "gamma",	  [DIST_EMPIRICAL] = "empirical",
};

const char *dist_name(enum dist_kind kind)
{
	return dist_names[kind];
}

/* --- reading ---------------------------------------------------------- */

const struct conf_field dist_quantile_fields[] = {
	{ CONF_KEY(q, CONF_DOUBLE, struct dist_quantile), .required = true,
	  .min = 0, .max = 1 },
	{ "time", CONF_DURATION, offsetof(struct dist_quantile, ns),
	  .required = true, .min = 0, .max = DIST_MAX_NS },
	{ 0 },
};

#define DIST_TIME(type, at, key, member)                       \
	{                                                      \
		key, CONF_DURATION, offsetof(type, at member), \
			.min = 0, .max = DIST_MAX_NS           \
	}
#define DIST_FIELDS(type, at)                                                  \
	{ "kind", CONF_STRING, offsetof(type, at kind_name),                   \
	  .required = true },                                                  \
		DIST_TIME(type, at, "value", value_ns),                        \
		DIST_TIME(type, at, "min", min_ns),                            \
		DIST_TIME(type, at, "max", max_ns),                            \
		DIST_TIME(type, at, "mean", mean_ns),                          \
		DIST_TIME(type, at, "sd", sd_ns),                              \
		DIST_TIME(type, at, "median", median_ns),                      \
		{ "sigma", CONF_DOUBLE, offsetof(type, at sigma), .min = 0,    \
		  .max = 5 },                                                  \
		{ "shape", CONF_DOUBLE, offsetof(type, at shape), .min = 0.01, \
		  .max = 1e6 },                                                \
	{                                                                      \
		"quantiles", CONF_LIST, offsetof(type, at quantiles),          \
			.item = CONF_ROW,                                      \
			.item_size = sizeof(struct dist_quantile),             \
			.fields = dist_quantile_fields                         \
	}

int dist_check_quantiles(const struct conf_list *quantiles, struct err *err)
{
	const struct dist_quantile *v = quantiles->items;
	size_t n = quantiles->n;

	if (n < 2 || v[0].q > 0 || v[n - 1].q < 1)
		return err_set(
			err, -EINVAL,
			"quantiles must go from 0 to 1, with two rows or more");
	for (size_t i = 1; i < n; i++)
		if (v[i].q <= v[i - 1].q || v[i].ns < v[i - 1].ns)
			return err_set(err, -EINVAL, "quantiles must ascend");
	return 0;
}

/* Reject parameters of other kinds, which would be ignored, and missing
 * parameters, which would change the distribution. */
static int check_parameters(const struct dist *d, int kind, struct err *err)
{
	const struct {
		const char *name;
		bool given;
		unsigned kinds;
		bool may_be_0;
	} parameters[] = {
		{ "value", d->value_ns, 1u << DIST_CONST, true },
		{ "min", d->min_ns, 1u << DIST_UNIFORM, true },
		{ "max", d->max_ns, 1u << DIST_UNIFORM },
		{ "mean", d->mean_ns, 1u << DIST_NORMAL | 1u << DIST_GAMMA },
		{ "sd", d->sd_ns, 1u << DIST_NORMAL },
		{ "median", d->median_ns, 1u << DIST_LOGNORMAL },
		{ "sigma", d->sigma > 0, 1u << DIST_LOGNORMAL },
		{ "shape", d->shape > 0, 1u << DIST_GAMMA },
		{ "quantiles", d->quantiles.n, 1u << DIST_EMPIRICAL },
	};

	for (size_t i = 0; i < ARRAY_SIZE(parameters); i++) {
		bool own = parameters[i].kinds & 1u << kind;

		if (parameters[i].given && !own)
			return err_set(err, -EINVAL,
				       "'%s' is not a parameter of '%s'",
				       parameters[i].name, dist_names[kind]);
		if (own && !parameters[i].given && !parameters[i].may_be_0)
			return err_set(err, -EINVAL, "'%s' needs '%s'",
				       dist_names[kind], parameters[i].name);
	}
	return 0;
}

static int check_dist(const struct dist *d, struct err *err)
{
	int kind, r;

	if (!d->kind_name)
		return 0;
	kind = WORD_FIND(dist_names, "kind", d->kind_name, err);
	if (kind < 0)
		return kind;
	r = check_parameters(d, kind, err);
	if (r < 0)
		return r;
	if (kind == DIST_UNIFORM && d->min_ns > d->max_ns)
		return err_set(err, -EINVAL, "min is above max");
	return kind == DIST_EMPIRICAL ? dist_check_quantiles(&d->quantiles, err)
				      : 0;
}

static int check_replace(const void *object, struct err *err)
{
	return check_dist(object, err);
}

int dist_time_check(const void *object, struct err *err)
{
	const struct dist_time *t = object;

	return check_dist(&t->body, err);
}

static int check_tail(const void *object, struct err *err)
{
	const struct dist_tail *t = object;
	bool multiply = t->multiply.max > 0;

	if (t->multiply.min > t->multiply.max)
		return err_set(err, -EINVAL, "multiply must ascend");
	if (multiply == !!t->replace.kind_name)
		return err_set(err, -EINVAL,
			       "a tail needs one of 'multiply' and "
			       "'replace'");
	return 0;
}

static const struct conf_field factor_fields[] = {
	{ "min", CONF_DOUBLE, 0, .required = true, .min = 0, .max = 1e6 },
	{ "max", CONF_DOUBLE, sizeof(double), .required = true, .min = 0,
	  .max = 1e6 },
	{ 0 },
};
static const struct conf_field replace_fields[] = {
	DIST_FIELDS(struct dist, ),
	{ 0 },
};
static const struct conf_field tail_fields[] = {
	{ CONF_KEY(probability, CONF_DOUBLE, struct dist_tail),
	  .required = true, .min = 1e-9, .max = 1 },
	{ CONF_KEY(multiply, CONF_ROW, struct dist_tail),
	  .fields = factor_fields },
	{ CONF_KEY(replace, CONF_RECORD, struct dist_tail),
	  .fields = replace_fields, .check = check_replace },
	{ 0 },
};
const struct conf_field dist_time_fields[] = {
	DIST_FIELDS(struct dist_time, body.),
	{ CONF_KEY(tail, CONF_RECORD, struct dist_time), .fields = tail_fields,
	  .check = check_tail },
	{ 0 },
};

static void resolve_dist(struct dist *d)
{
	/* the name was checked */
	d->kind = d->kind_name
			  ? WORD_FIND(dist_names, "kind", d->kind_name, NULL)
			  : DIST_CONST;
}

void dist_time_resolve(struct dist_time *t)
{
	resolve_dist(&t->body);
	resolve_dist(&t->tail.replace);
}

/* --- texts ------------------------------------------------------------ */

int dist_time_parse(const char *text, struct dist_time *ret, struct err *err)
{
	const struct conf_field *fields = replace_fields + 1; /* but kind */
	size_t n = strcspn(text, ":");
	int r;

	*ret = (struct dist_time){ 0 };
	if (text[n] && !text[n + 1])
		return err_set(err, -EINVAL, "'%s' lacks its parameters", text);
	ret->body.kind_name = text[n] ? strndup(text, n)
				      : strdup(dist_names[DIST_CONST]);
	if (!ret->body.kind_name)
		return err_set(err, -ENOMEM, "out of memory");
	r = text[n] ? plugin_options_set(fields, &ret->body, text + n + 1, err)
		    : conf_set(fields, &ret->body, text, err);
	if (r == 0)
		r = check_dist(&ret->body, err);
	if (r == 0)
		dist_time_resolve(ret);
	return r;
}

int dist_time_check_text(const void *object, struct err *err)
{
	struct dist_time t;
	int r = dist_time_parse(*(char *const *)object, &t, err);

	dist_time_free(&t);
	return r;
}

char *dist_time_text(const struct dist_time *t)
{
	char *text = NULL, u[UNITS_TEXT], v[UNITS_TEXT];
	const struct dist *d = &t->body;
	int n = -1;

	switch (d->kind) {
	case DIST_CONST:
		n = asprintf(&text, "%s", units_exact_duration(d->value_ns, u));
		break;
	case DIST_UNIFORM:
		n = asprintf(&text, "uniform:min=%s,max=%s",
			     units_exact_duration(d->min_ns, u),
			     units_exact_duration(d->max_ns, v));
		break;
	case DIST_NORMAL:
		n = asprintf(&text, "normal:mean=%s,sd=%s",
			     units_exact_duration(d->mean_ns, u),
			     units_exact_duration(d->sd_ns, v));
		break;
	case DIST_LOGNORMAL:
		n = asprintf(&text, "lognormal:median=%s,sigma=%.17g",
			     units_exact_duration(d->median_ns, u), d->sigma);
		break;
	case DIST_GAMMA:
		n = asprintf(&text, "gamma:mean=%s,shape=%.17g",
			     units_exact_duration(d->mean_ns, u), d->shape);
		break;
	case DIST_EMPIRICAL:
	case DIST_N_KINDS: break; /* has no text */
	}
	return n < 0 ? NULL : text;
}

void dist_time_free(struct dist_time *t)
{
	conf_free(dist_time_fields, t);
}

/* --- means ------------------------------------------------------------ */

double dist_quantiles_mean(const struct conf_list *quantiles)
{
	const struct dist_quantile *v = quantiles->items;
	double sum = 0;

	for (size_t i = 1; i < quantiles->n; i++)
		sum += (v[i].q - v[i - 1].q) *
		       ((double)v[i].ns + (double)v[i - 1].ns) / 2;
	return sum;
}

static double dist_mean(const struct dist *d)
{
	switch (d->kind) {
	case DIST_CONST: return (double)d->value_ns;
	case DIST_UNIFORM: return ((double)d->min_ns + (double)d->max_ns) / 2;
	case DIST_NORMAL:
	case DIST_GAMMA: return (double)d->mean_ns;
	case DIST_LOGNORMAL:
		return (double)d->median_ns * exp(d->sigma * d->sigma / 2);
	case DIST_EMPIRICAL: return dist_quantiles_mean(&d->quantiles);
	case DIST_N_KINDS: break;
	}
	return 0;
}

double dist_time_mean(const struct dist_time *t)
{
	double body = dist_mean(&t->body);
	double p = t->tail.probability;
	double tail =
		t->tail.multiply.max > 0
			? body * (t->tail.multiply.min + t->tail.multiply.max) /
				  2
			: dist_mean(&t->tail.replace);

	return (1 - p) * body + p * tail;
}

double dist_time_sd(const struct dist_time *t)
{
	const struct dist *d = &t->body;

	switch (d->kind) {
	case DIST_UNIFORM:
		return ((double)d->max_ns - (double)d->min_ns) / sqrt(12);
	case DIST_NORMAL: return (double)d->sd_ns;
	case DIST_LOGNORMAL:
		return dist_mean(d) * sqrt(expm1(d->sigma * d->sigma));
	case DIST_GAMMA: return (double)d->mean_ns / sqrt(d->shape);
	case DIST_CONST:
	case DIST_EMPIRICAL:
	case DIST_N_KINDS: break;
	}
	return 0;
}

/* --- draws ------------------------------------------------------------ */

double dist_quantile(const struct conf_list *quantiles, double u)
{
	const struct dist_quantile *v = quantiles->items;
	size_t lo = 0, hi = quantiles->n - 1;

	while (hi - lo > 1) {
		size_t mid = lo + (hi - lo) / 2;

		if (v[mid].q <= u)
			lo = mid;
		else
			hi = mid;
	}
	return (double)v[lo].ns + (double)(v[hi].ns - v[lo].ns) *
					  (u - v[lo].q) / (v[hi].q - v[lo].q);
}

static double draw_dist(const struct dist *dist, struct rng *rng)
{
	switch (dist->kind) {
	case DIST_CONST: return (double)dist->value_ns;
	case DIST_UNIFORM:
		return (double)dist->min_ns +
		       (double)(dist->max_ns - dist->min_ns) * rng_double(rng);
	case DIST_NORMAL:
		return fmax(0, (double)dist->mean_ns +
				       (double)dist->sd_ns * rng_normal(rng));
	case DIST_LOGNORMAL:
		return (double)dist->median_ns *
		       exp(dist->sigma * rng_normal(rng));
	case DIST_GAMMA:
		return rng_gamma(rng, dist->shape,
				 (double)dist->mean_ns / dist->shape);
	case DIST_EMPIRICAL:
		return dist_quantile(&dist->quantiles, rng_double(rng));
	case DIST_N_KINDS: break;
	}
	return 0;
}

uint64_t dist_time_draw(const struct dist_time *t, struct rng *rng)
{
	bool tail = t->tail.probability > 0 &&
		    rng_double(rng) < t->tail.probability;
	double ns;

	if (tail && t->tail.multiply.max <= 0)
		ns = draw_dist(&t->tail.replace, rng);
	else
		ns = draw_dist(&t->body, rng);
	if (tail && t->tail.multiply.max > 0)
		ns *= t->tail.multiply.min +
		      (t->tail.multiply.max - t->tail.multiply.min) *
			      rng_double(rng);
	return (uint64_t)llround(fmin(ns, DIST_MAX_NS));
}

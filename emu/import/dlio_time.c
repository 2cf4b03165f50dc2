/* SPDX-License-Identifier: MIT */
#include "emu/import/dlio_time.h"

#include <errno.h>
#include <math.h>
#include <string.h>

#include "common/units.h"

int dlio_number(const struct conf_node *at, const char *name, double min,
		double max, double *ret, struct err *err)
{
	const char *key = at->key ? at->key : "item";

	if (at->kind != CONF_KIND_SCALAR)
		return conf_node_error(at, name, err, "%s: not a number", key);
	if (strstr(at->value, "${"))
		return conf_node_error(at, name, err,
				       "%s: '%s' is an interpolation of Hydra; "
				       "write its value",
				       key, at->value);
	if (units_parse_double(at->value, ret) < 0)
		return conf_node_error(at, name, err,
				       "%s: '%s' is not a number", key,
				       at->value);
	if (*ret < min || *ret > max)
		return conf_node_error(at, name, err,
				       "%s: %s is not from %g to %g", key,
				       at->value, min, max);
	return 0;
}

static uint64_t ns(double seconds)
{
	return (uint64_t)llround(seconds * 1e9);
}

static int set_kind(struct dist_time *t, enum dist_kind kind)
{
	t->body.kind_name = strdup(dist_name(kind));
	t->body.kind = kind;
	return t->body.kind_name ? 0 : -ENOMEM;
}

/* A parameter of a distribution; one that is missing is an error, unless it
 * may be. */
static int parameter(const struct conf_node *map, const char *name,
		     const char *key, bool optional, double *ret,
		     struct err *err)
{
	const struct conf_node *at = conf_node_get(map, key);

	*ret = 0;
	if (at)
		return dlio_number(at, name, 0, DIST_MAX_NS / 1e9, ret, err);
	return optional ? 0
			: conf_node_error(map, name, err, "%s: '%s' is missing",
					  map->key ? map->key : "time", key);
}

static int constant(struct dist_time *t, double seconds)
{
	t->body.value_ns = ns(seconds);
	return set_kind(t, DIST_CONST);
}

static int normal(struct dist_time *t, double mean, double stdev)
{
	t->body.mean_ns = ns(mean);
	t->body.sd_ns = ns(stdev);
	/* both are parameters of `normal` that must not be 0 */
	return t->body.sd_ns && t->body.mean_ns ? set_kind(t, DIST_NORMAL)
						: -EINVAL;
}

static int read_normal(const struct conf_node *map, const char *name,
		       bool spread, struct dist_time *t, struct err *err)
{
	double mean, stdev;
	int r = parameter(map, name, "mean", false, &mean, err);

	if (r == 0)
		r = parameter(map, name, "stdev", !spread, &stdev, err);
	if (r < 0)
		return r;
	if (ns(stdev) == 0)
		return constant(t, mean);
	r = normal(t, mean, stdev);
	return r == -EINVAL ? conf_node_error(map, name, err,
					      "a mean of 0 has no deviation")
			    : r;
}

static int read_uniform(const struct conf_node *map, const char *name,
			struct dist_time *t, struct err *err)
{
	double min, max;
	int r = parameter(map, name, "min", false, &min, err);

	if (r == 0)
		r = parameter(map, name, "max", false, &max, err);
	if (r < 0)
		return r;
	if (ns(min) >= ns(max))
		return conf_node_error(map, name, err,
				       "uniform: max is not above min");
	t->body.min_ns = ns(min);
	t->body.max_ns = ns(max);
	return set_kind(t, DIST_UNIFORM);
}

/* By shape and scale, or by the mean, which is their product, and the
 * deviation, which is the mean over the root of the shape. */
static int read_gamma(const struct conf_node *map, const char *name,
		      struct dist_time *t, struct err *err)
{
	bool moments = conf_node_get(map, "mean");
	double a, b, mean;
	int r = parameter(map, name, moments ? "mean" : "shape", false, &a,
			  err);

	if (r == 0)
		r = parameter(map, name, moments ? "stdev" : "scale", false, &b,
			      err);
	if (r < 0)
		return r;
	mean = moments ? a : a * b;
	t->body.shape = moments ? a / b * (a / b) : a;
	/* as far as struct dist goes */
	if (!(t->body.shape >= .01 && t->body.shape <= 1e6) || ns(mean) == 0 ||
	    mean > DIST_MAX_NS / 1e9)
		return conf_node_error(map, name, err,
				       "gamma: a mean of %g s and a shape of "
				       "%g are not possible",
				       mean, t->body.shape);
	t->body.mean_ns = ns(mean);
	return set_kind(t, DIST_GAMMA);
}

/* A gamma distribution of shape 1. */
static int read_exponential(const struct conf_node *map, const char *name,
			    struct dist_time *t, struct err *err)
{
	double scale;
	int r = parameter(map, name, "scale", false, &scale, err);

	if (r < 0)
		return r;
	if (ns(scale) == 0)
		return conf_node_error(map, name, err, "exponential: no scale");
	t->body.mean_ns = ns(scale);
	t->body.shape = 1;
	return set_kind(t, DIST_GAMMA);
}

static int read_typed(const struct conf_node *map, const struct conf_node *type,
		      const char *name, struct dist_time *t, struct err *err)
{
	const char *kind = type->kind == CONF_KIND_SCALAR ? type->value : "";

	if (!strcmp(kind, "normal"))
		return read_normal(map, name, true, t, err);
	if (!strcmp(kind, "uniform"))
		return read_uniform(map, name, t, err);
	if (!strcmp(kind, "gamma"))
		return read_gamma(map, name, t, err);
	if (!strcmp(kind, "exponential"))
		return read_exponential(map, name, t, err);
	if (!strcmp(kind, "poisson"))
		return conf_node_error(type, name, err,
				       "poisson draws whole seconds, which no "
				       "distribution here does");
	return conf_node_error(type, name, err,
			       "unknown type '%s' (known: normal uniform gamma "
			       "exponential)",
			       kind);
}

int dlio_time(const struct conf_node *at, const char *name,
	      struct dist_time *ret, struct err *err)
{
	const struct conf_node *type = NULL;
	double seconds;
	int r;

	*ret = (struct dist_time){ 0 };
	if (at->kind == CONF_KIND_MAPPING) {
		type = conf_node_get(at, "type");
		r = type ? read_typed(at, type, name, ret, err)
			 : read_normal(at, name, false, ret, err);
	} else {
		r = dlio_number(at, name, 0, DIST_MAX_NS / 1e9, &seconds, err);
		if (r == 0)
			r = constant(ret, seconds);
	}
	return r == -ENOMEM ? err_set(err, r, "out of memory") : r;
}

int dlio_time_spread(struct dist_time *t, double stdev, struct err *err)
{
	double mean = (double)t->body.value_ns / 1e9;

	if (ns(stdev) == 0)
		return 0;
	if (t->body.kind != DIST_CONST || !t->body.kind_name || mean <= 0)
		return err_set(err, -EINVAL,
			       "a deviation needs a time that is a number "
			       "above 0");
	dist_time_free(t);
	*t = (struct dist_time){ 0 };
	return normal(t, mean, stdev);
}

/* SPDX-License-Identifier: MIT */
#include "emu/profile_storage.h"

#include <errno.h>
#include <math.h>
#include <string.h>

#include "common/units.h"
#include "common/util.h"
#include "emu/profile.h"

/* An hour: longer than any operation, short enough that sums stay exact. */
#define MAX_NS 3.6e12

static const char *const dist_names[STORAGE_N_DISTS] = {
	[STORAGE_CONST] = "const",   [STORAGE_UNIFORM] = "uniform",
	[STORAGE_NORMAL] = "normal", [STORAGE_LOGNORMAL] = "lognormal",
	[STORAGE_GAMMA] = "gamma",   [STORAGE_EMPIRICAL] = "empirical",
};
static const char *const op_names[STORAGE_N_OPS] = {
	[STORAGE_OPEN] = "open",
	[STORAGE_LOOKUP] = "lookup",
	[STORAGE_READDIR] = "readdir",
	[STORAGE_READ] = "read",
};

const char *storage_op_name(enum storage_op op)
{
	return op_names[op];
}

const char *storage_dist_name(enum storage_dist_kind kind)
{
	return dist_names[kind];
}

/* --- one distribution ------------------------------------------------- */

static const struct conf_field quantile_fields[] = {
	{ "q", CONF_DOUBLE, offsetof(struct storage_quantile, q),
	  .required = true, .min = 0, .max = 1 },
	{ "time", CONF_DURATION, offsetof(struct storage_quantile, ns),
	  .required = true, .min = 0, .max = MAX_NS },
	{ 0 },
};

#define DIST_TIME(type, at, key, member)                                     \
	{                                                                    \
		key, CONF_DURATION, offsetof(type, at member), .min = 0,     \
							       .max = MAX_NS \
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
			.item_size = sizeof(struct storage_quantile),          \
			.fields = quantile_fields                              \
	}

static int kind_of(const char *name)
{
	for (int i = 0; i < STORAGE_N_DISTS; i++)
		if (!strcmp(dist_names[i], name))
			return i;
	return -EINVAL;
}

static int check_quantiles(const struct storage_dist *d, struct err *err)
{
	const struct storage_quantile *v = d->quantiles.items;
	size_t n = d->quantiles.n;

	if (n < 2 || v[0].q > 0 || v[n - 1].q < 1)
		return err_set(err, -EINVAL,
			       "quantiles must go from 0 to 1 in two or more");
	for (size_t i = 1; i < n; i++)
		if (v[i].q <= v[i - 1].q || v[i].ns < v[i - 1].ns)
			return err_set(err, -EINVAL, "quantiles must ascend");
	return 0;
}

/* A parameter of another kind would be one that nobody reads. */
static int check_parameters(const struct storage_dist *d, int kind,
			    struct err *err)
{
	const struct {
		const char *name;
		bool given;
		unsigned kinds;
	} parameters[] = {
		{ "value", d->value_ns, 1u << STORAGE_CONST },
		{ "min", d->min_ns, 1u << STORAGE_UNIFORM },
		{ "max", d->max_ns, 1u << STORAGE_UNIFORM },
		{ "mean", d->mean_ns,
		  1u << STORAGE_NORMAL | 1u << STORAGE_GAMMA },
		{ "sd", d->sd_ns, 1u << STORAGE_NORMAL },
		{ "median", d->median_ns, 1u << STORAGE_LOGNORMAL },
		{ "sigma", d->sigma > 0, 1u << STORAGE_LOGNORMAL },
		{ "shape", d->shape > 0, 1u << STORAGE_GAMMA },
		{ "quantiles", d->quantiles.n, 1u << STORAGE_EMPIRICAL },
	};

	for (size_t i = 0; i < ARRAY_SIZE(parameters); i++)
		if (parameters[i].given && !(parameters[i].kinds & 1u << kind))
			return err_set(err, -EINVAL,
				       "'%s' does not belong to '%s'",
				       parameters[i].name, dist_names[kind]);
	return 0;
}

static int check_dist(const struct storage_dist *d, struct err *err)
{
	int kind, r;

	if (!d->kind_name)
		return 0;
	kind = kind_of(d->kind_name);
	if (kind < 0)
		return err_set(err, -EINVAL,
			       "unknown kind '%s' (known: const uniform "
			       "normal lognormal gamma empirical)",
			       d->kind_name);
	r = check_parameters(d, kind, err);
	if (r < 0)
		return r;
	switch (kind) {
	case STORAGE_UNIFORM:
		return d->min_ns <= d->max_ns
			       ? 0
			       : err_set(err, -EINVAL, "min is above max");
	case STORAGE_GAMMA:
		return d->shape > 0
			       ? 0
			       : err_set(err, -EINVAL, "gamma needs a shape");
	case STORAGE_EMPIRICAL: return check_quantiles(d, err);
	default: return 0;
	}
}

static int check_replace(const void *object, struct err *err)
{
	return check_dist(object, err);
}

static int check_time(const void *object, struct err *err)
{
	const struct storage_time *t = object;

	return check_dist(&t->body, err);
}

static int check_tail(const void *object, struct err *err)
{
	const struct storage_tail *t = object;
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
	DIST_FIELDS(struct storage_dist, ),
	{ 0 },
};
static const struct conf_field tail_fields[] = {
	{ "probability", CONF_DOUBLE,
	  offsetof(struct storage_tail, probability), .required = true,
	  .min = 1e-9, .max = 1 },
	{ "multiply", CONF_ROW, offsetof(struct storage_tail, multiply),
	  .fields = factor_fields },
	{ "replace", CONF_RECORD, offsetof(struct storage_tail, replace),
	  .fields = replace_fields, .check = check_replace },
	{ 0 },
};
static const struct conf_field time_fields[] = {
	DIST_FIELDS(struct storage_time, body.),
	{ "tail", CONF_RECORD, offsetof(struct storage_time, tail),
	  .fields = tail_fields, .check = check_tail },
	{ 0 },
};

/* --- the profile ------------------------------------------------------ */

#define CLASS_TIME(key, member)                                           \
	{                                                                 \
		key, CONF_RECORD, offsetof(struct storage_class, member), \
			.fields = time_fields, .check = check_time        \
	}
#define SOURCED(type, at)                                          \
	{ "source", CONF_STRING, offsetof(type, at source),        \
	  .required = true },                                      \
	{                                                          \
		"verified", CONF_BOOL, offsetof(type, at verified) \
	}

/* More than this no device sorts; it also bounds what fs/device.c counts. */
enum { MAX_REORDER = 1024 };

static const struct conf_field reorder_fields[] = {
	{ "in_queue", CONF_UINT, offsetof(struct storage_reorder, in_queue),
	  .required = true, .min = 1, .max = MAX_REORDER },
	{ "share", CONF_DOUBLE, offsetof(struct storage_reorder, share),
	  .required = true, .min = 0, .max = 1 },
	{ 0 },
};

static int check_class(const void *object, struct err *err)
{
	const struct storage_class *c = object;
	const struct storage_reorder *v = c->reorder.items;

	for (size_t i = 0; i < c->reorder.n; i++)
		if (i ? v[i].in_queue <= v[i - 1].in_queue : v[i].in_queue != 1)
			return err_set(err, -EINVAL,
				       "reorder must ascend, from 1 on");
	return 0;
}

static const struct conf_field class_fields[] = {
	SOURCED(struct storage_class, ),
	CLASS_TIME("occupancy", occupancy),
	CLASS_TIME("latency", latency),
	CLASS_TIME("seek", seek),
	{ "rotation", CONF_DURATION,
	  offsetof(struct storage_class, rotation_ns), .min = 0,
	  .max = MAX_NS },
	{ "reorder", CONF_LIST, offsetof(struct storage_class, reorder),
	  .item = CONF_ROW, .item_size = sizeof(struct storage_reorder),
	  .fields = reorder_fields },
	{ "slots", CONF_UINT, offsetof(struct storage_class, slots), .min = 0,
	  .max = 1000 },
	{ 0 },
};

/* 10^7 MB/s is 10 TB/s; 2^40: no device is wider. */
#define RATE(type, member)                                                  \
	{                                                                   \
		"mb_per_s", CONF_DOUBLE, offsetof(type, member), .min = 0,  \
								 .max = 1e7 \
	}
#define CHUNK(key, member)                                                \
	{                                                                 \
		key, CONF_SIZE, offsetof(struct storage_profile, member), \
			.min = 0, .max = 1099511627776.0                  \
	}
static const struct conf_field channels_fields[] = {
	SOURCED(struct storage_profile, channels.),
	{ "count", CONF_UINT, offsetof(struct storage_profile, channels.count),
	  .min = 0, .max = 65536 },
	RATE(struct storage_profile, channels.mb_per_s),
	CHUNK("stripe", channels.stripe_bytes),
	{ 0 },
};
static const struct conf_field link_fields[] = {
	SOURCED(struct storage_profile, link.),
	RATE(struct storage_profile, link.mb_per_s),
	{ 0 },
};
static const struct conf_field iops_fields[] = {
	SOURCED(struct storage_profile, iops.),
	{ "per_s", CONF_DOUBLE, offsetof(struct storage_profile, iops.per_s),
	  .min = 0, .max = 1e9 },
	{ "burst", CONF_UINT, offsetof(struct storage_profile, iops.burst),
	  .min = 1, .max = 1e9 },
	CHUNK("slot", iops.slot_bytes),
	{ 0 },
};
static const struct conf_field random_read_fields[] = {
	{ "size", CONF_SIZE, offsetof(struct storage_measured, bytes),
	  .required = true, .min = 512, .max = 1048576 },
	{ "mb_per_s", CONF_DOUBLE, offsetof(struct storage_measured, mb_per_s),
	  .required = true, .min = 1e-3, .max = 1e7 },
	{ 0 },
};
#define CLASS(key, n)                                                      \
	{                                                                  \
		key, CONF_RECORD, offsetof(struct storage_profile, op[n]), \
			.fields = class_fields, .check = check_class       \
	}
/* What is left out costs nothing; what is there names its source. */
static const struct conf_field fields[] = {
	{ "name", CONF_STRING, offsetof(struct storage_profile, name),
	  .required = true },
	{ "source", CONF_STRING, offsetof(struct storage_profile, source),
	  .required = true },
	{ "notes", CONF_STRING, offsetof(struct storage_profile, notes) },
	/* their offsets count from the whole profile */
	{ "channels", CONF_RECORD, 0, .fields = channels_fields },
	{ "link", CONF_RECORD, 0, .fields = link_fields },
	{ "iops", CONF_RECORD, 0, .fields = iops_fields },
	CLASS("open", STORAGE_OPEN),
	CLASS("lookup", STORAGE_LOOKUP),
	CLASS("readdir", STORAGE_READDIR),
	CLASS("read", STORAGE_READ),
	{ "random_reads", CONF_LIST,
	  offsetof(struct storage_profile, random_reads), .item = CONF_ROW,
	  .item_size = sizeof(struct storage_measured),
	  .fields = random_read_fields },
	{ 0 },
};

static void resolve_dist(struct storage_dist *d)
{
	d->kind = d->kind_name ? kind_of(d->kind_name) : STORAGE_CONST;
}

static void resolve_time(struct storage_time *t)
{
	resolve_dist(&t->body);
	resolve_dist(&t->tail.replace);
}

static void resolve(struct storage_profile *p)
{
	for (int i = 0; i < STORAGE_N_OPS; i++) {
		resolve_time(&p->op[i].occupancy);
		resolve_time(&p->op[i].latency);
		resolve_time(&p->op[i].seek);
	}
}

static struct storage_profile *new_profile(void)
{
	struct storage_profile *p = calloc(1, sizeof(*p));

	if (!p)
		return NULL;
	p->iops.burst = 1;
	for (int i = 0; i < STORAGE_N_OPS; i++)
		p->op[i].slots = 1;
	return p;
}

static int finish(struct storage_profile *p, int r,
		  struct storage_profile **ret)
{
	if (r < 0) {
		storage_profile_free(p);
		return r;
	}
	resolve(p);
	*ret = p;
	return 0;
}

int storage_profile_load(const char *name, struct storage_profile **ret,
			 struct err *err)
{
	struct storage_profile *p = new_profile();

	if (!p)
		return -ENOMEM;
	return finish(p,
		      profile_load(PROFILE_STORAGE, name, fields, NULL, p, err),
		      ret);
}

int storage_profile_parse(const char *bytes, size_t n, const char *name,
			  struct storage_profile **ret, struct err *err)
{
	struct storage_profile *p = new_profile();

	if (!p)
		return -ENOMEM;
	return finish(p, profile_parse(bytes, n, name, fields, NULL, p, err),
		      ret);
}

void storage_profile_free(struct storage_profile *p)
{
	if (!p)
		return;
	conf_free(fields, p);
	free(p);
}

json_t *storage_profile_json(const struct storage_profile *p)
{
	return conf_json(fields, p);
}

/* --- means ------------------------------------------------------------ */

static double empirical_mean(const struct storage_dist *d)
{
	const struct storage_quantile *v = d->quantiles.items;
	double sum = 0;

	for (size_t i = 1; i < d->quantiles.n; i++)
		sum += (v[i].q - v[i - 1].q) *
		       ((double)v[i].ns + (double)v[i - 1].ns) / 2;
	return sum;
}

double storage_dist_mean(const struct storage_dist *d)
{
	switch (d->kind) {
	case STORAGE_CONST: return (double)d->value_ns;
	case STORAGE_UNIFORM:
		return ((double)d->min_ns + (double)d->max_ns) / 2;
	case STORAGE_NORMAL:
	case STORAGE_GAMMA: return (double)d->mean_ns;
	case STORAGE_LOGNORMAL:
		return (double)d->median_ns * exp(d->sigma * d->sigma / 2);
	case STORAGE_EMPIRICAL: return empirical_mean(d);
	case STORAGE_N_DISTS: break;
	}
	return 0;
}

double storage_time_mean(const struct storage_time *t)
{
	double body = storage_dist_mean(&t->body);
	double p = t->tail.probability;
	double tail =
		t->tail.multiply.max > 0
			? body * (t->tail.multiply.min + t->tail.multiply.max) /
				  2
			: storage_dist_mean(&t->tail.replace);

	return (1 - p) * body + p * tail;
}

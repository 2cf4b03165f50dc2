/* SPDX-License-Identifier: MIT */
#include "emu/profile_prep.h"

#include <math.h>

#include "emu/profile.h"

static const struct conf_field fields[] = {
	{ "name", CONF_STRING, offsetof(struct prep_profile, name),
	  .required = true },
	{ "source", CONF_STRING, offsetof(struct prep_profile, source),
	  .required = true },
	{ "verified", CONF_BOOL, offsetof(struct prep_profile, verified),
	  .required = true },
	{ "notes", CONF_STRING, offsetof(struct prep_profile, notes) },
	{ "sample", CONF_RECORD, offsetof(struct prep_profile, sample),
	  .required = true, .fields = dist_time_fields,
	  .check = dist_time_check },
	{ "per_mb", CONF_DURATION, offsetof(struct prep_profile, per_mb_ns),
	  .min = 0, .max = DIST_MAX_NS },
	{ 0 },
};

int prep_profile_load(const char *name, struct prep_profile *ret,
		      struct err *err)
{
	int r;

	*ret = (struct prep_profile){ 0 };
	r = profile_load(PROFILE_PREP, name, fields, NULL, ret, err);
	if (r == 0)
		dist_time_resolve(&ret->sample);
	return r;
}

int prep_profile_parse(const char *bytes, size_t n, const char *name,
		       struct prep_profile *ret, struct err *err)
{
	int r;

	*ret = (struct prep_profile){ 0 };
	r = profile_parse(bytes, n, name, fields, NULL, ret, err);
	if (r == 0)
		dist_time_resolve(&ret->sample);
	return r;
}

void prep_profile_free(struct prep_profile *p)
{
	conf_free(fields, p);
}

json_t *prep_profile_json(const struct prep_profile *p)
{
	return conf_json(fields, p);
}

static double of_bytes(const struct prep_profile *p, double bytes)
{
	return (double)p->per_mb_ns * bytes / 1e6;
}

uint64_t prep_profile_cost(const struct prep_profile *p, uint64_t bytes,
			   struct rng *rng)
{
	double ns = of_bytes(p, (double)bytes);

	return dist_time_draw(&p->sample, rng) +
	       (uint64_t)llround(fmin(ns, DIST_MAX_NS));
}

double prep_profile_mean(const struct prep_profile *p, double bytes)
{
	return dist_time_mean(&p->sample) + of_bytes(p, bytes);
}

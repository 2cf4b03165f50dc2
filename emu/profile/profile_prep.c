/* SPDX-License-Identifier: MIT */
#include "emu/profile/profile_prep.h"

#include <errno.h>
#include <math.h>
#include <string.h>

#include "common/word.h"
#include "emu/profile/profile.h"

static const struct conf_field row_fields[] = {
	{ CONF_KEY(batch, CONF_UINT, struct prep_row), .required = true,
	  .min = 1, .max = 1048576 },
	{ CONF_KEY(ms, CONF_DOUBLE, struct prep_row), .required = true,
	  .min = 0, .max = DIST_MAX_NS / 1e6 },
	{ 0 },
};
static const struct conf_field gpu_fields[] = {
	{ CONF_KEY(rows, CONF_LIST, struct prep_gpu), .required = true,
	  .item = CONF_ROW, .item_size = sizeof(struct prep_row),
	  .fields = row_fields },
	{ CONF_KEY(memory_mib, CONF_DOUBLE, struct prep_gpu), .min = 0,
	  .max = 1e9 },
	{ CONF_KEY(source, CONF_STRING, struct prep_gpu), .required = true },
	{ 0 },
};
static const struct conf_field fields[] = {
	PROFILE_HEAD(struct prep_profile),
	{ CONF_KEY(device, CONF_STRING, struct prep_profile) },
	{ CONF_KEY(sample, CONF_RECORD, struct prep_profile),
	  .fields = dist_time_fields, .check = dist_time_check },
	{ "per_mb", CONF_DURATION, offsetof(struct prep_profile, per_mb_ns),
	  .min = 0, .max = DIST_MAX_NS },
	{ CONF_KEY(gpu, CONF_RECORD, struct prep_profile),
	  .fields = gpu_fields },
	{ 0 },
};

static int check_prep(const void *object, const struct conf_node *root,
		      const char *name, struct err *err)
{
	const struct prep_profile *p = object;
	const struct prep_row *row = p->gpu.rows.items;
	const struct conf_node *gpu = conf_node_get(root, "gpu");
	bool on_gpu = p->device && !strcmp(p->device, "gpu");

	if (p->device && !on_gpu && strcmp(p->device, "cpu"))
		return conf_node_error(conf_node_get(root, "device"), name, err,
				       "device must be cpu or gpu");
	if (on_gpu != (p->gpu.rows.n > 0))
		return conf_node_error(gpu ? gpu : root, name, err,
				       "'device: gpu' and rows under 'gpu' "
				       "go together");
	if (!on_gpu && !p->sample.body.kind_name)
		return conf_node_error(root, name, err, "missing key 'sample'");
	for (size_t i = 1; i < p->gpu.rows.n; i++)
		if (row[i].batch <= row[i - 1].batch)
			return conf_node_error(gpu, name, err,
					       "batch sizes must ascend");
	return 0;
}

PROFILE_FUNCTIONS(prep, PROFILE_PREP, check_prep,
		  (dist_time_resolve(&ret->sample), 0), 0)

int prep_profile_given(const char *time, struct prep_profile *ret,
		       struct err *err)
{
	int r;

	*ret = (struct prep_profile){ .name = strdup("given"),
				      .source = strdup("--prep-time") };
	r = dist_time_parse(time, &ret->sample, err);
	return ret->name && ret->source
		       ? r
		       : err_set(err, -ENOMEM, "out of memory");
}

uint64_t prep_profile_cost(const struct prep_profile *p, uint64_t bytes,
			   struct rng *rng)
{
	double ns = (double)p->per_mb_ns * (double)bytes / 1e6;

	return dist_time_draw(&p->sample, rng) +
	       (uint64_t)llround(fmin(ns, DIST_MAX_NS));
}

uint64_t prep_profile_gpu_ns(const struct prep_profile *p, uint64_t batch)
{
	static const struct prep_row origin;
	const struct prep_row *row = p->gpu.rows.items, *a = &origin, *b;
	size_t n = p->gpu.rows.n, i = 1;
	double ms;

	if (n == 0)
		return 0;
	b = row;
	if (n > 1) {
		while (i + 1 < n && row[i].batch < batch)
			i++;
		a = &row[i - 1];
		b = &row[i];
	}
	ms = a->ms + (b->ms - a->ms) * ((double)batch - (double)a->batch) /
			     ((double)b->batch - (double)a->batch);
	return (uint64_t)llround(fmin(fmax(ms * 1e6, 0), DIST_MAX_NS));
}

int prep_output_parse(const char *s, enum prep_output *ret, struct err *err)
{
	static const char *const outputs[] = {
		[PREP_FP32] = "fp32", [PREP_UINT8] = "uint8"
	};

	return WORD_INTO(outputs, "output of --prep", s, ret, err);
}

uint64_t prep_image_bytes(uint64_t side, enum prep_output output)
{
	return 3 * side * side * (output == PREP_FP32 ? sizeof(float) : 1);
}

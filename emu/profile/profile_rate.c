/* SPDX-License-Identifier: MIT */
#include "emu/profile/profile_rate.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "common/json.h"
#include "common/units.h"
#include "common/util.h"
#include "emu/profile/profile.h"

/* As in profile_gpu.c: the largest batch, and a time below the longest. */
#define MOST_BATCH 1048576
#define MOST_MS 9e8
/* 3 x 224 x 224 values of fp32 */
#define IMAGE_BYTES 602112
/* no limit: more than any device has */
#define MUCH_MIB 1048576

/* What a shipped profile knows of the model on any GPU. Profiles that cannot be
 * read are left out. */
static void look_up(const char *model, uint64_t *parameters,
		    uint64_t *sample_bytes)
{
	_cleanup_(profile_names_freep) char **names = NULL;

	if (profile_names(PROFILE_GPU, &names, NULL) < 0)
		return;
	for (size_t i = 0; names[i] && !(*parameters && *sample_bytes); i++) {
		const struct gpu_model *m = NULL;
		struct gpu_profile p;

		if (gpu_profile_load(names[i], &p, NULL) == 0)
			m = gpu_profile_model(&p, model, NULL);
		/* benchmarks count no parameters */
		if (m && m->parameters) {
			*parameters = *parameters ? *parameters : m->parameters;
			*sample_bytes = *sample_bytes ? *sample_bytes
						      : gpu_sample_bytes(&p, m);
		}
		gpu_profile_free(&p);
	}
}

static void put_row(FILE *f, uint64_t batch, double samples_per_s)
{
	double ms = (double)batch * 1e3 / samples_per_s;

	fprintf(f, "    - [%" PRIu64 ", %.17g, %.17g]\n", batch, ms / 3,
		ms - ms / 3);
}

static void write_yaml(const struct gpu_rate *r, uint64_t parameters,
		       uint64_t sample_bytes, FILE *f)
{
	json_auto_t *model = json_bytes(r->model);
	double most = fmin(MOST_BATCH, floor(r->samples_per_s * MOST_MS / 1e3));

	json_put_yaml(f, "name", r->name);
	json_put_yaml(f, "source", r->source);
	json_put_yaml(
		f, "notes",
		"A step takes its samples divided by the rate that was given. "
		"Nominal: that a third of it is forward. Copies take no time.");
	if (r->precision)
		fprintf(f, "precision: %s\n", r->precision);
	fprintf(f, "memory_mib: %.17g\nsample_bytes: %" PRIu64 "\nmodels:\n  ",
		r->memory_bytes ? (double)r->memory_bytes / MIB : MUCH_MIB,
		sample_bytes);
	json_dumpf(model, f, JSON_ENCODE_ANY | JSON_ENSURE_ASCII);
	fprintf(f, ":\n    parameters: %" PRIu64 "\n    rows:\n", parameters);
	put_row(f, r->batch ? r->batch : 1, r->samples_per_s);
	if (!r->batch && most > 1)
		put_row(f, (uint64_t)most, r->samples_per_s);
}

int gpu_profile_from_rate(const struct gpu_rate *rate, struct gpu_profile *ret,
			  struct err *err)
{
	uint64_t parameters = rate->parameters, bytes = rate->sample_bytes;
	_cleanup_free_ char *yaml = NULL;
	size_t n = 0;
	FILE *f = open_memstream(&yaml, &n);

	*ret = (struct gpu_profile){ 0 };
	if (!f)
		return -ENOMEM;
	look_up(rate->model, &parameters, &bytes);
	write_yaml(rate, parameters, bytes ? bytes : IMAGE_BYTES, f);
	return fclose(f) ? -ENOMEM
			 : gpu_profile_parse(yaml, n, rate->name, ret, err);
}

int gpu_rate_check(const void *object, struct err *err)
{
	double v = *(const double *)object;

	return v == 0 || v >= GPU_RATE_MIN
		       ? 0
		       : err_set(err, -EINVAL, "%g is below %g samples per s",
				 v, GPU_RATE_MIN);
}

int gpu_model_set_rate(struct gpu_model *m, double samples_per_s,
		       bool inference, const char *source)
{
	struct gpu_row *row = m->rows.items;

	free(m->source);
	m->source = strdup(source);

	for (size_t i = 0; i < m->rows.n; i++) {
		double was = row[i].forward_ms + row[i].backward_ms;
		double part = inference ? 1
			      : was > 0 ? row[i].forward_ms / was
					: 1. / 3;
		double ms = (double)row[i].batch * 1e3 / samples_per_s;

		row[i].forward_ms = ms * part;
		row[i].backward_ms = ms - ms * part;
		row[i].optimizer_ms = row[i].spread_pct = 0;
	}
	m->tolerance_pct = m->host_ms = 0;
	m->warmup_ms.n = 0;
	return m->source ? 0 : -ENOMEM;
}

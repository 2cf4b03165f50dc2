/* SPDX-License-Identifier: MIT */
/* gpemu-profile fit: lists the batch sizes that fit the memory of a GPU. */
#include "emu/tool/profile_tool.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>

#include "common/json.h"
#include "common/units.h"
#include "common/util.h"
#include "emu/profile/profile.h"
#include "emu/profile/profile_gpu.h"

/* An estimate counts as correct within this distance of the measured limit. */
#define CLOSE .07

struct options {
	struct cli_common common;
	uint64_t memory; /* bytes; 0: each profile's */
};
static const struct conf_field fields[] = {
	CLI_COMMON_FIELDS(struct options, common),
	{ CONF_KEY(memory, CONF_SIZE, struct options), .arg = "SIZE", .min = 0,
	  .max = 1e15, .check = gpu_memory_check,
	  .help = "memory of the GPU, such as 40G, instead of its profile's" },
	{ 0 },
};

/* How many estimates could be compared with a limit, and how many were close.
 */
struct tally {
	unsigned n, n_close;
};

static double error_of(const struct gpu_profile *p, const struct gpu_model *m)
{
	return (double)gpu_profile_estimated_batch(p, m) /
		       (double)m->last_batch -
	       1;
}

static json_t *fit_line(const struct gpu_profile *p, const struct gpu_model *m,
			struct tally *tally, FILE *f)
{
	uint64_t estimated = gpu_profile_estimated_batch(p, m);
	json_t *error = json_null();

	fprintf(f, "%-24s %8" PRIu64, m->name, estimated);
	if (p->resized) {
		fputc('\n', f);
	} else if (m->last_is_limit) {
		bool close = fabs(error_of(p, m)) <= CLOSE;

		tally->n++;
		tally->n_close += close;
		fprintf(f, " %8" PRIu64 " %+8.1f %%%s\n", m->last_batch,
			100 * error_of(p, m), close ? "" : "  miss");
		error = json_real(error_of(p, m));
	} else {
		fprintf(f, "  >= %4" PRIu64 "\n", m->last_batch);
	}
	return json_pack("{s:s, s:s, s:I, s:I, s:b, s:o}", "gpu", p->name,
			 "model", m->name, "estimated_batch",
			 (json_int_t)estimated, "last_batch",
			 (json_int_t)m->last_batch, "last_is_limit",
			 m->last_is_limit, "error", error);
}

static int load(const char *name, const struct options *o,
		struct gpu_profile *ret, struct err *err)
{
	int r = gpu_profile_load(name, ret, err);

	if (r == 0 && o->memory)
		gpu_profile_resize(ret, (double)o->memory / MIB);
	return r;
}

static int fit_gpu(const char *name, const struct options *o, json_t *j,
		   struct tally *tally, FILE *f, struct err *err)
{
	struct gpu_profile p;
	int r = load(name, o, &p, err);
	const struct gpu_model *m = p.models.items;
	size_t unknown = 0;

	if (r == 0)
		fprintf(f,
			"%s: %.0f MiB, a step's peak may take %.1f %% of it\n"
			"%-24s %8s %8s %10s\n",
			p.name, p.memory_mib, 100 * p.usable_memory, "model",
			"estimate", "measured", "error");
	for (size_t i = 0; r == 0 && i < p.models.n; i++) {
		if (gpu_model_memory_given(&m[i]))
			json_array_append_new(j, fit_line(&p, &m[i], tally, f));
		else
			unknown++;
	}
	if (unknown)
		fprintf(f, "%zu models whose memory was not measured\n",
			unknown);
	gpu_profile_free(&p);
	return r;
}

static int fit_all(const struct options *o, json_t *j, FILE *f, struct err *err)
{
	_cleanup_(profile_names_freep) char **names = NULL;
	struct tally tally = { 0 };
	int r = profile_names(PROFILE_GPU, &names, err);

	for (size_t i = 0; r == 0 && names[i]; i++)
		r = fit_gpu(names[i], o, j, &tally, f, err);
	if (r == 0 && tally.n)
		fprintf(f,
			"%u of %u estimates (%.1f %%) are within %.0f %% of "
			"the largest batch that ran\n",
			tally.n_close, tally.n, 100. * tally.n_close / tally.n,
			100 * CLOSE);
	return r;
}

/* A batch size and its share of the device memory. */
static void row(const struct gpu_profile *p, const struct gpu_model *m,
		uint64_t batch, json_t *rows, FILE *f)
{
	bool fits = batch <= gpu_profile_largest_batch(p, m);
	struct gpu_cost c;

	gpu_profile_cost(p, m, batch, &c);
	fprintf(f, "%6" PRIu64 " %11.1f %9.1f %10.1f %7.1f  %s%s\n", batch,
		c.persistent_mib, c.peak_mib,
		p->usable_memory * p->memory_mib - c.peak_mib,
		100 * c.peak_mib / p->memory_mib, fits ? "fits" : "too large",
		c.origin == GPU_EXTRAPOLATED ? ", extrapolated" : "");
	json_array_append_new(rows,
			      json_pack("{s:I, s:f, s:f, s:b, s:s}",
					"batch_size", (json_int_t)batch,
					"persistent_mib", c.persistent_mib,
					"peak_mib", c.peak_mib, "fits", fits,
					"origin", gpu_origin_name(c.origin)));
}

static void say_largest(const struct gpu_profile *p, const struct gpu_model *m,
			uint64_t largest, FILE *f)
{
	fprintf(f, "%s on %s", m->name, p->name);
	if (!largest)
		fprintf(f, ": not even a batch of 1 fits into %.0f MiB\n",
			p->memory_mib);
	else if (m->last_is_limit && !p->resized)
		fprintf(f,
			": the largest batch is %" PRIu64
			" (measured; estimated from memory: %" PRIu64 ")\n",
			largest, gpu_profile_estimated_batch(p, m));
	else
		fprintf(f,
			": the largest batch is %" PRIu64
			" (estimated from memory)\n",
			largest);
}

static int fit_model(const char *model, const char *gpu,
		     const struct options *o, json_t **ret, FILE *f,
		     struct err *err)
{
	json_t *rows = json_array();
	const struct gpu_model *m;
	struct gpu_profile p;
	uint64_t largest;
	int r = load(gpu, o, &p, err);

	m = r == 0 ? gpu_profile_model(&p, model, err) : NULL;
	if (!m) {
		json_decref(rows);
		gpu_profile_free(&p);
		return r < 0 ? r : -ENOENT;
	}
	largest = gpu_profile_largest_batch(&p, m);
	say_largest(&p, m, largest, f);
	fprintf(f, "%6s %11s %9s %10s %7s\n", "batch", "persistent", "peak MiB",
		"free MiB", "% used");
	for (uint64_t batch = 1; batch < largest; batch *= 2)
		row(&p, m, batch, rows, f);
	if (largest)
		row(&p, m, largest, rows, f);
	row(&p, m, largest + 1, rows, f);
	*ret = json_pack("{s:s, s:s, s:I, s:I, s:b, s:o}", "gpu", p.name,
			 "model", m->name, "largest_batch", (json_int_t)largest,
			 "estimated_batch",
			 (json_int_t)gpu_profile_estimated_batch(&p, m),
			 "measured", m->last_is_limit && !p.resized, "rows",
			 rows);
	gpu_profile_free(&p);
	return 0;
}

static int fit(void *options, char **args, FILE *f, json_t **ret,
	       struct err *err)
{
	const struct options *o = options;
	struct tally tally = { 0 };

	if (args[1])
		return fit_model(args[0], args[1], o, ret, f, err);
	*ret = json_array();
	return args[0] ? fit_gpu(args[0], o, *ret, &tally, f, err)
		       : fit_all(o, *ret, f, err);
}

int profile_tool_fit(int argc, char **argv)
{
	static const struct cli_program program = {
		.name = "gpemu-profile fit",
		.args = "[[MODEL] GPU]",
		.n_optional = 2,
		.summary = "List the batch sizes that fit into memory, next to "
			   "the measured limits: of MODEL on GPU, of all "
			   "models on GPU, or of all models on all GPUs.",
		.fields = fields,
	};
	struct options o = { 0 };
	char *args[2];

	return profile_tool_run(&program, argc, argv, &o, args, fit);
}

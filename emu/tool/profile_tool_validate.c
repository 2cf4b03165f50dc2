/* SPDX-License-Identifier: MIT */
/*
 * gpemu-profile validate: compares a GPU profile with real training steps on
 * the local device, at batch sizes between its rows.
 *
 * A step is that of a training loop: copy of the batch from pinned memory,
 * forward, backward, optimiser, without waits in between. On one stream these
 * are serialised, so the prediction is their sum.
 */
#include "emu/tool/profile_tool.h"

#include <errno.h>
#include <math.h>
#include <string.h>

#include "common/json.h"
#include "common/units.h"
#include "common/util.h"
#include "emu/profile/profile_table.h"
#include "emu/tool/profile_tool_python.h"

struct options {
	struct cli_common common;
	char *device;
	char *models;
	char *batches;
	double seconds;
	uint64_t points;
	uint64_t threads;
};

static const struct conf_field fields[] = {
	CLI_COMMON_FIELDS(struct options, common),
	{ CONF_KEY(device, CONF_STRING, struct options), .arg = "NAME",
	  .help = "cpu, cuda, cuda:N, mps (default auto: the first "
		  "available)" },
	{ CONF_KEY(models, CONF_STRING, struct options), .arg = "LIST",
	  .help = "models of the profile (default: all)" },
	{ CONF_KEY(batches, CONF_STRING, struct options), .arg = "LIST",
	  .help = "batch sizes (default: midway between rows)" },
	{ CONF_KEY(points, CONF_UINT, struct options), .arg = "N", .min = 1,
	  .max = 1000,
	  .help = "number of batch sizes per model, without --batches (default "
		  "3)" },
	{ CONF_KEY(seconds, CONF_DOUBLE, struct options), .arg = "S",
	  .min = 0.01, .max = 3600,
	  .help = "time per batch size, at least three steps (default 2)" },
	{ CONF_KEY(threads, CONF_UINT, struct options), .arg = "N", .min = 1,
	  .max = 4096, .help = "CPU threads (default: PyTorch's)" },
	{ 0 },
};

/* --- what to measure -------------------------------------------------- */

/* The batch sizes of a list, into `batches`. */
static int given(const char *list, json_t *batches, struct err *err)
{
	_cleanup_free_ char *copy = strdup(list);
	char *save = NULL;

	if (!copy)
		return -ENOMEM;
	for (char *w = strtok_r(copy, ",", &save); w;
	     w = strtok_r(NULL, ",", &save)) {
		double b;

		if (units_parse_double(w, &b) < 0 || b < 1 || b > 1048576 ||
		    b != floor(b))
			return err_set(err, -EDOM, "'%s' is not a batch size",
				       w);
		json_array_append_new(batches, json_integer((json_int_t)b));
	}
	return 0;
}

/* The middles between rows, at most `points` of them, over the whole table. */
static void between_rows(const struct gpu_model *m, uint64_t points,
			 json_t *batches)
{
	const struct gpu_row *row = m->rows.items;
	uint64_t gaps = 0, at = 0, taken = 0;

	for (size_t i = 1; i < m->rows.n; i++)
		gaps += row[i].batch - row[i - 1].batch > 1;
	points = MIN(points, gaps);
	for (size_t i = 1; i < m->rows.n && taken < points; i++) {
		if (row[i].batch - row[i - 1].batch < 2)
			continue;
		/* gap number `at` of `gaps`: spread evenly, the last one in */
		if (++at * points < (taken + 1) * gaps)
			continue;
		taken++;
		json_array_append_new(
			batches, json_integer((json_int_t)(row[i - 1].batch +
							   row[i].batch) /
					      2));
	}
}

static int add_model(const struct gpu_model *m, const struct options *o,
		     json_t *points, struct err *err)
{
	json_t *batches = json_array();
	int r = 0;

	if (o->batches)
		r = given(o->batches, batches, err);
	else
		between_rows(m, o->points, batches);
	if (json_array_size(batches))
		json_object_set(points, m->name, batches);
	json_decref(batches);
	return r;
}

static int choose(const struct gpu_profile *p, const struct options *o,
		  json_t *points, struct err *err)
{
	const struct gpu_model *m = p->models.items;
	_cleanup_free_ char *copy = strdup(o->models ? o->models : "");
	char *save = NULL;
	int r = copy ? 0 : -ENOMEM;

	for (size_t i = 0; r == 0 && !o->models && i < p->models.n; i++)
		r = add_model(&m[i], o, points, err);
	for (char *w = r == 0 ? strtok_r(copy, ",", &save) : NULL; r == 0 && w;
	     w = strtok_r(NULL, ",", &save)) {
		m = gpu_profile_model(p, w, err);
		r = m ? add_model(m, o, points, err) : -ENOENT;
	}
	if (r == 0 && !json_object_size(points))
		r = err_set(err, -EINVAL,
			    "%s: no batch size lies between two rows; name "
			    "some with --batches",
			    p->name);
	return r;
}

/* --- comparing -------------------------------------------------------- */

static double predicted_ms(const struct gpu_cost *c)
{
	return (double)(c->transfer_pinned_ns + c->forward_ns +
			c->backward_ns) /
	       1e6;
}

/* Prints a line of the table; returns the relative error. */
static int compare_one(const struct gpu_profile *p, json_t *step, FILE *f,
		       double *ret, struct err *err)
{
	const struct gpu_model *m;
	struct gpu_cost c;
	const char *name;
	double real, spread, predicted;
	json_int_t batch;

	if (json_unpack(step, "{s:s,s:I,s:F,s:F}", "model", &name, "batch",
			&batch, "step_ms", &real, "spread_pct", &spread) < 0 ||
	    real <= 0 || batch < 1)
		return err_set(err, -EINVAL,
			       "the Python program returned an invalid result");
	m = gpu_profile_model(p, name, err);
	if (!m)
		return -ENOENT;
	gpu_profile_cost(p, m, (uint64_t)batch, &c);
	predicted = predicted_ms(&c);
	*ret = predicted / real - 1;
	fprintf(f, "%-32s %6lld %-12s %12.3f %12.3f %+8.2f %8.2f\n", name,
		(long long)batch, gpu_origin_name(c.origin), predicted, real,
		*ret * 100, spread);
	json_add_real(step, "predicted_ms", predicted);
	json_add_real(step, "error_pct", *ret * 100);
	json_add_text(step, "origin", gpu_origin_name(c.origin));
	return 0;
}

static int compare_steps(const struct gpu_profile *p, json_t *result, FILE *f,
			 struct err *err)
{
	json_t *steps = json_object_get(result, "steps"), *step;
	size_t n = json_array_size(steps), i;
	_cleanup_free_ double *errors = calloc(n + 1, sizeof(*errors));

	if (!errors)
		return -ENOMEM;
	if (!n)
		return err_set(err, -ENODEV, "no point could be measured");
	fprintf(f, "%s\n%-32s %6s %-12s %12s %12s %8s %8s\n", p->name, "model",
		"batch", "", "predicted ms", "real ms", "error %", "spread %");
	json_array_foreach (steps, i, step) {
		int r = compare_one(p, step, f, &errors[i], err);

		if (r < 0)
			return r;
		errors[i] = fabs(errors[i]);
	}
	table_sort(errors, n);
	fprintf(f, "%zu steps: off by %.2f %% in the median, %.2f %% at most\n",
		n, table_median(errors, n) * 100, errors[n - 1] * 100);
	json_add_text(result, "profile", p->name);
	json_object_set_new(result, "error_pct",
			    json_pack("{s:f,s:f}", "p50",
				      table_median(errors, n) * 100, "max",
				      errors[n - 1] * 100));
	return 0;
}

static int validate(void *options, char **args, FILE *f, json_t **ret,
		    struct err *err)
{
	const struct options *o = options;
	json_auto_t *points = json_object(), *request = NULL;
	_cleanup_free_ char *text = NULL;
	struct python_result python = { 0 };
	struct gpu_profile p;
	int r = gpu_profile_load(args[0], &p, err);

	if (r == 0)
		r = choose(&p, o, points, err);
	if (r == 0) {
		request = json_pack("{s:o,s:f,s:I,s:O}", "device",
				    json_bytes(o->device), "seconds",
				    o->seconds, "threads",
				    (json_int_t)o->threads, "points", points);
		r = request ? python_run("validate", request, &python, err)
			    : -ENOMEM;
		text = python.text;
	}
	python_raise(&python);
	if (r == 0 && python.status == 0) {
		*ret = json_loadb(text, python.n, 0, NULL);
		r = compare_steps(&p, *ret, f, err);
	}
	gpu_profile_free(&p);
	return r < 0		     ? r
	       : python.status > 128 ? EXIT_STATUS_FAILED
				     : python.status;
}

int profile_tool_validate(int argc, char **argv)
{
	static const struct cli_program program = {
		.name = "gpemu-profile validate",
		.args = "PROFILE",
		.n_args = 1,
		.summary = "Run training steps on the local device with "
			   "PyTorch, at batch sizes between the rows of "
			   "PROFILE, and print them next to its predictions.",
		.notes = "A step is the copy of the batch from pinned memory, "
			 "forward, backward and optimiser, one after the "
			 "other. GPEMU_PYTHON names the Python to use.",
		.fields = fields,
	};
	struct options o = { .device = strdup("auto"),
			     .seconds = 2,
			     .points = 3 };
	char *name;

	return profile_tool_run(&program, argc, argv, &o, &name, validate);
}

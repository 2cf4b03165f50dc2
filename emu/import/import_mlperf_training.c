/* SPDX-License-Identifier: MIT */
/*
 * Logs of MLPerf Training: result_*.txt of mlcommons/training_results_v*, with
 * a line ":::MLLOG {...}" for each event. The benchmark is the value of
 * submission_benchmark, the samples of a step that of global_batch_size, and
 * the throughput of the whole system that of tracked_stats, several times a
 * run: its median counts. The number of accelerators is in another file
 * (systems/<system>.json), so it is an option.
 *
 * A row is of one accelerator: its share of the batch, and the step of all,
 * communication included; a profile from these adds no gradients, so its
 * models have no parameters. Runs of one benchmark and batch size are averaged.
 */
#include <errno.h>
#include <jansson.h>
#include <string.h>

#include "common/util.h"
#include "emu/import/import.h"

static const char MARK[] = ":::MLLOG ";

struct options {
	uint64_t gpus, sample_bytes;
};

static const struct conf_field fields[] = {
	{ CONF_KEY(gpus, CONF_UINT, struct options), .min = 0, .max = 1e6,
	  .help = "accelerators of the system (required)" },
	{ CONF_KEY(sample_bytes, CONF_UINT, struct options), .min = 0,
	  .max = IMPORT_SAMPLE_MAX,
	  .help = "bytes of a sample; 0: those of the profile" },
	{ 0 },
};
static const struct options defaults;

struct run {
	const struct import_file *f;
	unsigned line;
	char benchmark[64];
	double batch;	    /* of all accelerators */
	double *throughput; /* samples per second */
	size_t n, allocated;
};

static bool knows(const struct import_file *f)
{
	return import_contains(f, MARK);
}

static int error_at(const struct run *r, size_t column, const char *what)
{
	return err_set(r->f->err, -EINVAL, "%s:%u:%zu: %s", r->f->path, r->line,
		       column, what);
}

static int add_throughput(struct run *r, const json_t *value, size_t column)
{
	const json_t *v = json_object_get(value, "throughput");
	double x = json_number_value(v);

	if (!v)
		return 0; /* other statistics */
	if (!json_is_number(v) || !(x > 0 && x < 1e15))
		return error_at(r, column, "throughput is not above 0");
	if (util_reserve(&r->throughput, &r->allocated, r->n + 1, sizeof(x)) <
	    0)
		return -ENOMEM;
	r->throughput[r->n++] = x;
	return 0;
}

static int take_event(struct run *r, const json_t *event, size_t column)
{
	const char *key = json_string_value(json_object_get(event, "key"));
	const json_t *value = json_object_get(event, "value");

	if (!key)
		return error_at(r, column, "an event without a key");
	if (!strcmp(key, "tracked_stats"))
		return add_throughput(r, value, column);
	if (!strcmp(key, "global_batch_size")) {
		r->batch = json_number_value(value);
		if (!(r->batch >= 1 && r->batch <= 1e9))
			return error_at(r, column,
					"global_batch_size is not a number "
					"from 1 to 1e9");
	}
	if (!strcmp(key, "submission_benchmark")) {
		const char *s = json_string_value(value);

		if (!s || strlen(s) >= sizeof(r->benchmark))
			return error_at(r, column,
					"submission_benchmark is not a name");
		strcpy(r->benchmark, s);
	}
	return 0;
}

static int take_line(struct run *r, const char *line, size_t n)
{
	const char *mark = memmem(line, n, MARK, strlen(MARK));
	json_auto_t *event = NULL;
	json_error_t where;
	size_t before;

	if (!mark)
		return 0; /* what else the job printed */
	before = (size_t)(mark - line) + strlen(MARK);
	event = json_loadb(line + before, n - before, 0, &where);
	if (!event)
		return error_at(r, before + (size_t)MAX(where.column, 1),
				where.text);
	return take_event(r, event, before + 1);
}

static int take_lines(struct run *r)
{
	const char *at = r->f->bytes, *end = at + r->f->n;
	int e = 0;

	while (e == 0 && at < end) {
		const char *eol = memchr(at, '\n', (size_t)(end - at));

		r->line++;
		eol = eol ? eol : end;
		e = take_line(r, at, (size_t)(eol - at));
		at = eol + (eol < end);
	}
	return e;
}

static int add_run(const struct run *r, const struct options *o)
{
	struct import_step step = {
		.model = r->benchmark,
		.sample_bytes = o->sample_bytes,
		.average = true,
		.cite = true,
	};
	struct err why = { 0 };
	int e;

	if (!r->benchmark[0] || r->batch <= 0 || !r->n)
		return error_at(r, 1,
				!r->benchmark[0] ? "no submission_benchmark"
				: r->batch <= 0	 ? "no global_batch_size"
						 : "no throughput in "
						   "tracked_stats");
	step.batch = (uint64_t)r->batch / o->gpus;
	if (!step.batch || (double)(step.batch * o->gpus) != r->batch)
		return error_at(r, 1,
				"global_batch_size is not a multiple of the "
				"number of accelerators");
	step.step_ms = r->batch / table_median(r->throughput, r->n) * 1e3;
	e = import_add(r->f, &step, &why);
	return e == -EINVAL ? error_at(r, 1, why.text) : e;
}

static int read_table(const struct import_file *f)
{
	const struct options *o = f->options ? f->options : &defaults;
	struct run run = { .f = f };
	int r;

	if (!o->gpus)
		return err_set(f->err, -EINVAL,
			       "%s: the log does not have the number of "
			       "accelerators: --format mlperf_training:gpus=N",
			       f->path);
	r = take_lines(&run);
	if (r == 0)
		r = add_run(&run, o);
	free(run.throughput);
	return r;
}

const struct import_ops import_mlperf_training = {
	.plugin = {
		.name = "mlperf_training",
		.summary = "logs of MLPerf Training, with :::MLLOG lines",
		.options = fields,
		.defaults = &defaults,
		.options_size = sizeof(struct options),
	},
	.knows = knows,
	.read = read_table,
};

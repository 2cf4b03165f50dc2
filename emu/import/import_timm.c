/* SPDX-License-Identifier: MIT */
/*
 * Training benchmarks of timm: results/benchmark-train-*.csv of
 * huggingface/pytorch-image-models, one batch size per model. The time is
 * train_step_time: forward, loss, backward and optimiser, without zero_grad
 * (benchmark.py, TrainBenchmarkRunner). Inputs are float32 on the device, so
 * there is no copy. A file with "nhwc" in its name is of channels_last.
 */
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "common/text/rows.h"
#include "common/util.h"
#include "emu/import/import.h"

enum { NAME, STEP, BATCH, SIDE, N_REQUIRED, PARAMETERS = N_REQUIRED, N_WORDS };

static const char *const words[N_WORDS] = {
	"model",	  "train_step_time", "train_batch_size",
	"train_img_size", "param_count",
};

enum {
	DEFAULT_SIDE = 224, /* of a name without pixels: profile_gpu.h */
	SIDE_MAX = 65536    /* arbitrary: larger than any image of a network */
};

static bool knows(const struct import_file *f)
{
	return import_contains(f, words[STEP]) &&
	       import_contains(f, words[BATCH]);
}

static int read_row(const struct import_file *f, struct rows *c, const int *at)
{
	_cleanup_free_ char *name = NULL, *model = NULL;
	const char *layout = strstr(import_base(f), "nhwc") ? ":channels_last"
							    : "";
	struct import_step step = { 0 };
	struct err why = { 0 };
	char pixels[24] = "";
	uint64_t side;
	double million;
	int r = rows_text(c, at[NAME], &name);

	if (r == 0)
		r = rows_number(c, at[STEP], words[STEP], 0, IMPORT_MS_MAX,
				&step.step_ms);
	if (r == 0)
		r = rows_count(c, at[BATCH], words[BATCH], IMPORT_BATCH_MAX,
			       &step.batch);
	if (r == 0)
		r = rows_count(c, at[SIDE], words[SIDE], SIDE_MAX, &side);
	if (r == 0)
		r = rows_number(c, at[PARAMETERS], words[PARAMETERS], 0, 1e9,
				&million);
	if (r < 0)
		return r;
	if (!name || !step.batch || !side)
		return rows_error(c, NULL,
				  "a row without a model, a batch size or an "
				  "image size");
	if (side != DEFAULT_SIDE)
		snprintf(pixels, sizeof(pixels), ":px%" PRIu64, side);
	model = util_text("%s%s%s", name, pixels, layout);
	if (!model)
		return -ENOMEM;
	step.model = model;
	step.sample_bytes = 3 * side * side * sizeof(float);
	step.parameters = (uint64_t)llround(million * 1e6);
	r = import_add(f, &step, &why);
	return r == -EINVAL ? rows_error(c, NULL, "%s", why.text) : r;
}

static int read_table(const struct import_file *f)
{
	struct rows c = { .name = f->path,
			  .at = f->bytes,
			  .end = f->bytes + f->n,
			  .err = f->err };
	int at[N_WORDS], r;

	r = rows_begin_table(&c, words, N_WORDS, N_REQUIRED, at);
	while (r == 0 && rows_next(&c))
		r = read_row(f, &c, at);
	return r;
}

const struct import_ops import_timm = {
	.plugin = {
		.name = "timm",
		.summary = "CSV of timm's training benchmark",
	},
	.knows = knows,
	.read = read_table,
};

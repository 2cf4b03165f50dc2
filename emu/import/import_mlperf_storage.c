/* SPDX-License-Identifier: MIT */
/*
 * Workload definitions of MLPerf Storage: the files of configs/dlio/workload in
 * mlcommons/storage. A step takes train.computation_time seconds, a number or a
 * distribution, whose deviation is the model's jitter, with reader.batch_size
 * samples of dataset.record_length_bytes.
 */
#include <errno.h>
#include <math.h>
#include <string.h>

#include "common/conf/conf_tree.h"
#include "emu/import/dlio_time.h"
#include "emu/import/import.h"

static bool knows(const struct import_file *f)
{
	return import_contains(f, "reader:") &&
	       (import_contains(f, "computation_time:") ||
		import_contains(f, "num_files_train:"));
}

/* The scalar at a path of keys, or NULL. */
static const struct conf_node *scalar(const struct conf_node *root,
				      const char *section, const char *key)
{
	const struct conf_node *at = conf_node_get(root, section);

	if (at)
		at = conf_node_get(at, key);
	return at && at->kind == CONF_KIND_SCALAR ? at : NULL;
}

/* `model: {name: unet3d}`, or `model: unet3d` in the first round. */
static const struct conf_node *find_name(const struct conf_node *root)
{
	const struct conf_node *model = conf_node_get(root, "model");

	return model && model->kind == CONF_KIND_SCALAR
		       ? model
		       : scalar(root, "model", "name");
}

/* The step's time, and its spread where it has a distribution. */
static int read_time(const struct import_file *f, const struct conf_node *root,
		     const struct conf_node *time, struct import_step *step)
{
	const struct conf_node *sd =
		scalar(root, "train", "computation_time_stdev");
	struct dist_time t;
	double stdev = 0;
	int r = dlio_time(time, f->path, &t, f->err);

	if (r == 0 && sd)
		r = dlio_number(sd, f->path, 0, IMPORT_MS_MAX / 1e3, &stdev,
				f->err);
	if (r == 0 && dlio_time_spread(&t, stdev, f->err) < 0)
		r = -EINVAL;
	step->step_ms = dist_time_mean(&t) / 1e6;
	if (step->step_ms > 0)
		step->cv = dist_time_sd(&t) / dist_time_mean(&t);
	dist_time_free(&t);
	return r;
}

static int add_config(const struct import_file *f, const struct conf_node *root)
{
	const struct conf_node *train = conf_node_get(root, "train");
	const struct conf_node *time =
		train ? conf_node_get(train, "computation_time") : NULL;
	const struct conf_node *name = find_name(root);
	const struct conf_node *batch = scalar(root, "reader", "batch_size");
	const struct conf_node *bytes =
		scalar(root, "dataset", "record_length_bytes");
	struct import_step step = { .cite = true };
	double n, record = 0;
	struct err why = { 0 };
	int r = 0;

	if (!bytes) /* as the second round has it */
		bytes = scalar(root, "dataset", "record_length");
	if (!name || !time || !batch)
		return conf_node_error(root, f->path, f->err,
				       "no training step: '%s' is missing",
				       !name   ? "model.name"
				       : !time ? "train.computation_time"
					       : "reader.batch_size");
	if (bytes)
		r = dlio_number(bytes, f->path, 1, IMPORT_SAMPLE_MAX, &record,
				f->err);
	if (r == 0)
		r = read_time(f, root, time, &step);
	if (r == 0)
		r = dlio_number(batch, f->path, 1, IMPORT_BATCH_MAX, &n,
				f->err);
	if (r < 0)
		return r;
	if (n != floor(n))
		return conf_node_error(batch, f->path, f->err,
				       "batch_size: %s is not whole",
				       batch->value);
	step.model = name->value;
	step.batch = (uint64_t)n;
	step.sample_bytes = (uint64_t)llround(record);
	r = import_add(f, &step, &why);
	return r == -EINVAL
		       ? conf_node_error(time, f->path, f->err, "%s", why.text)
		       : r;
}

static int read_table(const struct import_file *f)
{
	_cleanup_conf_node_ struct conf_node *root = NULL;
	int r = conf_tree_parse(f->bytes, f->n, f->path, &root, f->err);

	return r < 0 ? r : add_config(f, root);
}

const struct import_ops import_mlperf_storage = {
	.plugin = {
		.name = "mlperf_storage",
		.summary = "YAML workloads of MLPerf Storage",
	},
	.knows = knows,
	.read = read_table,
};

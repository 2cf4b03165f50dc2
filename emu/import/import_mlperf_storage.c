/* SPDX-License-Identifier: MIT */
/*
 * Workload definitions of MLPerf Storage: the files of configs/dlio/workload in
 * mlcommons/storage. A step takes train.computation_time seconds with
 * reader.batch_size samples of dataset.record_length_bytes.
 */
#include <errno.h>
#include <math.h>
#include <string.h>

#include "common/conf/conf_tree.h"
#include "common/units.h"
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

static int number(const struct import_file *f, const struct conf_node *at,
		  double min, double max, double *ret)
{
	if (units_parse_double(at->value, ret) < 0)
		return conf_node_error(at, f->path, f->err,
				       "%s: '%s' is not a number", at->key,
				       at->value);
	if (*ret < min || *ret > max)
		return conf_node_error(at, f->path, f->err,
				       "%s: %s is not from %g to %g", at->key,
				       at->value, min, max);
	return 0;
}

/* `model: {name: unet3d}`, or `model: unet3d` in the first round. */
static const struct conf_node *find_name(const struct conf_node *root)
{
	const struct conf_node *model = conf_node_get(root, "model");

	return model && model->kind == CONF_KIND_SCALAR
		       ? model
		       : scalar(root, "model", "name");
}

/* A constant, or the mean of a distribution. */
static const struct conf_node *find_time(const struct conf_node *root)
{
	const struct conf_node *train = conf_node_get(root, "train"), *time;

	time = train ? conf_node_get(train, "computation_time") : NULL;
	if (time && time->kind == CONF_KIND_MAPPING)
		time = conf_node_get(time, "mean");
	return time && time->kind == CONF_KIND_SCALAR ? time : NULL;
}

static int add(const struct import_file *f, const struct conf_node *root)
{
	const struct conf_node *name = find_name(root), *time = find_time(root);
	const struct conf_node *batch = scalar(root, "reader", "batch_size");
	const struct conf_node *bytes =
		scalar(root, "dataset", "record_length_bytes");
	struct import_step step = { .cite = true };
	double seconds, n, record = 0;
	struct err why = { 0 };
	int r = 0;

	if (!name || !time || !batch)
		return conf_node_error(root, f->path, f->err,
				       "no training step: '%s' is missing",
				       !name   ? "model.name"
				       : !time ? "train.computation_time"
					       : "reader.batch_size");
	if (bytes)
		r = number(f, bytes, 1, IMPORT_SAMPLE_MAX, &record);
	if (r == 0)
		r = number(f, time, 0, IMPORT_MS_MAX / 1e3, &seconds);
	if (r == 0)
		r = number(f, batch, 1, IMPORT_BATCH_MAX, &n);
	if (r < 0)
		return r;
	if (n != floor(n))
		return conf_node_error(batch, f->path, f->err,
				       "batch_size: %s is not whole",
				       batch->value);
	step.model = name->value;
	step.batch = (uint64_t)n;
	step.step_ms = seconds * 1e3;
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

	return r < 0 ? r : add(f, root);
}

const struct import_ops import_mlperf_storage = {
	.plugin = {
		.name = "mlperf_storage",
		.summary = "YAML workloads of MLPerf Storage",
	},
	.knows = knows,
	.read = read_table,
};

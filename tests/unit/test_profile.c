/* SPDX-License-Identifier: MIT */
#include "tests/unit/test.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "common/util.h"
#include "emu/csv.h"
#include "emu/profile.h"
#include "emu/profile_dataset.h"
#include "emu/profile_gpu.h"
#include "emu/profile_node.h"
#include "emu/profile_prep.h"
#include "emu/profile_share.h"
#include "emu/profile_storage.h"
#include "emu/profile_table.h"

#define HEAD                                                      \
	"name: T\naliases: [t]\nsource: test\nmemory_mib: 1000\n" \
	"usable_memory: 0.9\nsample_bytes: 100\n"                 \
	"pinned: {base_ms: 1, per_sample_ms: 0.5, source: s}\n"   \
	"pin_copy: {base_ms: 2, per_sample_ms: 0.25, source: s}\n"
#define MODEL(name, last, limit, rows)                                        \
	"  " name ": {parameters: 5, model_transfer_ms: 3, last_batch: " last \
	", last_is_limit: " limit ", tolerance_pct: 1, rows: [" rows "]}\n"
#define ROWS "[2, 10, 20, 1, 100, 50], [4, 14, 30, 2, 180, 60]"

static const char *const GPU = HEAD "models:\n" MODEL("m", "4", "false", ROWS)
	MODEL("limited", "4", "true", ROWS)
		MODEL("one", "4", "false", "[4, 8, 16, 2, 400, 40]");

static struct gpu_profile parse_gpu(void)
{
	struct gpu_profile p;
	struct err err = { 0 };

	if (gpu_profile_parse(GPU, strlen(GPU), "t.yaml", &p, &err) < 0)
		fail_msg("%s", err.text);
	return p;
}

static struct gpu_cost cost(const struct gpu_profile *p, const char *model,
			    uint64_t batch)
{
	const struct gpu_model *m = gpu_profile_model(p, model, NULL);
	struct gpu_cost c;

	assert_non_null(m);
	gpu_profile_cost(p, m, batch, &c);
	return c;
}

static void a_measured_step(void **state)
{
	struct gpu_profile p = parse_gpu();
	struct gpu_cost c = cost(&p, "m", 4);

	(void)state;
	assert_int_equal(c.origin, GPU_MEASURED);
	assert_int_equal(c.forward_ns, 14000000);
	assert_int_equal(c.backward_ns, 30000000);
	assert_int_equal(c.transfer_pageable_ns, 2000000);
	assert_int_equal(c.transfer_pinned_ns, 3000000);
	assert_int_equal(c.pin_copy_ns, 3000000);
	assert_true(c.peak_mib == 180 && c.persistent_mib == 60);
	gpu_profile_free(&p);
}

static void between_and_beyond(void **state)
{
	struct gpu_profile p = parse_gpu();
	struct gpu_cost c = cost(&p, "m", 3);

	(void)state;
	assert_int_equal(c.origin, GPU_INTERPOLATED);
	assert_int_equal(c.forward_ns, 12000000);
	assert_int_equal(c.backward_ns, 25000000);
	assert_true(c.peak_mib == 140);
	c = cost(&p, "m", 10); /* 14 + 3 x 4, 30 + 3 x 10, 180 + 3 x 80 */
	assert_int_equal(c.origin, GPU_EXTRAPOLATED);
	assert_int_equal(c.forward_ns, 26000000);
	assert_int_equal(c.backward_ns, 60000000);
	assert_true(c.peak_mib == 420);
	c = cost(&p, "m", 1); /* below the first row */
	assert_int_equal(c.origin, GPU_EXTRAPOLATED);
	assert_int_equal(c.forward_ns, 8000000);
	c = cost(&p, "one", 8); /* one row: through the origin */
	assert_int_equal(c.origin, GPU_EXTRAPOLATED);
	assert_int_equal(c.forward_ns, 16000000);
	assert_int_equal(cost(&p, "one", 4).origin, GPU_MEASURED);
	gpu_profile_free(&p);
}

static void the_largest_batch(void **state)
{
	struct gpu_profile p = parse_gpu();

	(void)state;
	/* 180 + 40 (b - 4) <= 900: b <= 22 */
	assert_int_equal(
		gpu_profile_largest_batch(&p, gpu_profile_model(&p, "m", NULL)),
		22);
	assert_int_equal(gpu_profile_largest_batch(
				 &p, gpu_profile_model(&p, "limited", NULL)),
			 4);
	/* what ran did fit, even where the estimate says no */
	p.usable_memory = 0.1;
	assert_int_equal(
		gpu_profile_largest_batch(&p, gpu_profile_model(&p, "m", NULL)),
		4);
	gpu_profile_free(&p);
}

static void names_and_aliases(void **state)
{
	static const char *const names[] = { "v100", "tesla-v100-pcie-32gb",
					     "Tesla_V100-PCIE-32GB",
					     "Tesla V100-PCIE-32GB" };
	struct gpu_profile p;
	struct err err;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		err = (struct err){ 0 };
		if (gpu_profile_load(names[i], &p, &err) < 0)
			fail_msg("%s", err.text);
		assert_string_equal(p.name, "Tesla V100-PCIE-32GB");
		gpu_profile_free(&p);
	}
	err = (struct err){ 0 };
	assert_int_equal(gpu_profile_load("v1000", &p, &err), -ENOENT);
	assert_non_null(strstr(err.text, "unknown gpu profile 'v1000'"));
	assert_non_null(strstr(err.text, "tesla-v100-pcie-32gb (v100"));
	gpu_profile_free(&p);
	err = (struct err){ 0 };
	assert_int_equal(gpu_profile_load("", &p, &err), -EINVAL);
	gpu_profile_free(&p);
}

/* Source: GPEmu artifact, profiled_data: seconds at these batch sizes. */
static void shipped_profiles_hold_what_was_measured(void **state)
{
	static const struct {
		const char *gpu, *model;
		uint64_t batch;
		double forward_ms, backward_ms;
	} known[] = {
		{ "v100", "resnet50", 64, 61.2, 145.1 },
		{ "k80", "alexnet", 1, 5.8, 30.1 },
		{ "m40", "vgg16", 64, 299.5, 641.4 },
		{ "p100", "alexnet", 64, 9.9, 22.5 }, /* a dip, kept */
		{ "rtx6000", "googlenet", 256, 102.6, 257.2 },
		{ "a100", "mobilenet_v2", 256, 62.2, 140.5 },
	};
	struct gpu_profile p;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(known); i++) {
		assert_int_equal(gpu_profile_load(known[i].gpu, &p, NULL), 0);
		struct gpu_cost c = cost(&p, known[i].model, known[i].batch);

		/* the table above has three digits, the claim is 2 % */
		assert_true(
			fabs((double)c.forward_ns / 1e6 / known[i].forward_ms -
			     1) < .025);
		assert_true(fabs((double)c.backward_ns / 1e6 /
					 known[i].backward_ms -
				 1) < .025);
		gpu_profile_free(&p);
	}
	/* the K80's own memory cells of this model are nonsense: 11,814 MiB
	 * at batch size 41, on a device with 11,441 */
	assert_int_equal(gpu_profile_load("k80", &p, NULL), 0);
	assert_true(cost(&p, "resnext101_32x8d", 41).peak_mib < 11441);
	assert_true(gpu_profile_model(&p, "resnext101_32x8d", NULL)->notes);
	gpu_profile_free(&p);
}

/* Source: computation_time of MLPerf Storage's workload definitions. */
static void mlperf_accelerators_take_the_published_time(void **state)
{
	static const struct {
		const char *gpu, *model;
		uint64_t batch, step_ns;
	} known[] = {
		{ "mlperf-a100", "unet3d", 7, 636000000 },
		{ "mlperf-a100", "resnet50", 400, 435000000 },
		{ "mlperf-a100", "cosmoflow", 1, 5510000 },
		{ "mlperf-a100", "retinanet", 16, 210000000 },
		{ "mlperf-a100", "flux", 8, 1100000000 },
		{ "mlperf-a100", "dlrm", 8192, 7000000 },
		{ "mlperf-h100", "unet3d", 7, 323000000 },
		{ "mlperf-h100", "resnet50", 400, 224000000 },
		{ "mlperf-h100", "cosmoflow", 1, 3500000 },
		{ "mlperf-h100", "retinanet", 16, 180000000 },
		{ "mlperf-h100", "flux", 8, 850000000 },
		{ "mlperf-h100", "dlrm", 8192, 5000000 },
		{ "mlperf-b200", "unet3d", 7, 162000000 },
		{ "mlperf-b200", "retinanet", 24, 47550000 },
		{ "mlperf-b200", "flux", 48, 1350000000 },
		{ "mlperf-b200", "dlrm", 16384, 375000 },
	};
	struct gpu_profile p;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(known); i++) {
		assert_int_equal(gpu_profile_load(known[i].gpu, &p, NULL), 0);
		struct gpu_cost c = cost(&p, known[i].model, known[i].batch);

		assert_int_equal(c.forward_ns + c.backward_ns,
				 known[i].step_ns);
		assert_int_equal(c.origin, GPU_MEASURED);
		assert_int_equal(c.transfer_pinned_ns, 0);
		gpu_profile_free(&p);
	}
}

/* What may be left out: columns of a row, the size of a model's samples. */
static void more_than_the_published_tables_have(void **state)
{
	static const char more[] = HEAD "models:\n" MODEL(
		"m", "4", "false",
		ROWS) "  m:bf16:channels_last: {parameters: 5, sample_bytes: "
		      "300, "
		      "model_transfer_ms: 3, last_batch: 4, last_is_limit: "
		      "false, "
		      "tolerance_pct: 1, rows: [[2, 10, 20, 1, 100, 50, 6, 2], "
		      "[4, 14, 30, 2, 180, 60, 8, 1]]}\n";
	_cleanup_free_ char *text = NULL;
	struct gpu_profile p, again;
	struct err err = { 0 };
	size_t n;
	FILE *f = open_memstream(&text, &n);

	(void)state;
	if (gpu_profile_parse(more, strlen(more), "t.yaml", &p, &err) < 0)
		fail_msg("%s", err.text);
	gpu_profile_write(&p, f);
	fclose(f);
	gpu_profile_free(&p);
	if (gpu_profile_parse(text, n, "again.yaml", &again, &err) < 0)
		fail_msg("%s", err.text);

	struct gpu_cost c = cost(&again, "m:bf16:channels_last", 3);

	assert_int_equal(c.backward_ns, 25000000);
	assert_int_equal(c.optimizer_ns, 7000000);
	assert_true(c.spread_pct == 1.5);
	/* the law is for 100 bytes: 1 ms + 0.5 ms x 3 samples x 3 */
	assert_int_equal(c.transfer_pinned_ns, 5500000);
	assert_int_equal(c.pin_copy_ns, 4250000);
	c = cost(&again, "m", 3);
	assert_int_equal(c.optimizer_ns, 0);
	assert_int_equal(c.transfer_pinned_ns, 2500000);
	gpu_profile_free(&again);
}

static void every_profile_loads(void **state)
{
	static const size_t least[] = { 9, 10, 10, 3, 5, 1 };
	(void)state;
	for (int k = 0; k < PROFILE_N_KINDS; k++) {
		struct err err = { 0 };
		struct storage_profile *s;
		struct dataset_profile d;
		struct share_profile h;
		struct prep_profile c;
		struct node_profile o;
		struct gpu_profile g;
		char **names;
		size_t n = 0;
		int r = profile_names((enum profile_kind)k, &names, &err);

		for (; r == 0 && names[n]; n++) {
			if (k == PROFILE_GPU) {
				r = gpu_profile_load(names[n], &g, &err);
				gpu_profile_free(&g);
			} else if (k == PROFILE_DATASET) {
				r = dataset_profile_load(names[n], &d, &err);
				dataset_profile_free(&d);
			} else if (k == PROFILE_SHARE) {
				r = share_profile_load(names[n], &h, &err);
				share_profile_free(&h);
			} else if (k == PROFILE_PREP) {
				r = prep_profile_load(names[n], &c, &err);
				prep_profile_free(&c);
			} else if (k == PROFILE_NODE) {
				r = node_profile_load(names[n], &o, &err);
				node_profile_free(&o);
			} else {
				r = storage_profile_load(names[n], &s, &err);
				if (r == 0)
					storage_profile_free(s);
			}
		}
		if (r < 0)
			fail_msg("%s", err.text);
		assert_true(n >= least[k]);
		profile_names_free(names);
	}
}

static void datasets_are_linear_between_points(void **state)
{
	static const char yaml[] =
		"name: t\nsource: s\nverified: true\nformat: jpeg\n"
		"files: 10\nsizes: [[0, 100], [0.5, 200], [1, 1000]]\n";
	struct dataset_profile p;

	(void)state;
	assert_int_equal(dataset_profile_parse(yaml, strlen(yaml), "t.yaml", &p,
					       NULL),
			 0);
	assert_int_equal(p.samples_per_file, 1);
	assert_true(dataset_profile_quantile(&p, 0) == 100);
	assert_true(dataset_profile_quantile(&p, .25) == 150);
	assert_true(dataset_profile_quantile(&p, .75) == 600);
	assert_true(dataset_profile_quantile(&p, 1) == 1000);
	/* .5 * 150 + .5 * 600 */
	assert_true(dataset_profile_mean(&p) == 375);
	dataset_profile_free(&p);
	assert_int_equal(dataset_profile_load("imagenet", &p, NULL), 0);
	assert_int_equal(p.files, 1281167);
	/* Source: GPEmu artifact, plots/new/sff/size: p50 108.1 KB, p90 186.7
	 */
	assert_true(fabs(dataset_profile_quantile(&p, .5) / 108.1e3 - 1) < .03);
	assert_true(fabs(dataset_profile_quantile(&p, .9) / 186.7e3 - 1) < .03);
	dataset_profile_free(&p);
}

/* --- bad input -------------------------------------------------------- */

static void bad_gpu_profiles(void **state)
{
	static const struct {
		const char *yaml, *text;
	} bad[] = {
		{ HEAD "models: {}\n", "t.yaml:9:9: no models" },
		{ HEAD "models:\n" MODEL("m", "4", "true", ""),
		  "t.yaml:10:104: no rows" },
		{ HEAD "models:\n" MODEL("m", "2", "true",
					 "[4, 1, 1, 1, 2, 1], "
					 "[2, 1, 1, 1, 2, 1]"),
		  "t.yaml:10:125: batch sizes must ascend" },
		{ HEAD
		  "models:\n" MODEL("m", "5", "true", "[4, 1, 1, 1, 2, 1]"),
		  "t.yaml:10:56: last_batch must be the last row's" },
		{ HEAD
		  "models:\n" MODEL("m", "4", "true", "[4, -1, 1, 1, 2, 1]"),
		  "t.yaml:10:109: forward_ms: -1 is outside 0..1000000000" },
		{ HEAD
		  "models:\n" MODEL("m", "4", "true", "[4, 1, 1, 1, 2, 3]"),
		  "t.yaml:10:105: persistent_mib is above peak_mib" },
		{ HEAD
		  "models:\n" MODEL("m", "4", "true", "[4, 1, 1, 1, 2, 1, 2]"),
		  "t.yaml:10:105: optimizer_ms is above backward_ms, of which "
		  "it is a part" },
		{ HEAD, "t.yaml:1:1: 'models' is missing" },
		{ "name: T\nmodel: x\n", "t.yaml:2:1: unknown key 'model'" },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		struct gpu_profile p;
		struct err err = { 0 };

		assert_int_equal(gpu_profile_parse(bad[i].yaml,
						   strlen(bad[i].yaml),
						   "t.yaml", &p, &err),
				 -EINVAL);
		assert_string_equal(err.text, bad[i].text);
		gpu_profile_free(&p);
	}
}

#define GROUP "{source: s, verified: true}\n"
static void preprocessing_has_a_cost(void **state)
{
	static const char yaml[] =
		"name: t\nsource: s\nverified: true\nper_mb: 10ms\n"
		"sample: {kind: uniform, min: 2ms, max: 4ms}\n";
	struct rng rng = rng_stream(1, "cost", 0);
	struct err err = { 0 };
	struct prep_profile p;
	double sum = 0;

	(void)state;
	assert_int_equal(prep_profile_load("pytorch-pillow", &p, &err), 0);
	assert_int_equal(lround(1e9 / prep_profile_mean(&p, 1e6)), 155);
	assert_int_equal(prep_profile_cost(&p, 12345, &rng), 6452000);
	prep_profile_free(&p);

	assert_int_equal(prep_profile_parse(yaml, strlen(yaml), "t", &p, &err),
			 0);
	assert_float_equal(prep_profile_mean(&p, 5e5), 8e6, 1);
	for (int i = 0; i < 10000; i++) {
		double ns = (double)prep_profile_cost(&p, 500000, &rng);

		assert_true(ns >= 7e6 && ns <= 9e6);
		sum += ns / 10000;
	}
	/* five standard errors of the mean */
	assert_float_equal(sum, 8e6, 5 * 2e6 / sqrt(12) / 100);
	prep_profile_free(&p);
}

static void bad_prep_profiles(void **state)
{
	static const struct {
		const char *yaml, *text;
	} bad[] = {
		{ "name: t\nsource: s\nverified: true\n", "sample" },
		{ "name: t\nverified: true\nsample: {kind: const}\n",
		  "source" },
		{ "name: t\nsource: s\nverified: true\n"
		  "sample: {kind: const, value: 3}\n",
		  "t:4:" },
		{ "name: t\nsource: s\nverified: true\n"
		  "sample: {kind: const, value: 3ms}\nper_byte: 1ns\n",
		  "t:5:1: unknown" },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		struct prep_profile p;
		struct err err = { 0 };

		assert_int_equal(prep_profile_parse(bad[i].yaml,
						    strlen(bad[i].yaml), "t",
						    &p, &err),
				 -EINVAL);
		if (!strstr(err.text, bad[i].text))
			fail_msg("%zu: %s", i, err.text);
		prep_profile_free(&p);
	}
}

#define STORAGE(read)                                                        \
	"name: t\nsource: s\nchannels: " GROUP "link: " GROUP "iops: " GROUP \
	"open: " GROUP "lookup: " GROUP "readdir: " GROUP                    \
	"read: {source: s, verified: true, latency: " read "}\n"

static void bad_storage_profiles(void **state)
{
	static const struct {
		const char *yaml, *text;
	} bad[] = {
		{ STORAGE("{kind: pareto}"),
		  "t.yaml:9:44: unknown kind 'pareto' (known: const uniform "
		  "normal lognormal gamma empirical)" },
		{ STORAGE("{kind: const, value: -1ms}"),
		  "t.yaml:9:65: value: '-1ms' is out of range" },
		{ STORAGE("{kind: const, value: 1}"),
		  "t.yaml:9:65: value: '1' is not a duration with its unit, "
		  "such as 80us or 5ms" },
		{ STORAGE("{kind: const, mean: 1ms}"),
		  "t.yaml:9:44: 'mean' does not belong to 'const'" },
		{ STORAGE("{kind: uniform, min: 2ms, max: 1ms}"),
		  "t.yaml:9:44: min is above max" },
		{ STORAGE("{kind: gamma, mean: 2ms}"),
		  "t.yaml:9:44: gamma needs a shape" },
		{ STORAGE("{kind: empirical, quantiles: [[0, 1ms]]}"),
		  "t.yaml:9:44: quantiles must go from 0 to 1 in two or "
		  "more" },
		{ STORAGE("{kind: empirical, quantiles: [[0, 2ms], [1, "
			  "1ms]]}"),
		  "t.yaml:9:44: quantiles must ascend" },
		{ STORAGE("{kind: const, tail: {probability: 0.1}}"),
		  "t.yaml:9:64: a tail needs one of 'multiply' and "
		  "'replace'" },
		{ "name: t\n", "t.yaml:1:1: 'source' is missing" },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		struct storage_profile *p;
		struct err err = { 0 };

		assert_int_equal(storage_profile_parse(bad[i].yaml,
						       strlen(bad[i].yaml),
						       "t.yaml", &p, &err),
				 -EINVAL);
		assert_string_equal(err.text, bad[i].text);
	}
}

#define DATASET(sizes)                                                         \
	"name: t\nsource: s\nverified: true\nformat: jpeg\nfiles: 10\nsizes: " \
	"[" sizes "]\n"

static void bad_dataset_profiles(void **state)
{
	static const struct {
		const char *yaml, *text;
	} bad[] = {
		{ DATASET("[0, 1]"),
		  "t.yaml:6:8: sizes needs at least two points" },
		{ DATASET("[0.1, 1], [1, 2]"),
		  "t.yaml:6:9: the first quantile must be 0" },
		{ DATASET("[0, 1], [0.9, 2]"),
		  "t.yaml:6:17: the last quantile must be 1" },
		{ DATASET("[0, 1], [0.5, 3], [1, 2]"),
		  "t.yaml:6:27: quantiles must ascend, and their sizes must "
		  "not fall" },
		{ DATASET("[0, 1], [1, 2]") "classes: 11\n",
		  "t.yaml:7:10: more classes than files" },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		struct dataset_profile p;
		struct err err = { 0 };

		assert_int_equal(dataset_profile_parse(bad[i].yaml,
						       strlen(bad[i].yaml),
						       "t.yaml", &p, &err),
				 -EINVAL);
		assert_string_equal(err.text, bad[i].text);
		dataset_profile_free(&p);
	}
}

static void bad_tables(void **state)
{
	static const char *const columns[] = { "b", "a", NULL };
	static const struct {
		const char *csv, *text;
	} bad[] = {
		{ "", "t.csv:1: empty file" },
		{ "a,c\n1,2\n", "t.csv:1: no column 'b' in the header" },
		{ "a,b\n1,2\n1\n", "t.csv:3: 1 cells where the header has 2" },
		{ "a,b\n1,2,3\n", "t.csv:2: 3 cells where the header has 2" },
		{ "a,b\n\"1\",2\n", "t.csv:2: quoted cells are not "
				    "understood" },
	};
	static const char dos[] = "a,x,b\r\n1,,2\r\n3,,nan";
	struct csv csv;
	struct err err;
	double v;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		err = (struct err){ 0 };
		assert_int_equal(csv_parse(bad[i].csv, strlen(bad[i].csv),
					   "t.csv", columns, &csv, &err),
				 -EINVAL);
		assert_string_equal(err.text, bad[i].text);
		csv_free(&csv);
	}
	/* the order asked for, any line ends, no newline at the end */
	assert_int_equal(
		csv_parse(dos, strlen(dos), "t.csv", columns, &csv, NULL), 0);
	assert_int_equal(csv.n_rows, 2);
	assert_string_equal(csv_text(&csv, 0, 0), "2");
	assert_string_equal(csv_text(&csv, 0, 1), "1");
	err = (struct err){ 0 };
	assert_int_equal(csv_number(&csv, 1, 0, 0, 9, &v, &err), -EINVAL);
	assert_string_equal(err.text, "t.csv:3: 'nan' is not a number");
	csv_free(&csv);
}

/* --- thinning --------------------------------------------------------- */

static void straight_lines_need_two_rows(void **state)
{
	struct table_point points[100];
	struct table_model m = { .points = points, .n = 100 };
	struct gpu_row *rows;
	size_t n;

	(void)state;
	for (size_t i = 0; i < m.n; i++) {
		points[i].batch = i + 1;
		for (size_t c = 0; c < TABLE_COLUMNS; c++)
			points[i].v[c] = 10 + 2. * (double)(i + 1);
	}
	assert_int_equal(table_thin(&m, .01, &rows, &n), 0);
	assert_int_equal(n, 2);
	assert_int_equal(rows[0].batch, 1);
	assert_int_equal(rows[1].batch, 100);
	free(rows);
	/* a step and a spike in one column stay: five rows more */
	for (size_t i = 50; i < m.n; i++)
		points[i].v[1] += 50;
	points[20].v[1] *= 2;
	assert_int_equal(table_thin(&m, .001, &rows, &n), 0);
	assert_int_equal(n, 7);
	assert_int_equal(rows[2].batch, 21);
	assert_true(rows[2].backward_ms == 104);
	free(rows);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_measured_step),
		cmocka_unit_test(between_and_beyond),
		cmocka_unit_test(the_largest_batch),
		cmocka_unit_test(names_and_aliases),
		cmocka_unit_test(shipped_profiles_hold_what_was_measured),
		cmocka_unit_test(mlperf_accelerators_take_the_published_time),
		cmocka_unit_test(more_than_the_published_tables_have),
		cmocka_unit_test(every_profile_loads),
		cmocka_unit_test(datasets_are_linear_between_points),
		cmocka_unit_test(bad_gpu_profiles),
		cmocka_unit_test(bad_storage_profiles),
		cmocka_unit_test(preprocessing_has_a_cost),
		cmocka_unit_test(bad_prep_profiles),
		cmocka_unit_test(bad_dataset_profiles),
		cmocka_unit_test(bad_tables),
		cmocka_unit_test(straight_lines_need_two_rows),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

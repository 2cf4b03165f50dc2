/* SPDX-License-Identifier: MIT */
/* Readers of published tables: what they take, and where they find faults. */
#include "tests/unit/test.h"

#include <errno.h>
#include <math.h>
#include <string.h>

#include "common/util.h"
#include "emu/import/import.h"

#define TIMM_HEADER                                                     \
	"model,train_samples_per_sec,train_step_time,train_batch_size," \
	"train_img_size,param_count\n"
#define MLLOG ":::MLLOG {\"namespace\": \"\", \"time_ms\": 1, "
#define EVENT(key, value)                                                  \
	MLLOG "\"key\": \"" key "\", \"value\": " value ", \"metadata\": " \
	      "{}}\n"
#define RATE(x) EVENT("tracked_stats", "{\"throughput\": " x "}")
#define TRAINING EVENT("submission_benchmark", "\"bert\"")
#define WORKLOAD                                                            \
	"model:\n  name: unet3d\n  type: cnn\n"                             \
	"dataset:\n  num_files_train: 168\n  record_length_bytes: 1465.6\n" \
	"reader:\n  batch_size: 7\n"                                        \
	"train:\n  epochs: 5\n  computation_time: 0.323\n"

static int parse(const char *path, const char *bytes, const char *format,
		 struct table *t, struct err *err)
{
	*err = (struct err){ 0 };
	return import_parse(bytes, strlen(bytes), path, format, t, err);
}

/* The table of one file, which must be good. */
static struct table table_of(const char *path, const char *bytes,
			     const char *format)
{
	struct table t = { 0 };
	struct err err;

	if (parse(path, bytes, format, &t, &err) < 0)
		fail_msg("%s", err.text);
	return t;
}

static bool near(double a, double b)
{
	return fabs(a - b) < 1e-9 * fmax(1, fabs(b));
}

static void assert_step(const struct table *t, const char *model,
			uint64_t batch, double forward_ms, double backward_ms)
{
	const struct table_model *m = table_find(t, model);

	if (!m)
		fail_msg("no %s", model);
	for (size_t i = 0; i < m->n; i++) {
		if (m->points[i].batch != batch)
			continue;
		assert_true(near(m->points[i].v[0], forward_ms));
		assert_true(near(m->points[i].v[1], backward_ms));
		return;
	}
	fail_msg("%s: no batch %u", model, (unsigned)batch);
}

static void timm(void **state)
{
	static const char csv[] = TIMM_HEADER
		"tinynet_e,10001.12,60,512,106,2.04\n"
		"resnet50.a1_in1k,826.06,618.9,512,224,25.56\r\n";
	struct table t = table_of("x/benchmark-train-nchw.csv", csv, NULL);
	const struct table_model *m = table_find(&t, "tinynet_e:px106");

	(void)state;
	assert_int_equal(t.n, 2);
	assert_step(&t, "tinynet_e:px106", 512, 20, 40);
	assert_step(&t, "resnet50.a1_in1k", 512, 206.3, 412.6);
	assert_int_equal(m->parameters, 2040000);
	assert_int_equal(m->sample_bytes, 3 * 106 * 106 * 4);
	assert_false(table_column_given(m, 2));
	assert_null(m->source);
	table_free(&t);
	t = table_of("benchmark-train-nhwc.csv", csv, "timm");
	assert_non_null(table_find(&t, "tinynet_e:px106:channels_last"));
	assert_non_null(table_find(&t, "resnet50.a1_in1k:channels_last"));
	table_free(&t);
}

static void neusight(void **state)
{
	struct table t = table_of(
		"label/H/gpt2_large-train-1024-4.json",
		"{\"e2e_latency\": 638.8, \"fw_latency\": 226.3}", NULL);
	struct table_model *m;
	struct err err;

	(void)state;
	assert_int_equal(parse("label/H/gpt2_large-train-1024-1.json",
			       "{\"e2e_latency\": 184, \"fw_latency\": 63.7,"
			       "\"bwall_latency\": 120.3}",
			       NULL, &t, &err),
			 0);
	assert_int_equal(parse("gpt2_large-train-1024-4-tp4.json",
			       "{\"e2e_latency\": 210, \"fw_latency\": 0}",
			       NULL, &t, &err),
			 0);
	/* not a training step */
	assert_int_equal(parse("gpt2_large-inf-1024-4.json",
			       "{\"e2e_latency\": 215}", NULL, &t, &err),
			 0);
	assert_int_equal(t.n, 2);
	m = table_find(&t, "gpt2_large:seq1024");
	assert_int_equal(m->n, 2);
	assert_int_equal(m->points[0].batch, 1);
	assert_int_equal(m->sample_bytes, 16384);
	assert_string_equal(m->source, "H/gpt2_large-train-1024-4.json, "
				       "H/gpt2_large-train-1024-1.json");
	assert_step(&t, "gpt2_large:seq1024", 4, 226.3, 412.5);
	assert_step(&t, "gpt2_large:seq1024:tp4", 4, 70, 140);
	/* two points: what lies between is unknown */
	assert_true(table_gap_error(m) == 1);
	table_free(&t);
}

static void mlperf_storage(void **state)
{
	struct table t = table_of("unet3d_h100.yaml", WORKLOAD, NULL);

	(void)state;
	assert_step(&t, "unet3d", 7, 323. / 3, 646. / 3);
	assert_int_equal(table_find(&t, "unet3d")->sample_bytes, 1466);
	table_free(&t);
	t = table_of("a.yaml",
		     "model: dlrm\nreader: {batch_size: 2}\n"
		     "train: {computation_time: {mean: 0.003, stdev: 1}}\n",
		     NULL);
	assert_step(&t, "dlrm", 2, 1, 2);
	table_free(&t);
	/* the deviation is the model's jitter, the older name a sample's size
	 */
	t = table_of("a.yaml",
		     "model: dlrm\nreader: {batch_size: 2}\n"
		     "dataset: {record_length: 512}\n"
		     "train: {computation_time: {type: gamma, shape: 4, "
		     "scale: 0.00075}}\n",
		     NULL);
	assert_step(&t, "dlrm", 2, 1, 2);
	assert_true(near(table_find(&t, "dlrm")->cv, .5));
	assert_int_equal(table_find(&t, "dlrm")->sample_bytes, 512);
	table_free(&t);
}

static void mlperf_training(void **state)
{
	static const char log[] =
		"0: other output\n" TRAINING EVENT("global_batch_size", "768")
			RATE("7000") RATE("7680") "0: " RATE("8000");
	struct table t = table_of("result_0.txt", log,
				  "mlperf_training:gpus=8,sample_bytes=2048");
	const struct table_model *m = table_find(&t, "bert");
	struct err err;

	(void)state;
	/* 768 samples of 8 GPUs at 7680 per second */
	assert_step(&t, "bert", 96, 100. / 3, 200. / 3);
	assert_int_equal(m->parameters, 0);
	assert_int_equal(m->sample_bytes, 2048);
	/* the mean of this run and of one of 110 ms */
	assert_int_equal(parse("result_1.txt",
			       TRAINING EVENT("global_batch_size", "768")
				       RATE("6981.8181818181818"),
			       "mlperf-training:gpus=8", &t, &err),
			 0);
	assert_step(&t, "bert", 96, 105. / 3, 210. / 3);
	table_free(&t);
}

static void gpemu(void **state)
{
	struct table t = table_of(
		"t.csv",
		"model,batch_size,forward_s,backward_s,transfer_s,peak_mib,"
		"persistent_mib\nm,1,0.001,0.002,0.003,4,5\n",
		NULL);

	(void)state;
	assert_step(&t, "m", 1, 1, 2);
	assert_true(near(table_find(&t, "m")->points[0].v[2], 3));
	table_free(&t);
}

static void faults_have_a_position(void **state)
{
	static const struct {
		const char *path, *format, *bytes, *text;
	} bad[] = {
		{ "t.csv", NULL, "what,is,this\n1,2,3\n",
		  "t.csv:1:1: no known format (known: gpemu timm neusight "
		  "mlperf_training mlperf_storage)" },
		{ "t.csv", "timm", "", "t.csv:1:1: no rows" },
		{ "t.csv", NULL,
		  "model,train_step_time,train_batch_size\nm,1,2\n",
		  "t.csv:1:1: no column 'train_img_size' in the header" },
		{ "t.csv", NULL, TIMM_HEADER "m,1,x,512,224,1\n",
		  "t.csv:2:5: train_step_time: 'x' is not a number" },
		{ "t.csv", NULL, TIMM_HEADER "\nm,1,2,0,224,1\n",
		  "t.csv:3:1: a row without a model, a batch size or an image "
		  "size" },
		{ "t.csv", NULL, TIMM_HEADER "m,1,2,1.5,224,1\n",
		  "t.csv:2:7: train_batch_size: '1.5' is not a whole number up "
		  "to 1048576" },
		{ "t.csv", NULL, TIMM_HEADER "m,1,0,8,224,1\n",
		  "t.csv:2:1: m: a step of 0 ms with a forward pass of 0 ms" },
		{ "t.csv", NULL, TIMM_HEADER "m,1,2,8,224,1\nm,1,3,8,224,1\n",
		  "t.csv:3:1: batch size 8 of m is listed twice" },
		{ "t.csv", NULL, TIMM_HEADER "a b,1,2,8,224,1\n",
		  "t.csv:2:1: 'a b': a model's name has letters, digits and _ "
		  ". "
		  "+ : -" },
		{ "m-train-8.json", NULL, "{\"e2e_latency\": 1}",
		  "m-train-8.json:1:1: the name is not MODEL-train-SEQUENCE-"
		  "BATCH[-VARIANT].json" },
		{ "m-train-8-0.json", NULL, "{\"e2e_latency\": 1}",
		  "m-train-8-0.json:1:1: the name is not MODEL-train-SEQUENCE-"
		  "BATCH[-VARIANT].json" },
		{ "m-train-8-1.json", NULL, "{\"e2e_latency\": 1,\n x}",
		  "m-train-8-1.json:2:2: string or '}' expected near 'x'" },
		{ "m-train-8-1.json", "neusight", "[]",
		  "m-train-8-1.json:1:1: not an object" },
		{ "m-train-8-1.json", "neusight", "{}",
		  "m-train-8-1.json:1:1: 'e2e_latency' is not a time in ms" },
		{ "m-train-8-1.json", NULL,
		  "{\"e2e_latency\": 1, \"fw_latency\": 2}",
		  "m-train-8-1.json:1:1: m:seq8: a step of 1 ms with a forward "
		  "pass of 2 ms" },
		{ "r.txt", NULL, TRAINING,
		  "r.txt: the log does not have the number of accelerators: "
		  "--format mlperf_training:gpus=N" },
		{ "r.txt", "mlperf_training:gpus=8", TRAINING "x " MLLOG "}\n",
		  "r.txt:2:44: string or '}' expected near '}'" },
		{ "r.txt", "mlperf_training:gpus=8", TRAINING RATE("1"),
		  "r.txt:2:1: no global_batch_size" },
		{ "r.txt", "mlperf_training:gpus=8",
		  TRAINING EVENT("global_batch_size", "100") RATE("1"),
		  "r.txt:3:1: global_batch_size is not a multiple of the "
		  "number "
		  "of accelerators" },
		{ "r.txt", "mlperf_training:gpus=8",
		  TRAINING EVENT("global_batch_size", "8"),
		  "r.txt:2:1: no throughput in tracked_stats" },
		{ "r.txt", "mlperf_training:gpus=8", RATE("-1"),
		  "r.txt:1:10: throughput is not above 0" },
		/* what no profile takes is not imported */
		{ "r.txt", "mlperf_training:gpus=1",
		  TRAINING EVENT("global_batch_size", "1048577") RATE("1"),
		  "r.txt:3:1: bert: a batch size of 1048577 is not from 1 to "
		  "1048576" },
		{ "r.txt", "mlperf_training:gpus=8",
		  TRAINING EVENT("global_batch_size", "8") RATE("1e-9"),
		  "r.txt:3:1: bert: a step of 8e+12 ms with a forward pass of "
		  "2.66667e+12 ms" },
		{ "m-train-8-1.json", NULL, "{\"e2e_latency\": 3e-9}",
		  "m-train-8-1.json:1:1: m:seq8: a step of 3e-09 ms "
		  "with a forward pass of 1e-09 ms" },
		{ "w.yaml", NULL,
		  "reader: {batch_size: 7}\n"
		  "dataset:\n  num_files_train: 1\n",
		  "w.yaml:1:1: no training step: 'model.name' is missing" },
		{ "w.yaml", NULL, WORKLOAD "  computation_time: 1\n",
		  "w.yaml:12:3: duplicate key 'computation_time'" },
		{ "w.yaml", NULL,
		  "model: {name: m}\nreader: {batch_size: 1.5}\n"
		  "train: {computation_time: 1}\n",
		  "w.yaml:2:22: batch_size: 1.5 is not whole" },
		{ "w.yaml", NULL,
		  "model: {name: m}\nreader: {batch_size: 1}\n"
		  "train:\n  computation_time: soon\n",
		  "w.yaml:4:21: computation_time: 'soon' is not a number" },
		{ "t.csv", "tim", "x",
		  "unknown format of tables 'tim'; did you mean 'timm'? "
		  "(known: gpemu timm "
		  "neusight mlperf_training mlperf_storage)" },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		struct table t = { 0 };
		struct err err;

		assert_int_equal(parse(bad[i].path, bad[i].bytes, bad[i].format,
				       &t, &err),
				 -EINVAL);
		assert_string_equal(err.text, bad[i].text);
		table_free(&t);
	}
}

/* A point left out, at the middle of a bend: 10, 40, 50 ms. */
static void the_error_between_points(void **state)
{
	struct table_point p[] = { { 1, { 4, 6 } },
				   { 2, { 20, 20 } },
				   { 3, { 25, 25 } } };
	struct table_model m = { .points = p, .n = 3 };

	(void)state;
	/* every batch size is there */
	assert_true(table_gap_error(&m) == 0);
	p[2].batch = 5;
	/* the line from 1 to 5 has 20 ms at 2 */
	assert_true(near(table_gap_error(&m), .5));
	m.n = 1;
	assert_true(table_gap_error(&m) == 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(gpemu),
		cmocka_unit_test(timm),
		cmocka_unit_test(neusight),
		cmocka_unit_test(mlperf_storage),
		cmocka_unit_test(mlperf_training),
		cmocka_unit_test(faults_have_a_position),
		cmocka_unit_test(the_error_between_points),
	};

	return cmocka_run_group_tests_name("import", tests, NULL, NULL);
}

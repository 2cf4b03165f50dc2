/* SPDX-License-Identifier: MIT */
/* Steps of the GPUs in the database are those that their sources have. */
#include "tests/unit/profile_rig.h"

#include <math.h>

#include "common/util.h"

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
	/* the K80's own memory cells of this model are impossible: 11,814 MiB
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
		{ "mlperf-mi355", "retinanet", 32, 63400000 },
		{ "mlperf-mi355", "flux", 72, 2025000000 },
		{ "mlperf-mi355", "dlrm", 16384, 562500 },
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

/* Source: the tables that the profiles name, in ms. */
static void published_tables_are_in_the_database(void **state)
{
	static const struct {
		const char *gpu, *model;
		uint64_t batch;
		double step_ms;
	} known[] = {
		{ "h100", "gpt2_large:seq1024", 1, 183.977 },
		{ "h100", "gpt2_large:seq1024", 4, 638.809 },
		{ "h100", "gpt2_large:seq1024:dp4", 4, 194.881 },
		{ "h100", "gpt2_large:seq1024:dp4", 16, 642.081 },
		{ "h100", "gpt2_large:seq1024:tp4", 16, 729.665 },
		{ "h100", "gpt2_large:seq1024:pp4_1", 16, 2384.009 },
		{ "a100-80gb", "gpt3_27:seq2048", 1, 3012.925 },
		{ "l4", "bert_large:seq512", 8, 1275.441 },
		{ "mi100", "bert_large:seq512", 2, 135.006 },
		{ "mi210", "opt_13:seq2048", 1, 983.238 },
		{ "mi250", "gpt2_large:seq1024", 4, 1840.406 },
		{ "rtx3090", "resnet50", 512, 618.983 },
		{ "rtx3090", "resnet50:channels_last", 512, 419.528 },
		{ "rtx3090", "tinynet_e:px106", 512, 50.423 },
	};
	struct gpu_profile p;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(known); i++) {
		assert_int_equal(gpu_profile_load(known[i].gpu, &p, NULL), 0);
		struct gpu_cost c = cost(&p, known[i].model, known[i].batch);
		double ms = (double)(c.forward_ns + c.backward_ns) / 1e6;

		/* four digits are kept */
		assert_true(fabs(ms / known[i].step_ms - 1) < 5e-4);
		assert_int_equal(c.origin, GPU_MEASURED);
		assert_non_null(p.precision);
		gpu_profile_free(&p);
	}
	assert_int_equal(gpu_profile_load("rtx3090", &p, NULL), 0);
	assert_true(p.models.n > 1600);
	/* one row: nothing between, nothing beyond */
	assert_int_equal(cost(&p, "resnet50", 511).origin, GPU_EXTRAPOLATED);
	assert_int_equal(cost(&p, "resnet50", 513).origin, GPU_EXTRAPOLATED);
	gpu_profile_free(&p);
}

/* Source: the logs that the profile names; samples of a step over the median
 * throughput. */
static void mlperf_training_runs_are_in_the_database(void **state)
{
	static const struct {
		const char *model;
		uint64_t batch;
		double samples, per_s;
	} known[] = {
		{ "resnet", 400, 3200, 63616.362 },
		{ "bert", 96, 768, 7984.201 },
		{ "llama2_70b_lora", 1, 8, 2.476256 },
	};
	struct gpu_profile p;

	(void)state;
	assert_int_equal(gpu_profile_load("h200", &p, NULL), 0);
	assert_int_equal(p.models.n, ARRAY_SIZE(known));
	for (size_t i = 0; i < ARRAY_SIZE(known); i++) {
		struct gpu_cost c = cost(&p, known[i].model, known[i].batch);
		double s = (double)(c.forward_ns + c.backward_ns) / 1e9;

		assert_true(fabs(s * known[i].per_s / known[i].samples - 1) <
			    5e-4);
		assert_int_equal(c.origin, GPU_MEASURED);
	}
	gpu_profile_free(&p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(shipped_profiles_hold_what_was_measured),
		cmocka_unit_test(mlperf_accelerators_take_the_published_time),
		cmocka_unit_test(published_tables_are_in_the_database),
		cmocka_unit_test(mlperf_training_runs_are_in_the_database),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: MIT */
/* The GPU of libgpemu, alone, against the one of a training run. */
#include "tests/unit/test.h"

#include <errno.h>
#include <gpemu.h>
#include <string.h>

/* The time of a step of 64 in a run with empty batches. */
static struct gpemu_step step_in_run(void)
{
	static const char *const options[] = { "loader=null", "samples=64",
					       "time_scale=0.01", NULL };
	const struct gpemu_batch *b;
	struct gpemu_step s;
	struct gpemu *g;

	assert_int_equal(gpemu_open(options, NULL, &g, NULL, 0), 0);
	assert_int_equal(gpemu_begin_epoch(g, NULL), 1);
	assert_int_equal(gpemu_next(g, &b), 1);
	assert_int_equal(b->n, 64);
	assert_null(b->samples);
	assert_int_equal(gpemu_submit(g, b, &s), 0);
	assert_int_equal(gpemu_end_epoch(g, NULL), 0);
	gpemu_close(g);
	return s;
}

static void test_gpu(void **state)
{
	static const char *const options[] = { "gpu=v100", "model=resnet50",
					       "time_scale=0.01", NULL };
	struct gpemu_step want = step_in_run(), a, b, c;
	char error[256];
	struct gpemu_gpu *gpu;

	(void)state;
	assert_int_equal(gpemu_gpu_open(options, &gpu, error, sizeof(error)),
			 0);
	assert_int_equal(gpemu_gpu_submit(gpu, 64, &a), 0);
	assert_int_equal(gpemu_gpu_submit(gpu, 64, &b), 0);
	assert_true(gpemu_gpu_now_ns(gpu) >= b.compute_start_ns);
	assert_int_equal(gpemu_gpu_submit(gpu, 32, &c), 0);
	assert_int_equal(a.compute_end_ns - a.compute_start_ns,
			 want.compute_end_ns - want.compute_start_ns);
	assert_int_equal(a.copy_end_ns - a.copy_start_ns,
			 want.copy_end_ns - want.copy_start_ns);
	/* beside the computation of the one before */
	assert_true(b.copy_end_ns < a.compute_end_ns);
	assert_true(b.compute_start_ns >= a.compute_end_ns);
	assert_true(c.compute_end_ns - c.compute_start_ns <
		    b.compute_end_ns - b.compute_start_ns);
	assert_int_equal(gpemu_gpu_wait(gpu), c.compute_end_ns);
	assert_true(gpemu_gpu_now_ns(gpu) >= c.compute_end_ns);
	assert_int_equal(gpemu_gpu_submit(gpu, 0, &a), -EINVAL);
	assert_int_equal(gpemu_gpu_submit(gpu, 1 << 20, &a), -E2BIG);
	assert_non_null(strstr(gpemu_gpu_error(gpu), "out of GPU memory"));
	gpemu_gpu_close(gpu);
	gpemu_gpu_close(NULL);
}

/* The time of a step of 64 each on four GPUs in a run. */
static struct gpemu_step step_of_four(const char *parallel)
{
	const char *const options[] = { "loader=null",
					"samples=256",
					"node=dgx-1v",
					"gpus=4",
					"time_scale=0.01",
					"model=resnet50",
					"model_transfer=off",
					parallel,
					NULL };
	const struct gpemu_batch *b;
	struct gpemu_step s;
	struct gpemu *g;

	assert_int_equal(gpemu_open(options, NULL, &g, NULL, 0), 0);
	assert_int_equal(gpemu_begin_epoch(g, NULL), 1);
	while (gpemu_next(g, &b) == 1)
		assert_int_equal(gpemu_submit(g, b, &s), 0);
	assert_int_equal(gpemu_end_epoch(g, NULL), 0);
	gpemu_close(g);
	return s;
}

static void test_gpus(void **state)
{
	static const char *const parallel[] = { "parallel=ddp", "parallel=dp" };

	(void)state;
	for (unsigned i = 0; i < 2; i++) {
		const char *const options[] = { "node=dgx-1v",	   "gpus=4",
						"model=resnet50",  parallel[i],
						"time_scale=0.01", NULL };
		struct gpemu_step want = step_of_four(parallel[i]), a, b;
		struct gpemu_gpu *gpu;

		assert_int_equal(gpemu_gpu_open(options, &gpu, NULL, 0), 0);
		assert_int_equal(gpemu_gpu_submit(gpu, 256, &a), 0);
		assert_int_equal(a.compute_end_ns - a.compute_start_ns,
				 want.compute_end_ns - want.compute_start_ns);
		assert_int_equal(a.allreduce_ns, want.allreduce_ns);
		assert_true(a.allreduce_ns > 0);
		/* the last of four has nothing to do */
		assert_int_equal(gpemu_gpu_submit(gpu, 9, &b), 0);
		assert_true(b.compute_start_ns >= a.step_end_ns);
		assert_true(b.compute_end_ns - b.compute_start_ns <
			    a.compute_end_ns - a.compute_start_ns);
		assert_int_equal(gpemu_gpu_wait(gpu), b.step_end_ns);
		assert_int_equal(gpemu_gpu_submit(gpu, 4 << 20, NULL), -E2BIG);
		gpemu_gpu_close(gpu);
	}
}

static void test_no_gpu(void **state)
{
	static const char *const bad[][2] = {
		{ "data=/tmp", "unknown option" },
		{ "config=/tmp", "unknown option" },
		{ "model=abacus", "abacus" },
		{ "batch=1000000", "out of GPU memory" },
		{ "transfer=slow", "unknown transfer mode" },
		{ "parallel=both", "unknown --parallel" },
		{ "node=abacus", "abacus" },
		{ "gpus=65", "65" },
	};

	(void)state;
	for (unsigned i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
		const char *const options[] = { bad[i][0], NULL };
		char error[512] = "";
		struct gpemu_gpu *gpu = (void *)error;

		assert_true(gpemu_gpu_open(options, &gpu, error,
					   sizeof(error)) < 0);
		if (!strstr(error, bad[i][1]))
			fail_msg("%s: %s", bad[i][0], error);
		assert_null(gpu);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_gpu),
		cmocka_unit_test(test_gpus),
		cmocka_unit_test(test_no_gpu),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: MIT */
/*
 * loop EPOCHS key=value...: CPU time of the thread that takes the batches, us
 * per batch, for the loop of a program on libgpemu; and for steps of the GPU
 * alone. tests/bench/python compares Python's with it.
 */
#include <gpemu.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { MOST = 32, STEPS = 2000 };

static double cpu_us(void)
{
	struct timespec t;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return (double)t.tv_sec * 1e6 + (double)t.tv_nsec / 1e3;
}

static void check(int r, const char *error)
{
	if (r >= 0)
		return;
	fprintf(stderr, "loop: %s\n", error);
	exit(1);
}

static double loop(const char *const options[], int epochs)
{
	const struct gpemu_batch *b;
	char error[1024] = "";
	unsigned n = 0;
	struct gpemu *g;
	double us = 0;

	check(gpemu_open(options, NULL, &g, error, sizeof(error)), error);
	for (int i = 0; i < epochs; i++) {
		double begin = cpu_us();

		check(gpemu_begin_epoch(g, NULL), gpemu_error(g));
		while (gpemu_next(g, &b) == 1) {
			check(gpemu_submit(g, b, NULL), gpemu_error(g));
			n++;
		}
		check(gpemu_end_epoch(g, NULL), gpemu_error(g));
		us += cpu_us() - begin;
	}
	gpemu_close(g);
	return us / n;
}

static double steps(void)
{
	static const char *const options[] = { "gpu=v100", "model=resnet18",
					       "time_scale=1e-6", NULL };
	struct gpemu_step step;
	struct gpemu_gpu *gpu;
	char error[1024] = "";
	double begin;

	check(gpemu_gpu_open(options, &gpu, error, sizeof(error)), error);
	begin = cpu_us();
	for (int i = 0; i < STEPS; i++)
		check(gpemu_gpu_submit(gpu, 64, &step), gpemu_gpu_error(gpu));
	begin = cpu_us() - begin;
	gpemu_gpu_close(gpu);
	return begin / STEPS;
}

int main(int argc, char **argv)
{
	const char *options[MOST + 1] = { 0 };

	for (int i = 2; i < argc && i < MOST + 2; i++)
		options[i - 2] = argv[i];
	printf("%.2f %.2f\n", loop(options, argc > 1 ? atoi(argv[1]) : 1),
	       steps());
	return 0;
}

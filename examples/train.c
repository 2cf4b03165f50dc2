/* SPDX-License-Identifier: MIT */
/* A training loop on libgpemu: train FOLDER [key=value...] */
#include <gpemu.h>
#include <stdio.h>
#include <stdlib.h>

static struct gpemu *g;

static void check_result(int r)
{
	if (r >= 0)
		return;
	fprintf(stderr, "train: %s\n", gpemu_error(g));
	exit(1);
}

static void one_epoch(uint64_t epoch)
{
	const struct gpemu_batch *batch;
	struct gpemu_epoch e;
	uint64_t labels = 0;
	int r;

	while ((r = gpemu_next(g, &batch)) > 0) {
		/* use the samples here */
		for (uint32_t i = 0; i < batch->n; i++)
			labels += batch->samples[i].label;
		check_result(gpemu_submit(g, batch, NULL));
	}
	check_result(r);
	check_result(gpemu_end_epoch(g, &e));
	printf("epoch %d: %d steps, %d samples, sum of labels %d, %.3f s, "
	       "waited %.1f %% for data\n",
	       (int)epoch, (int)e.steps, (int)e.samples, (int)labels,
	       (double)e.elapsed_ns / 1e9,
	       100. * (double)e.data_wait_ns / (double)e.elapsed_ns);
}

int main(int argc, char **argv)
{
	const char *options[64] = { "model=resnet18" };
	char data[4096], error[256];
	uint64_t epoch;
	int r;

	snprintf(data, sizeof(data), "data=%s", argc > 1 ? argv[1] : ".");
	options[1] = data;
	for (int i = 2; i < argc && i < 60; i++)
		options[i] = argv[i];
	if (gpemu_open(options, NULL, &g, error, sizeof(error)) < 0) {
		fprintf(stderr, "train: %s\n", error);
		return 1;
	}
	while ((r = gpemu_begin_epoch(g, &epoch)) > 0)
		one_epoch(epoch);
	check_result(r);
	return gpemu_close(g) < 0;
}

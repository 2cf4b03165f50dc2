/* SPDX-License-Identifier: MIT */
/*
 * Images per second and thread of `--prep decode`, and its parts:
 *
 *	bench_prep DIR [SECONDS]
 *
 * DIR holds JPEGs (gpemu-data make); up to 512 of them are read into memory
 * first. Four measurements, each going over the images for SECONDS of CPU time:
 * the whole stage; only its decoding; decoding and resampling; decoding the
 * whole images with libjpeg-turbo. The parts are differences of the first
 * three.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "common/tick.h"
#include "common/units.h"
#include "common/util.h"
#include "loader/data/data_scan.h"
#include "loader/prep/planes.h"
#include "loader/prep/prep.h"
#include "tests/unit/resample.h"

enum { MOST = 512, SIDE = 224 };

static const struct prep_config config = { .side = SIDE };

struct image {
	uint8_t *bytes;
	size_t n;
};

struct bench {
	struct image images[MOST];
	unsigned n;
	const struct prep_ops *ops;
	void *state;
	float *out;
	struct planes planes;
	struct resample resample;
};

static struct rng stream(uint64_t k)
{
	return rng_stream(1, "bench", k);
}

/* The whole image at full size: an upper bound of any stage's speed. */
static int bare(struct bench *b, const struct image *i, uint64_t k)
{
	struct planes *p = &b->planes;

	(void)k;
	if (planes_header(p, i->bytes, i->n) < 0)
		return -1;
	return planes_decode(p, PLANES_EIGHTHS, 0, p->height);
}

/* As much of it as the stage needs. */
static int decode(struct bench *b, const struct image *i, uint64_t k,
		  struct crop *crop)
{
	struct planes *p = &b->planes;
	struct rng rng = stream(k);

	if (planes_header(p, i->bytes, i->n) < 0)
		return -1;
	*crop = crop_random(&rng, p->width, p->height, .08);
	return planes_decode(p, planes_eighths(crop->width, crop->height, SIDE),
			     crop->y, crop->y + crop->height);
}

static int only_decode(struct bench *b, const struct image *i, uint64_t k)
{
	struct crop crop;

	return decode(b, i, k, &crop);
}

static int decode_and_resample(struct bench *b, const struct image *i,
			       uint64_t k)
{
	struct crop crop;
	int r = decode(b, i, k, &crop);

	for (unsigned c = 0; r == 0 && c < b->planes.n; c++) {
		const struct plane *p = &b->planes.plane[c];

		r = resample_plane(
			&b->resample,
			&(struct resample_input){ p->pixels, p->stride,
						  p->width, p->height },
			&(struct resample_box){ crop.x * p->scale_x,
						crop.y * p->scale_y,
						crop.width * p->scale_x,
						crop.height * p->scale_y },
			k & 1, SIDE, SIDE, b->out + (size_t)c * SIDE * SIDE);
	}
	return r;
}

static int all(struct bench *b, const struct image *i, uint64_t k)
{
	struct rng rng = stream(k);

	return b->ops->run(b->state, i->bytes, i->n, &rng, b->out);
}

typedef int (*step_fn)(struct bench *, const struct image *, uint64_t);

/* Microseconds of CPU time an image. */
static double measure(struct bench *b, step_fn step, double seconds)
{
	uint64_t start = tick_cpu_thread(), k = 0, now;

	do {
		for (unsigned i = 0; i < b->n; i++)
			if (step(b, &b->images[i], k++) < 0)
				fprintf(stderr, "image %u is broken\n", i);
		now = tick_cpu_thread();
	} while ((double)(now - start) < seconds * NS_PER_S);
	return (double)(now - start) / 1e3 / (double)k;
}

static int load(struct bench *b, const char *dir, struct err *err)
{
	struct data_scan scan;
	uint64_t bytes = 0;
	int r = data_scan_read(dir, &scan, err);

	for (uint64_t i = 0; r == 0 && i < scan.n && b->n < MOST; i++) {
		_cleanup_free_ char *path = NULL;
		struct image *image = &b->images[b->n];

		if (asprintf(&path, "%s/%s", dir, scan.files[i].path) < 0)
			return -1;
		r = data_scan_file_read(path, &image->bytes, &image->n, err);
		b->n += r == 0;
		bytes += image->n;
	}
	data_scan_fini(&scan);
	if (r == 0 && b->n == 0)
		return err_set(err, -1, "%s: contains no files", dir);
	if (r == 0)
		printf("%u images, %.0f bytes on average\n", b->n,
		       (double)bytes / b->n);
	return r;
}

static int start(struct bench *b, const char *dir, struct err *err)
{
	const struct plugin *p = plugin_find(prep_table, "prep", "decode", err);

	if (load(b, dir, err) < 0)
		return -1;
	b->ops = container_of(p, const struct prep_ops, plugin);
	b->state = calloc(1, p->state_size);
	b->out = util_aligned_alloc(64, sizeof(float) * 3 * SIDE * SIDE);
	if (!b->state || !b->out)
		return err_set(err, -1, "out of memory");
	return b->ops->init(b->state, &config, err);
}

static void row(const char *what, double us, double of)
{
	printf("%-12s %9.1f us %5.1f %%\n", what, us, 100 * us / of);
}

int main(int argc, char **argv)
{
	static struct bench b; /* a large table; there is only one */
	struct err err = { 0 };
	double seconds = 2, t[4];

	if (argc < 2 ||
	    (argc > 2 && units_parse_double(argv[2], &seconds) < 0)) {
		fprintf(stderr, "usage: bench_prep DIR [SECONDS]\n");
		return 2;
	}
	if (start(&b, argv[1], &err) < 0) {
		fprintf(stderr, "bench_prep: %s\n", err.text);
		return 1;
	}
	t[0] = measure(&b, only_decode, seconds);
	t[1] = measure(&b, decode_and_resample, seconds);
	t[2] = measure(&b, all, seconds);
	t[3] = measure(&b, bare, seconds);
	printf("%.0f images/s per core\n", 1e6 / t[2]);
	row("decode", t[0], t[2]);
	row("resample", t[1] - t[0], t[2]);
	row("the rest", t[2] - t[1], t[2]);
	row("all", t[2], t[2]);
	row("bare decode", t[3], t[2]);
	return 0;
}

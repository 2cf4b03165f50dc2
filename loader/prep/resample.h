/* SPDX-License-Identifier: MIT */
/*
 * Resizes a part of a plane of pixels by a separable triangle filter whose
 * support grows with the reduction: bilinear interpolation when enlarging, an
 * average over all covered pixels (no aliasing) when reducing. This is the
 * "bilinear" of torchvision and Pillow.
 *
 * One object belongs to one thread and keeps its memory for the next call.
 */
#ifndef GPEMU_LOADER_PREP_RESAMPLE_H
#define GPEMU_LOADER_PREP_RESAMPLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/rng.h"

/* The inputs of each output row or column. */
struct resample_axis {
	uint32_t *first; /* per output: first input */
	float *weight;	 /* per output: n_taps weights, summing to 1 */
	unsigned n_taps;
	unsigned begin, end; /* the range of inputs in use */
	size_t capacity;     /* weights */
	unsigned n_first;
};

/* A rectangle of the input, in pixels; may be fractional. */
struct resample_box {
	double x, y, width, height;
};

struct resample_input {
	const uint8_t *pixels;
	size_t stride;
	unsigned width, height;
};

/* A zeroed struct is a new one. */
struct resample {
	struct resample_axis x, y;
	float *scratch;
	size_t capacity;
	struct resample_input in; /* of resample_begin */
	unsigned out_w;
};

enum { RESAMPLE_ROWS = 16 };

/*
 * Prepare to resample the box, which must overlap the input, to out_w x out_h
 * values 0..255, mirrored left to right on request. Pixels outside the box have
 * no influence. The pixels stay in use. -ENOMEM.
 */
int resample_begin(struct resample *r, const struct resample_input *in,
		   const struct resample_box *box, bool mirror, unsigned out_w,
		   unsigned out_h);
/* Rows y..y + n - 1 of the output, row-major; n <= RESAMPLE_ROWS. */
void resample_rows(struct resample *r, unsigned y, unsigned n, float *out);
void resample_fini(struct resample *r);

/*
 * --- random crops ---------------------------------------------------------
 *
 * The rectangle of torchvision's RandomResizedCrop: its area a share of the
 * image's, uniform in least..1, its ratio of width to height log-uniform in
 * 3/4..4/3, its position uniform. A rectangle that does not fit is drawn again;
 * after ten attempts it is the largest centred rectangle with a permitted
 * ratio. Source: torchvision 0.14, transforms/transforms.py, get_params.
 */

struct crop {
	unsigned x, y, width, height; /* pixels */
};

/* For an image of w x h >= 1 pixels. */
struct crop crop_random(struct rng *rng, unsigned w, unsigned h, double least);

#endif

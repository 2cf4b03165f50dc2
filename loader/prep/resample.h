/* SPDX-License-Identifier: MIT */
/*
 * Resizing part of a plane of pixels by a separable triangle filter whose
 * support grows with the reduction: bilinear interpolation when enlarging,
 * an average over all pixels covered (no aliasing) when reducing. What
 * torchvision's and Pillow's "bilinear" mean.
 *
 * One object belongs to one thread and keeps its memory for the next call.
 */
#ifndef GPEMU_LOADER_PREP_RESAMPLE_H
#define GPEMU_LOADER_PREP_RESAMPLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Where an output row or column takes its pixels from. */
struct resample_axis {
	uint32_t *first; /* per output: first input */
	float *weight;	 /* per output: n_taps of them, summing to 1 */
	unsigned n_taps;
	unsigned begin, end; /* the inputs that are used at all */
	size_t capacity;     /* weights */
	unsigned n_first;
};

/* A rectangle of the input, in pixels; need not be whole. */
struct resample_box {
	double x, y, width, height;
};

struct resample_input {
	const uint8_t *pixels;
	size_t stride;
	unsigned width, height;
};

/* All zeros is a new one. */
struct resample {
	struct resample_axis x, y;
	float *scratch;
	size_t capacity;
	struct resample_input in; /* of resample_begin */
	unsigned out_w;
};

enum { RESAMPLE_ROWS = 16 };

/*
 * Get ready to make the box, which must touch the input, into out_w x out_h
 * values 0..255, mirrored left to right when asked. Pixels outside the box
 * have no influence. The pixels stay in use. -ENOMEM.
 */
int resample_begin(struct resample *r, const struct resample_input *in,
		   const struct resample_box *box, bool mirror, unsigned out_w,
		   unsigned out_h);
/* Rows y..y + n - 1 of it, row-major; n <= RESAMPLE_ROWS. */
void resample_rows(struct resample *r, unsigned y, unsigned n, float *out);
/* Both: all of it. */
int resample_plane(struct resample *r, const struct resample_input *in,
		   const struct resample_box *box, bool mirror, unsigned out_w,
		   unsigned out_h, float *out);
void resample_fini(struct resample *r);

#endif

/* SPDX-License-Identifier: MIT */
/*
 * For each output the weights of its inputs are computed once per axis, as
 * Pillow does (Resample.c, "precompute_coeffs"), then applied twice, down and
 * then across:
 *
 *	input rows   --down-->  one row of floats, as wide as the box
 *	16 such rows --turned-->  tmp[x][16]
 *	tmp          --across-->  16 output rows
 *
 * Down the columns every input pixel of a row does the same, which is what
 * vector units want. Across, neighbouring outputs begin at uneven inputs, so
 * there 16 rows are taken side by side, and again all lanes do the same.
 *
 * Everything is float and nothing is rounded between the passes (Pillow
 * rounds to 8 bits there), so values differ from Pillow's by up to 1 of 255.
 */
#include "loader/resample.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/util.h"

enum { LANES = 16 };

/*
 * The inner loops also for wider vectors, chosen when the program starts.
 * Without fused multiply-add, so that results are the same on every machine.
 * Not under ThreadSanitizer (gcc says so by this macro): the choice is made
 * before its runtime is there, and crashes.
 */
#if defined(__x86_64__) && defined(__has_attribute)
#if __has_attribute(target_clones) && !defined(__SANITIZE_THREAD__)
#define WIDER __attribute__((target_clones("default", "avx2")))
#endif
#endif
#ifndef WIDER
#define WIDER
#endif

static int reserve(float **v, size_t *capacity, size_t n)
{
	if (n <= *capacity)
		return 0;
	free(*v);
	*capacity = 0;
	*v = malloc(n * sizeof(**v));
	if (!*v)
		return -ENOMEM;
	*capacity = n;
	return 0;
}

static int axis_reserve(struct resample_axis *a, unsigned n_out)
{
	if (n_out > a->n_first) {
		free(a->first);
		a->n_first = 0;
		a->first = malloc(n_out * sizeof(*a->first));
		if (!a->first)
			return -ENOMEM;
		a->n_first = n_out;
	}
	return reserve(&a->weight, &a->capacity, (size_t)n_out * a->n_taps);
}

/* The weights of one output whose centre is at `centre`. */
static void taps(struct resample_axis *a, unsigned o, double centre,
		 double radius)
{
	double from = floor(centre - radius + .5), sum = 0;
	float *w = a->weight + (size_t)o * a->n_taps;
	unsigned first = from > a->begin ? (unsigned)from : a->begin;

	/* the last inputs: the taps must not reach past the end */
	if (first + a->n_taps > a->end)
		first = a->end - a->n_taps;
	a->first[o] = first;
	for (unsigned k = 0; k < a->n_taps; k++) {
		double d = fabs(first + k + .5 - centre) / radius;

		w[k] = d < 1 ? (float)(1 - d) : 0;
		sum += w[k];
	}
	for (unsigned k = 0; k < a->n_taps; k++)
		w[k] = (float)(w[k] / sum);
}

static int axis_set(struct resample_axis *a, double from, double length,
		    unsigned n_in, unsigned n_out, bool mirror)
{
	double scale = length / n_out, radius = MAX(scale, 1);
	unsigned span;
	int r;

	a->begin = from > 0 ? MIN((unsigned)from, n_in - 1) : 0;
	/* a hair less than the end, which may have a rounding error */
	a->end = (unsigned)MIN(ceil(from + length - 1e-6), (double)n_in);
	a->end = MAX(a->end, a->begin + 1);
	span = (unsigned)ceil(2 * radius) + 1;
	a->n_taps = MIN(span, a->end - a->begin);
	r = axis_reserve(a, n_out);
	if (r < 0)
		return r;
	for (unsigned i = 0; i < n_out; i++) {
		unsigned o = mirror ? n_out - 1 - i : i;
		double centre = from + (i + .5) * scale;

		/* so that at least one input is within the radius */
		centre = MIN(MAX(centre, a->begin + .5), a->end - .5);
		taps(a, o, centre, radius);
	}
	return 0;
}

WIDER static void down(const struct resample_axis *a, unsigned o,
		       const uint8_t *in, size_t stride, unsigned n,
		       float *restrict row)
{
	const float *w = a->weight + (size_t)o * a->n_taps;
	const uint8_t *restrict p = in + a->first[o] * stride;

	for (unsigned x = 0; x < n; x++)
		row[x] = w[0] * p[x];
	for (unsigned k = 1; k < a->n_taps; k++) {
		float wk = w[k];

		p += stride;
		for (unsigned x = 0; wk != 0 && x < n; x++)
			row[x] += wk * p[x];
	}
}

static void turn(const float *restrict row, unsigned n, float *restrict tmp)
{
	for (unsigned x = 0; x < n; x++)
		tmp[(size_t)x * LANES] = row[x];
}

WIDER static void across(const struct resample_axis *a, unsigned n_out,
			 const float *restrict tmp, unsigned n_rows,
			 size_t out_w, float *restrict out)
{
	for (unsigned o = 0; o < n_out; o++) {
		const float *w = a->weight + (size_t)o * a->n_taps;
		const float *t = tmp + (size_t)(a->first[o] - a->begin) * LANES;
		float sum[LANES] = { 0 };

		for (unsigned k = 0; k < a->n_taps; k++, t += LANES)
			for (unsigned l = 0; l < LANES; l++)
				sum[l] += w[k] * t[l];
		for (unsigned l = 0; l < n_rows; l++)
			out[l * out_w + o] = sum[l];
	}
}

int resample_plane(struct resample *r, const struct resample_input *in,
		   const struct resample_box *box, bool mirror, unsigned out_w,
		   unsigned out_h, float *out)
{
	float *row, *tmp;
	unsigned n;

	if (axis_set(&r->x, box->x, box->width, in->width, out_w, mirror) < 0 ||
	    axis_set(&r->y, box->y, box->height, in->height, out_h, false) < 0)
		return -ENOMEM;
	n = r->x.end - r->x.begin;
	if (reserve(&r->scratch, &r->capacity, (size_t)n * (LANES + 1)) < 0)
		return -ENOMEM;
	tmp = r->scratch;
	row = r->scratch + (size_t)n * LANES;
	memset(tmp, 0, (size_t)n * LANES * sizeof(*tmp));
	for (unsigned y = 0; y < out_h; y += LANES) {
		unsigned n_rows = MIN(LANES, out_h - y);

		for (unsigned l = 0; l < n_rows; l++) {
			down(&r->y, y + l, in->pixels + r->x.begin, in->stride,
			     n, row);
			turn(row, n, tmp + l);
		}
		across(&r->x, out_w, tmp, n_rows, out_w,
		       out + (size_t)y * out_w);
	}
	return 0;
}

void resample_fini(struct resample *r)
{
	free(r->x.first);
	free(r->x.weight);
	free(r->y.first);
	free(r->y.weight);
	free(r->scratch);
	*r = (struct resample){ 0 };
}

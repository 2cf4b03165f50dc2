/* SPDX-License-Identifier: MIT */
/*
 * The weights of each output's inputs are computed once per axis, as Pillow
 * does (Resample.c, "precompute_coeffs"), then applied twice, down and then
 * across:
 *
 *	input rows   --down-->  one row of floats, as wide as the box
 *	16 such rows --turned-->  tmp[x][16]
 *	tmp          --across-->  16 output rows
 *
 * In the pass down, all input pixels of a row use the same weight, which suits
 * vector units. In the pass across, neighbouring outputs begin at uneven
 * inputs; so 16 rows are processed side by side, and again all lanes use the
 * same weight.
 *
 * Everything is float and nothing is rounded between the passes (Pillow rounds
 * to 8 bits there), so values differ from Pillow's by up to 1 of 255.
 */
#include "loader/prep/resample.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/util.h"
#include "loader/prep/wider.h"

enum { LANES = RESAMPLE_ROWS };

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
	return util_reserve_anew(&a->weight, &a->capacity,
				 (size_t)n_out * a->n_taps, sizeof(*a->weight));
}

/* The weights of one output centred at `centre`. */
static void taps(struct resample_axis *a, unsigned o, double centre,
		 double radius)
{
	double from = floor(centre - radius + .5), sum = 0;
	float *w = a->weight + (size_t)o * a->n_taps;
	unsigned first = from > a->begin ? (unsigned)from : a->begin;

	/* at the last inputs: the taps must not pass the end */
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
	/* slightly less than the end, which may have a rounding error */
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

/* Four floats that can be shuffled. */
struct quad {
	float v __attribute__((vector_size(16)));
};

/* 4 x 4 floats, columns to rows. */
static inline void turn_quad(const float *from, size_t step, float *to,
			     size_t stride)
{
	struct quad c[4], lo[2], hi[2];

	for (unsigned i = 0; i < 4; i++)
		memcpy(&c[i], from + i * step, sizeof(c[i]));
	for (unsigned i = 0; i < 2; i++) {
		lo[i].v =
			__builtin_shufflevector(c[i].v, c[i + 2].v, 0, 4, 1, 5);
		hi[i].v =
			__builtin_shufflevector(c[i].v, c[i + 2].v, 2, 6, 3, 7);
	}
	c[0].v = __builtin_shufflevector(lo[0].v, lo[1].v, 0, 4, 1, 5);
	c[1].v = __builtin_shufflevector(lo[0].v, lo[1].v, 2, 6, 3, 7);
	c[2].v = __builtin_shufflevector(hi[0].v, hi[1].v, 0, 4, 1, 5);
	c[3].v = __builtin_shufflevector(hi[0].v, hi[1].v, 2, 6, 3, 7);
	for (unsigned i = 0; i < 4; i++)
		memcpy(to + i * stride, &c[i], sizeof(c[i]));
}

/* Output `o` of all rows. */
static inline void add_up(const struct resample_axis *a, unsigned o,
			  const float *restrict tmp, float sum[LANES])
{
	const float *w = a->weight + (size_t)o * a->n_taps;
	const float *t = tmp + (size_t)(a->first[o] - a->begin) * LANES;
	float s[LANES] = { 0 };

	for (unsigned k = 0; k < a->n_taps; k++, t += LANES)
		for (unsigned l = 0; l < LANES; l++)
			s[l] += w[k] * t[l];
	memcpy(sum, s, sizeof(s));
}

WIDER static void across(const struct resample_axis *a, unsigned n_out,
			 const float *restrict tmp, unsigned n_rows,
			 size_t out_w, float *restrict out)
{
	float sum[4][LANES];
	unsigned o = 0;

	for (; n_rows == LANES && o + 4 <= n_out; o += 4) {
		for (unsigned i = 0; i < 4; i++)
			add_up(a, o + i, tmp, sum[i]);
		for (unsigned l = 0; l < LANES; l += 4)
			turn_quad(sum[0] + l, LANES, out + l * out_w + o,
				  out_w);
	}
	for (; o < n_out; o++) {
		add_up(a, o, tmp, sum[0]);
		for (unsigned l = 0; l < n_rows; l++)
			out[l * out_w + o] = sum[0][l];
	}
}

int resample_begin(struct resample *r, const struct resample_input *in,
		   const struct resample_box *box, bool mirror, unsigned out_w,
		   unsigned out_h)
{
	unsigned n;

	if (axis_set(&r->x, box->x, box->width, in->width, out_w, mirror) < 0 ||
	    axis_set(&r->y, box->y, box->height, in->height, out_h, false) < 0)
		return -ENOMEM;
	n = r->x.end - r->x.begin;
	if (util_reserve_anew(&r->scratch, &r->capacity,
			      (size_t)n * (LANES + 1), sizeof(*r->scratch)) < 0)
		return -ENOMEM;
	memset(r->scratch, 0, (size_t)n * LANES * sizeof(*r->scratch));
	r->in = *in;
	r->out_w = out_w;
	return 0;
}

void resample_rows(struct resample *r, unsigned y, unsigned n_rows, float *out)
{
	unsigned n = r->x.end - r->x.begin;
	float *tmp = r->scratch, *row = r->scratch + (size_t)n * LANES;

	for (unsigned l = 0; l < n_rows; l++) {
		down(&r->y, y + l, r->in.pixels + r->x.begin, r->in.stride, n,
		     row);
		turn(row, n, tmp + l);
	}
	across(&r->x, r->out_w, tmp, n_rows, r->out_w, out);
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

/* --- random crops -------------------------------------------------------- */

enum { TRIES = 10 };

static double uniform(struct rng *rng, double low, double high)
{
	return low + (high - low) * rng_double(rng);
}

/* The largest centred rectangle with a permitted ratio. */
static struct crop crop_centre(unsigned w, unsigned h)
{
	struct crop c = { .width = w, .height = h };

	if (w * 4.0 < h * 3.0)
		c.height = (unsigned)lround(w / .75);
	else if (w * 3.0 > h * 4.0)
		c.width = (unsigned)lround(h * (4.0 / 3.0));
	c.x = (w - c.width) / 2;
	c.y = (h - c.height) / 2;
	return c;
}

struct crop crop_random(struct rng *rng, unsigned w, unsigned h, double least)
{
	const double log_ratio = log(4.0 / 3.0);

	for (int i = 0; i < TRIES; i++) {
		double area = (double)w * h * uniform(rng, least, 1);
		double ratio = exp(uniform(rng, -log_ratio, log_ratio));
		double cw = rint(sqrt(area * ratio));
		double ch = rint(sqrt(area / ratio));

		if (cw < 1 || ch < 1 || cw > w || ch > h)
			continue;

		struct crop c = { .width = (unsigned)cw,
				  .height = (unsigned)ch };

		c.y = (unsigned)rng_below(rng, h - c.height + 1);
		c.x = (unsigned)rng_below(rng, w - c.width + 1);
		return c;
	}
	return crop_centre(w, h);
}

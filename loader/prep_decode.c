/* SPDX-License-Identifier: MIT */
/*
 * The CPU stage of image classification: decode a JPEG, cut a random
 * rectangle out of it, resize that to 224 x 224, mirror every other one,
 * normalise. The semantics are those of torchvision's RandomResizedCrop
 * (scale 0.08..1, ratio 3/4..4/3, antialiased bilinear),
 * RandomHorizontalFlip, ToTensor and Normalize in a row; the order of the
 * work is another one:
 *
 *	header -> choose the rectangle -> decode at 1, 1/2, 1/4 or 1/8 of the
 *	size, the least that leaves it 224 pixels -> resample only it, luma and
 *	chroma apart -> colours, normalisation
 *
 * Decoding at a fraction averages 2, 4 or 8 pixels in the DCT domain, which
 * the resampling would have done after it. So results are not those of
 * torchvision bit by bit, but the picture is the same.
 */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/util.h"
#include "loader/planes.h"
#include "loader/prep.h"
#include "loader/resample.h"

enum { SIDE = 224, PIXELS = SIDE * SIDE, TRIES = 10 };

struct decode {
	struct planes planes;
	struct resample resample;
	float *plane[3]; /* resampled, PIXELS each */
};

struct crop {
	unsigned x, y, width, height;
};

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

static struct crop crop_random(struct rng *rng, unsigned w, unsigned h)
{
	const double log_ratio = log(4.0 / 3.0);

	for (int i = 0; i < TRIES; i++) {
		double area = (double)w * h * uniform(rng, .08, 1);
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

/* Resample the rectangle out of each plane; `scale`: plane over image. */
static int resample_crop(struct decode *d, const struct crop *c, double scale,
			 bool mirror)
{
	double chroma_x, chroma_y;
	int r = 0;

	planes_chroma_scale(&d->planes, &chroma_x, &chroma_y);
	for (unsigned i = 0; r == 0 && i < d->planes.n; i++) {
		const struct plane *p = &d->planes.plane[i];
		double sx = i ? scale / chroma_x : scale;
		double sy = i ? scale / chroma_y : scale;
		struct resample_input in = { p->pixels, p->stride, p->width,
					     p->height };
		struct resample_box box = { c->x * sx, c->y * sy, c->width * sx,
					    c->height * sy };

		r = resample_plane(&d->resample, &in, &box, mirror, SIDE, SIDE,
				   d->plane[i]);
	}
	return r;
}

/* Mean and deviation of ImageNet's channels, of 0..1.
 * Source: torchvision's documentation of its pre-trained models. */
struct normal {
	float factor, offset; /* of values 0..255 */
};

static const struct normal normal[3] = {
	{ 1 / (.229f * 255), -.485f / .229f },
	{ 1 / (.224f * 255), -.456f / .224f },
	{ 1 / (.225f * 255), -.406f / .225f },
};

static float clamp(float v)
{
	v = v < 0 ? 0 : v;
	return v > 255 ? 255 : v;
}

/* JFIF's colours: ITU-R BT.601, full range. */
static void normalise_ycc(const float *restrict luma, const float *restrict cb,
			  const float *restrict cr, float *restrict out)
{
	float *restrict red = out;
	float *restrict green = out + PIXELS;
	float *restrict blue = out + 2 * PIXELS;

	for (unsigned i = 0; i < PIXELS; i++) {
		float y = luma[i], b = cb[i] - 128, r = cr[i] - 128;

		red[i] = clamp(y + 1.402f * r) * normal[0].factor +
			 normal[0].offset;
		green[i] = clamp(y - .344136f * b - .714136f * r) *
				   normal[1].factor +
			   normal[1].offset;
		blue[i] = clamp(y + 1.772f * b) * normal[2].factor +
			  normal[2].offset;
	}
}

static void normalise_rgb(const float *restrict in, const struct normal *n,
			  float *restrict out)
{
	for (unsigned i = 0; i < PIXELS; i++)
		out[i] = in[i] * n->factor + n->offset;
}

static void normalise(const struct decode *d, float *out)
{
	if (d->planes.n == 3 && !d->planes.is_rgb) {
		normalise_ycc(d->plane[0], d->plane[1], d->plane[2], out);
		return;
	}
	for (unsigned i = 0; i < 3; i++)
		normalise_rgb(d->plane[d->planes.n == 1 ? 0 : i], &normal[i],
			      out + (size_t)i * PIXELS);
}

static int decode_init(void *state, struct err *err)
{
	struct decode *d = state;
	bool failed = planes_init(&d->planes) < 0;

	for (unsigned i = 0; i < 3; i++) {
		d->plane[i] = aligned_alloc(64, PIXELS * sizeof(float));
		failed |= !d->plane[i];
	}
	return failed ? err_set(err, -ENOMEM, "prep decode: out of memory") : 0;
}

static void decode_fini(void *state)
{
	struct decode *d = state;

	planes_fini(&d->planes);
	resample_fini(&d->resample);
	for (unsigned i = 0; i < 3; i++) {
		free(d->plane[i]);
		d->plane[i] = NULL;
	}
}

static size_t decode_sample_bytes(const void *state)
{
	(void)state;
	return 3 * PIXELS * sizeof(float);
}

static int decode_image(struct decode *d, const void *raw, size_t n,
			struct rng *rng, float *out)
{
	struct planes *p = &d->planes;
	unsigned eighths;
	struct crop crop;
	bool mirror;
	int r;

	r = planes_header(p, raw, n);
	if (r < 0)
		return r;
	crop = crop_random(rng, p->width, p->height);
	mirror = rng_below(rng, 2);
	eighths = planes_eighths(crop.width, crop.height, SIDE);
	r = planes_decode(p, raw, n, eighths);
	if (r == 0)
		r = resample_crop(d, &crop, (double)eighths / PLANES_EIGHTHS,
				  mirror);
	if (r == 0)
		normalise(d, out);
	return r;
}

static int decode_run(void *state, const void *raw, size_t n, struct rng *rng,
		      void *out)
{
	int r = decode_image(state, raw, n, rng, out);

	if (r < 0)
		memset(out, 0, decode_sample_bytes(state));
	return r;
}

const struct prep_ops prep_decode = {
	.plugin = { .name = "decode",
		    .summary = "JPEG to a random 224x224 crop, normalised",
		    .state_size = sizeof(struct decode) },
	.init = decode_init,
	.fini = decode_fini,
	.sample_bytes = decode_sample_bytes,
	.run = decode_run,
};

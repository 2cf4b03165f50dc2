/* SPDX-License-Identifier: MIT */
/*
 * The transforms of image classification: decode an image, crop a random
 * rectangle, resize it to a square, flip it with probability 1/2, normalise.
 * The semantics are those of torchvision's RandomResizedCrop (scale `crop`..1,
 * ratio 3/4..4/3, antialiased bilinear), RandomHorizontalFlip, ToTensor and
 * Normalize in a row. The order of the work differs:
 *
 *	header -> choose the rectangle -> decode at 1, 1/2, 1/4 or 1/8 of the
 *	size, the least that leaves it enough pixels -> resample only it, luma
 *	and chroma apart -> colours, normalisation, 16 rows at a time
 *
 * Decoding at a fraction averages 2, 4 or 8 pixels in the DCT domain, which the
 * resampling would otherwise do later. So results differ from torchvision's in
 * their bits, but the picture is the same: docs/preprocessing.md.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/conf/conf.h"
#include "common/util.h"
#include "loader/prep/planes.h"
#include "loader/prep/prep.h"
#include "loader/prep/resample.h"
#include "loader/prep/wider.h"

struct options {
	double crop;
};

static const struct conf_field fields[] = {
	{ CONF_KEY(crop, CONF_DOUBLE, struct options), .min = 0.001, .max = 1,
	  .arg = "0..1", .help = "smallest share of the image area in a crop" },
	{ 0 },
};

/* Source: torchvision's RandomResizedCrop */
static const struct options defaults = { .crop = 0.08 };

struct decode {
	const struct prep_config *c;
	double crop;
	struct planes planes;
	struct resample resample[3]; /* by plane */
	/* RESAMPLE_ROWS rows of each plane: small enough to stay in the inner
	 * caches until they are normalised */
	float *strip[3];
};

/* Prepare the resampling of the rectangle in each plane. */
static int begin_crop(struct decode *d, const struct crop *c, bool mirror)
{
	const unsigned side = d->c->side;
	int r = 0;

	for (unsigned i = 0; r == 0 && i < d->planes.n; i++) {
		const struct plane *p = &d->planes.plane[i];
		struct resample_input in = { p->pixels, p->stride, p->width,
					     p->height };
		struct resample_box box = { c->x * p->scale_x,
					    c->y * p->scale_y,
					    c->width * p->scale_x,
					    c->height * p->scale_y };

		r = resample_begin(&d->resample[i], &in, &box, mirror, side,
				   side);
	}
	return r;
}

/* Mean and deviation of ImageNet's channels, of 0..1.
 * Source: torchvision's documentation of its pre-trained models. */
struct normal {
	float factor, offset; /* for values 0..255 */
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

/* JFIF's colour conversion, in place: ITU-R BT.601, full range. */
WIDER static void to_rgb(float *restrict luma, float *restrict cb,
			 float *restrict cr, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		float y = luma[i], b = cb[i] - 128, r = cr[i] - 128;

		luma[i] = clamp(y + 1.402f * r);
		cb[i] = clamp(y - .344136f * b - .714136f * r);
		cr[i] = clamp(y + 1.772f * b);
	}
}

WIDER static void normalise(const float *restrict in, size_t n,
			    const struct normal *by, float *restrict out)
{
	const float factor = by->factor, offset = by->offset;

	for (size_t i = 0; i < n; i++)
		out[i] = in[i] * factor + offset;
}

WIDER static void normalise_pixels(const uint8_t *restrict in, size_t n,
				   const struct normal *by, float *restrict out)
{
	const float factor = by->factor, offset = by->offset;

	for (size_t i = 0; i < n; i++)
		out[i] = (float)in[i] * factor + offset;
}

WIDER static void round_off(const float *restrict in, size_t n,
			    uint8_t *restrict out)
{
	for (size_t i = 0; i < n; i++)
		out[i] = (uint8_t)(in[i] + .5f);
}

/* One channel after the other, the layout of PyTorch's tensors. */
static void put_out(const struct decode *d, size_t at, size_t n, void *out)
{
	const size_t pixels = (size_t)d->c->side * d->c->side;
	const bool grey = d->planes.n == 1;

	if (!grey && !d->planes.is_rgb)
		to_rgb(d->strip[0], d->strip[1], d->strip[2], n);
	for (unsigned i = 0; i < 3; i++) {
		const float *in = d->strip[grey ? 0 : i];

		if (d->c->output == PREP_FP32)
			normalise(in, n, &normal[i],
				  (float *)out + i * pixels + at);
		else
			round_off(in, n, (uint8_t *)out + i * pixels + at);
	}
}

static void resample_all(struct decode *d, void *out)
{
	const unsigned side = d->c->side;

	for (unsigned y = 0; y < side; y += RESAMPLE_ROWS) {
		unsigned n = MIN(RESAMPLE_ROWS, side - y);

		for (unsigned i = 0; i < d->planes.n; i++)
			resample_rows(&d->resample[i], y, n, d->strip[i]);
		put_out(d, (size_t)y * side, (size_t)n * side, out);
	}
}

static int decode_init(void *state, const struct prep_config *c,
		       struct err *err)
{
	size_t strip = (size_t)RESAMPLE_ROWS * c->side * sizeof(float);
	const struct options *o = c->options ? c->options : &defaults;
	struct decode *d = state;
	bool failed = false;

	d->c = c;
	d->crop = o->crop;
	for (unsigned i = 0; i < 3; i++) {
		d->strip[i] = util_aligned_alloc(64, strip);
		failed |= !d->strip[i];
	}
	return failed ? err_set(err, -ENOMEM, "prep decode: out of memory") : 0;
}

static void decode_fini(void *state)
{
	struct decode *d = state;

	planes_fini(&d->planes);
	for (unsigned i = 0; i < 3; i++) {
		resample_fini(&d->resample[i]);
		free(d->strip[i]);
		d->strip[i] = NULL;
	}
}

static size_t decode_sample_bytes(const void *state)
{
	const struct decode *d = state;

	return prep_image_bytes(d->c->side, d->c->output);
}

static int decode_image(struct decode *d, const void *raw, size_t n,
			struct rng *rng, void *out)
{
	struct planes *p = &d->planes;
	struct crop crop;
	bool mirror;
	int r;

	r = planes_header(p, raw, n);
	if (r < 0)
		return r;
	crop = crop_random(rng, p->width, p->height, d->crop);
	mirror = rng_below(rng, 2);
	r = planes_decode(p,
			  planes_eighths(crop.width, crop.height, d->c->side),
			  crop.y, crop.y + crop.height);
	if (r == 0)
		r = begin_crop(d, &crop, mirror);
	if (r == 0)
		resample_all(d, out);
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

static bool pixel_bytes(const struct prep_config *c, size_t *ret)
{
	*ret = prep_image_bytes(c->side, PREP_UINT8);
	return c->output == PREP_FP32;
}

static int normalise_image(const void *state, const void *in, size_t n,
			   void *out)
{
	const struct decode *d = state;
	const size_t pixels = (size_t)d->c->side * d->c->side;

	if (n != 3 * pixels) {
		memset(out, 0, decode_sample_bytes(state));
		return -EBADMSG;
	}
	for (unsigned i = 0; i < 3; i++)
		normalise_pixels((const uint8_t *)in + i * pixels, pixels,
				 &normal[i], (float *)out + i * pixels);
	return 0;
}

static const struct prep_last last = {
	.name = "normalisation to fp32",
	.option = "prep_output",
	.value = "uint8",
	.bytes = pixel_bytes,
	.run = normalise_image,
};

const struct prep_ops prep_decode = {
	.plugin = { .name = "decode",
		    .summary =
			    "JPEG or PNG to a random crop, resized, mirrored, "
			    "normalised",
		    .state_size = sizeof(struct decode),
		    PLUGIN_OPTIONS(fields, defaults) },
	.init = decode_init,
	.fini = decode_fini,
	.sample_bytes = decode_sample_bytes,
	.run = decode_run,
	.last = &last,
};

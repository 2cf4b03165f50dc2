/* SPDX-License-Identifier: MIT */
/*
 * What makes a picture cost a JPEG coder as much as a photograph does?
 * Natural images have edges of every size and a spectrum that falls as 1/f:
 * each octave of detail has the same contrast. Both come from the "dead
 * leaves" model, opaque objects of all sizes in front of each other, the
 * number of radius r falling as r^-3 (Lee, Mumford and Huang, "Occlusion
 * Models for Natural Images", IJCV 2001). Here each leaf has a colour, a
 * shading, an outline that is more or less smooth, focus, and a surface: a
 * patch of 1/f noise of its own strength. Noise as a sensor's is added last.
 *
 *	fields:	coarse lattice -> twice as fine, plus new noise -> ... -> pixels
 *		(surface: down to the pixel; outline: without the last octaves)
 *	canvas:	background, leaves in any order of size, noise, 8 bits
 *
 * All is done on Y, Cb and Cr with chroma at half the resolution, which is
 * what the coder takes (4:2:0): nothing is converted.
 */
#include "emu/image/image_piece.h"

#include <errno.h>
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <turbojpeg.h>

#include "common/util.h"

/* arbitrary: from most of an ImageNet picture down to a few pixels */
static const double LARGEST = 300, SMALLEST = 5;
/* arbitrary: how often a point is painted over, on average */
static const double COVER = 2.5;
/* Octaves that outlines lack: theirs are lines, not dust. */
enum { SMOOTH_OCTAVES = 3 };

struct canvas {
	unsigned width, height;
	float *pixels;
};

/* A float field of unit deviation, 1/f. */
struct field {
	unsigned width, height;
	float *v;
};

struct leaf {
	double x, y;	       /* centre */
	double a, b;	       /* half axes */
	double cos, sin;       /* of the rotation */
	double level[3];       /* Y, Cb, Cr at the centre */
	double gx, gy;	       /* shading of Y, levels per pixel */
	double grain;	       /* strength of the surface, levels */
	double soft;	       /* width of the edge, pixels */
	double wobble;	       /* roughness of the outline, of the radius */
	bool box;	       /* a rectangle, not an ellipse */
	unsigned off_x, off_y; /* of its patch in the field */
};

static double between(struct rng *r, double low, double high)
{
	return low + (high - low) * rng_double(r);
}

/* Four values in -1..1 from one draw. */
static void four(struct rng *r, float v[4])
{
	uint64_t bits = rng_u64(r);

	for (int i = 0; i < 4; i++, bits >>= 16)
		v[i] = (float)(int16_t)(bits & 0xffff) * (1 / 32768.f);
}

static void add_noise(float *v, size_t n, float amplitude, struct rng *rng)
{
	float draw[4];

	for (size_t i = 0; i < n; i++) {
		if (i % 4 == 0)
			four(rng, draw);
		v[i] += amplitude * draw[i % 4];
	}
}

/* Twice as fine, by quadratic B-splines: weights 1/4 and 3/4. */
static void refine(const float *in, unsigned in_w, float *out, unsigned w,
		   unsigned h, float *row)
{
	for (unsigned y = 0; y < h; y++) {
		const float *near = in + (size_t)(y / 2 + 1) * in_w;
		const float *far = y & 1 ? near + in_w : near - in_w;

		for (unsigned x = 0; x < in_w; x++)
			row[x] = .75f * near[x] + .25f * far[x];
		for (unsigned x = 0; x < w; x++)
			out[(size_t)y * w + x] =
				.75f * row[x / 2 + 1] +
				.25f * row[x / 2 + (x & 1 ? 2 : 0)];
	}
}

static void unit_deviation(struct field *f)
{
	size_t n = (size_t)f->width * f->height;
	float *v = f->v;
	double sum = 0, squares = 0;

	for (size_t i = 0; i < n; i++) {
		sum += v[i];
		squares += (double)v[i] * v[i];
	}

	float mean = (float)(sum / (double)n);
	float factor = (float)(1 / sqrt(squares / (double)n -
					(double)mean * mean + 1e-12));

	for (size_t i = 0; i < n; i++)
		v[i] = (v[i] - mean) * factor;
}

/* A lattice that refines to w pixels, with one more at either side. */
static unsigned coarser(unsigned w)
{
	return (w + 1) / 2 + 2;
}

static int field_fill(struct field *f, unsigned w, unsigned h, int n_smooth,
		      struct rng *rng)
{
	_cleanup_free_ float *coarse = NULL, *row = NULL;
	struct field half = { 0 };
	size_t n = (size_t)w * h;
	int r;

	*f = (struct field){ w, h, calloc(n, sizeof(float)) };
	if (!f->v)
		return -ENOMEM;
	if (w > 8 || h > 8) {
		r = field_fill(&half, coarser(w), coarser(h), n_smooth - 1,
			       rng);
		coarse = half.v;
		row = calloc(coarser(w), sizeof(*row));
		if (r < 0 || !row)
			return -ENOMEM;
		refine(coarse, half.width, f->v, w, h, row);
	}
	if (n_smooth <= 0)
		add_noise(f->v, n, 1, rng);
	return 0;
}

struct fields {
	struct field surface, outline;
};

static unsigned mirrored(unsigned i, unsigned n)
{
	i %= 2 * n;
	return i < n ? i : 2 * n - 1 - i;
}

/* Leaf in the plane's pixels: `step` is 1 for Y, 2 for chroma. */
static void leaf_paint(const struct leaf *l, const struct fields *fields,
		       int channel, unsigned step, struct canvas *c)
{
	double corner = l->box ? hypot(l->a, l->b) : MAX(l->a, l->b);
	/* outlines stray by 3 deviations; beyond, little is lost */
	double reach = corner * (1 + 3 * l->wobble) + l->soft;
	unsigned x0 = (unsigned)MAX((l->x - reach) / step, 0);
	unsigned y0 = (unsigned)MAX((l->y - reach) / step, 0);
	unsigned x1 = (unsigned)MIN((l->x + reach) / step + 1, c->width);
	unsigned y1 = (unsigned)MIN((l->y + reach) / step + 1, c->height);
	float size = (float)MIN(l->a, l->b), soft = (float)(1 / l->soft);
	float grain = (float)(channel ? l->grain * .08 : l->grain);
	float gx = channel ? 0 : (float)l->gx, gy = channel ? 0 : (float)l->gy;
	float wobble = (float)l->wobble;
	const struct field *f = &fields->surface;

	for (unsigned y = y0; y < y1; y++) {
		float dy = (float)(y * step - l->y);
		float *out = c->pixels + (size_t)y * c->width;
		const float *outline =
			fields->outline.v + (size_t)(y * step) * f->width;
		const float *patch =
			f->v +
			(size_t)mirrored(y * step + l->off_y, f->height) *
				f->width;

		for (unsigned x = x0; x < x1; x++) {
			float dx = (float)(x * step - l->x);
			float u = (float)((dx * l->cos + dy * l->sin) / l->a);
			float v = (float)((dy * l->cos - dx * l->sin) / l->b);
			float d = l->box ? MAX(fabsf(u), fabsf(v))
					 : sqrtf(u * u + v * v);
			unsigned at = x * step + l->off_x;
			float alpha;

			d += wobble * outline[x * step] - 1;
			alpha = .5f - d * size * soft;
			if (alpha <= 0)
				continue;
			at = at >= f->width ? 2 * f->width - 1 - at : at;

			float value = (float)l->level[channel] + gx * dx +
				      gy * dy + grain * patch[at];

			alpha = MIN(alpha, 1);
			out[x] += alpha * (value - out[x]);
		}
	}
}

/* What the leaves of one picture have in common. */
struct scene {
	double level[3];  /* Y, Cb, Cr they scatter around */
	double spread[3]; /* deviation */
	double grain;	  /* typical strength of a surface, levels */
	double sensor;	  /* noise over all, levels */
};

static struct scene scene_new(struct rng *rng)
{
	struct scene s = {
		.level = { between(rng, 85, 150), between(rng, 112, 138),
			   between(rng, 118, 144) },
		.spread = { between(rng, 30, 48), between(rng, 6, 16),
			    between(rng, 6, 16) },
		.grain = between(rng, 5, 16),
		.sensor = between(rng, 2, 7),
	};
	return s;
}

static struct leaf leaf_new(const struct scene *s, double radius, unsigned w,
			    unsigned h, struct rng *rng)
{
	double angle = between(rng, 0, M_PI), ratio = between(rng, .45, 1);
	struct leaf l = {
		.x = between(rng, 0, w),
		.y = between(rng, 0, h),
		.a = radius,
		.b = radius * ratio,
		.cos = cos(angle),
		.sin = sin(angle),
		.gx = between(rng, -25, 25) / radius,
		.gy = between(rng, -25, 25) / radius,
		/* few are rough, many smooth; never quite flat */
		.grain = s->grain * exp(.8 * rng_normal(rng)),
		.soft = exp(between(rng, log(.8), log(6))),
		.wobble = exp(between(rng, log(.01), log(.35))),
		.box = rng_below(rng, 4) == 0,
		.off_x = (unsigned)rng_below(rng, w),
		.off_y = (unsigned)rng_below(rng, h),
	};

	/* things far away or small differ less from what is around them */
	double spread = .35 + .65 * MIN(1, radius / 120);

	l.grain = MIN(l.grain, 45);
	l.soft = MIN(l.soft, radius);
	for (int i = 0; i < 3; i++)
		l.level[i] =
			s->level[i] + spread * s->spread[i] * rng_normal(rng);
	return l;
}

/* The background is a leaf too, one that is everywhere. */
static struct leaf leaf_background(const struct scene *s, unsigned w,
				   unsigned h, struct rng *rng)
{
	struct leaf l = leaf_new(s, w + h, w, h, rng);

	l.x = w / 2.0;
	l.y = h / 2.0;
	l.b = l.a;
	l.wobble = 0;
	return l;
}

static void paint(const struct leaf *l, const struct fields *f,
		  struct canvas canvas[3])
{
	for (int i = 0; i < 3; i++)
		leaf_paint(l, f, i, i ? 2 : 1, &canvas[i]);
}

static void paint_all(const struct scene *s, const struct fields *f,
		      struct canvas canvas[3], struct rng *rng)
{
	unsigned w = canvas[0].width, h = canvas[0].height;
	/* a larger picture is the same scene seen closer */
	double zoom = MAX(1, sqrt((double)w * h / 4e6));
	double ratio = SMALLEST / LARGEST, covered = 0;
	struct leaf l = leaf_background(s, w, h, rng);

	paint(&l, f, canvas);
	while (covered < COVER * w * h) {
		/* density r^-3 between the two, by its inverse */
		double u = rng_double(rng) * (1 - ratio * ratio);

		l = leaf_new(s, SMALLEST * zoom / sqrt(1 - u), w, h, rng);
		paint(&l, f, canvas);
		covered += M_PI * l.a * l.b;
	}
}

static void to_bytes(struct canvas *c, float noise, struct rng *rng,
		     uint8_t *out)
{
	size_t n = (size_t)c->width * c->height;

	add_noise(c->pixels, n, noise, rng);
	for (size_t i = 0; i < n; i++) {
		float v = c->pixels[i] + .5f;

		v = v < 0 ? 0 : v;
		out[i] = (uint8_t)(v > 255 ? 255 : v);
	}
}

/* Three planes of w x h, w/2 x h/2, w/2 x h/2. */
static int texture_alloc(struct image_texture *t, unsigned w, unsigned h)
{
	*t = (struct image_texture){ (w + 1) & ~1u, (h + 1) & ~1u, { NULL } };
	for (int i = 0; i < 3; i++) {
		unsigned step = i ? 2 : 1;

		t->plane[i] =
			malloc((size_t)(t->width / step) * (t->height / step));
		if (!t->plane[i]) {
			image_texture_fini(t);
			return -ENOMEM;
		}
	}
	return 0;
}

static int synthesise(struct image_texture *t, struct fields *f,
		      struct canvas canvas[3], struct rng *rng)
{
	struct scene s = scene_new(rng);

	if (field_fill(&f->surface, t->width, t->height, 0, rng) < 0 ||
	    field_fill(&f->outline, t->width, t->height, SMOOTH_OCTAVES, rng) <
		    0)
		return -ENOMEM;
	unit_deviation(&f->surface);
	unit_deviation(&f->outline);
	for (int i = 0; i < 3; i++) {
		struct canvas *c = &canvas[i];

		c->width = t->width / (i ? 2 : 1);
		c->height = t->height / (i ? 2 : 1);
		c->pixels = calloc((size_t)c->width * c->height,
				   sizeof(*c->pixels));
		if (!c->pixels)
			return -ENOMEM;
	}
	paint_all(&s, f, canvas, rng);
	for (int i = 0; i < 3; i++)
		to_bytes(&canvas[i], (float)(i ? s.sensor * .5 : s.sensor), rng,
			 t->plane[i]);
	return 0;
}

int image_texture_synthesise(unsigned width, unsigned height, struct rng *rng,
			     struct image_texture *ret)
{
	struct canvas canvas[3] = { 0 };
	struct fields f = { 0 };
	int r;

	r = texture_alloc(ret, width, height);
	if (r == 0)
		r = synthesise(ret, &f, canvas, rng);
	if (r < 0)
		image_texture_fini(ret);
	free(f.surface.v);
	free(f.outline.v);
	for (int i = 0; i < 3; i++)
		free(canvas[i].pixels);
	return r;
}

/* Of larger pictures the middle is taken: pieces stay in the cache. */
enum { LOAD_MOST = 2048 };

static int convert(tjhandle tj, const uint8_t *rgb, int w, int h,
		   struct image_texture *ret)
{
	int width = MIN(w, LOAD_MOST) & ~1, height = MIN(h, LOAD_MOST) & ~1;
	int strides[3] = { width, width / 2, width / 2 };
	const uint8_t *from = rgb + ((size_t)((h - height) / 2) * (size_t)w +
				     (size_t)((w - width) / 2)) *
					    3;

	if (width < 16 || height < 16)
		return -EBADMSG;
	if (texture_alloc(ret, (unsigned)width, (unsigned)height) < 0)
		return -ENOMEM;
	if (tjEncodeYUVPlanes(tj, from, width, 3 * w, height, TJPF_RGB,
			      ret->plane, strides, TJSAMP_420, 0) < 0) {
		image_texture_fini(ret);
		return -ENOMEM;
	}
	return 0;
}

int image_texture_decode(const uint8_t *bytes, size_t n,
			 struct image_texture *ret)
{
	tjhandle in = tjInitDecompress(), out = tjInitCompress();
	_cleanup_free_ uint8_t *rgb = NULL;
	int w, h, subsampling, colours, r = -EBADMSG;

	*ret = (struct image_texture){ 0 };
	if (in && out &&
	    tjDecompressHeader3(in, bytes, n, &w, &h, &subsampling, &colours) ==
		    0 &&
	    (uint64_t)w * (uint64_t)h <= IMAGE_MAX_PIXELS) {
		rgb = malloc((size_t)w * (size_t)h * 3);
		if (!rgb)
			r = -ENOMEM;
		else if (tjDecompress2(in, bytes, n, rgb, w, 0, h, TJPF_RGB,
				       0) == 0)
			r = convert(out, rgb, w, h, ret);
	}
	if (in)
		tjDestroy(in);
	if (out)
		tjDestroy(out);
	return r;
}

int image_texture_mirror(const struct image_texture *from, unsigned width,
			 unsigned height, struct image_texture *ret)
{
	int r = texture_alloc(ret, width, height);

	for (int i = 0; r == 0 && i < 3; i++) {
		unsigned step = i ? 2 : 1;
		unsigned w = ret->width / step, in_w = from->width / step;

		for (unsigned y = 0; y < ret->height / step; y++) {
			const uint8_t *in =
				from->plane[i] +
				(size_t)mirrored(y, from->height / step) * in_w;
			uint8_t *out = ret->plane[i] + (size_t)y * w;

			for (unsigned x = 0; x < w; x++)
				out[x] = in[mirrored(x, in_w)];
		}
	}
	return r;
}

void image_texture_fini(struct image_texture *t)
{
	for (int i = 0; i < 3; i++)
		free(t->plane[i]);
	*t = (struct image_texture){ 0 };
}

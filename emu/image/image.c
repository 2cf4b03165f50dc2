/* SPDX-License-Identifier: MIT */
/*
 * From a number of bytes to a picture of that size on disk:
 *
 *	bits per pixel  grow with the size, as they do in ImageNet, and scatter
 *	-> width, height, place in a texture
 *	-> quality      the highest, of the usual ones, that stays below
 *	-> width, height again, to be 2.5 % below by the texture's map of costs
 *	-> encode       when it came out 0 to 5 % below: done, else the map was
 *	                off by what is now known: width and height once more
 *	-> a comment fills the rest
 *
 * So quality moves in coarse steps and the dimensions do the fine ones; one
 * to two attempts suffice.
 */
#include "emu/image/image.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <turbojpeg.h>

#include "common/util.h"

enum {
	SIDE_LEAST = 8,
	SIDE_MOST = 65500, /* libjpeg's JPEG_MAX_DIMENSION */
	QUALITY_LEAST = 60,
	QUALITY_MOST = 96,
	ATTEMPTS = 60,
	HEADER_BYTES = 623, /* libjpeg's, of a colour image */
	AFTER_JFIF = 20,    /* SOI and APP0: where comments may stand */
	COMMENT_MOST = 2 + 65535,
};

static const double PADDING_MOST = .05, AIM = .975;

/*
 * arbitrary, but so that ImageNet's mean file of 110 KB has the 500 x 375
 * pixels that its pictures commonly have: 4.8 bits each. Smaller files are
 * both smaller and plainer pictures, down to thumbnails of about 1 bit;
 * larger ones are mainly larger pictures.
 */
static double bits_per_pixel(double n, struct rng *rng)
{
	double bits = 4.8 * pow(n / 110e3, .4) * exp(.2 * rng_normal(rng));

	return MIN(MAX(bits, .9), 6.5);
}

struct attempt {
	const struct image_piece *piece;
	struct image_rect rect;
	double place_x, place_y; /* 0..1 of the room there is */
	int quality;
	double error; /* bytes encoded over bytes expected */
};

int image_init(struct image *d, const struct image_pool *pool)
{
	*d = (struct image){ .pool = pool, .tj = tjInitCompress() };
	return d->tj ? 0 : -ENOMEM;
}

void image_fini(struct image *d)
{
	if (d->tj)
		tjDestroy(d->tj);
	free(d->jpeg);
	free(d->bytes);
	*d = (struct image){ 0 };
}

static unsigned even(double side, unsigned most)
{
	return (unsigned)MIN(MAX(side, SIDE_LEAST), most) & ~1u;
}

/* Both sides times `factor`, as far as the piece goes, at the same place. */
static void resize(struct attempt *a, double width, double height)
{
	const struct image_texture *t = &a->piece->texture;
	struct image_rect *r = &a->rect;

	r->width = even(rint(width / 2) * 2, t->width);
	r->height = even(rint(height / 2) * 2, t->height);
	r->x = (unsigned)(a->place_x * (t->width - r->width)) & ~1u;
	r->y = (unsigned)(a->place_y * (t->height - r->height)) & ~1u;
}

static double expected(const struct attempt *a)
{
	return a->error * image_piece_bytes(a->piece, &a->rect, a->quality);
}

static void choose_quality(struct attempt *a, double scan)
{
	a->quality = QUALITY_MOST;
	while (a->quality > QUALITY_LEAST && expected(a) > scan)
		a->quality--;
}

/* What a step in size changes is not quite proportional: three times. */
static void choose_sides(struct attempt *a, double scan)
{
	for (int i = 0; i < 3; i++) {
		double factor = sqrt(scan / expected(a));
		double w = a->rect.width * factor, h = a->rect.height * factor;

		resize(a, w, h);
	}
}

static int encode(struct image *d, const struct attempt *a, size_t *ret)
{
	const struct image_texture *t = &a->piece->texture;
	const struct image_rect *r = &a->rect;
	size_t chroma = (size_t)(r->y / 2) * (t->width / 2) + r->x / 2;
	const unsigned char *planes[3] = {
		t->plane[0] + (size_t)r->y * t->width + r->x,
		t->plane[1] + chroma, t->plane[2] + chroma
	};
	const int strides[3] = { (int)t->width, (int)t->width / 2,
				 (int)t->width / 2 };
	unsigned long n = tjBufSize((int)r->width, (int)r->height, TJSAMP_420);

	if (util_reserve_anew(&d->jpeg, &d->capacity, n, 1) < 0)
		return -ENOMEM;
	n = d->capacity;
	d->n_encodes++;
	if (tjCompressFromYUVPlanes(d->tj, planes, (int)r->width, strides,
				    (int)r->height, TJSAMP_420, &d->jpeg, &n,
				    a->quality, TJFLAG_NOREALLOC) < 0)
		return -ENOMEM;
	*ret = n;
	return 0;
}

/*
 * Encode until the image is 0 to 5 % below n. Where the sides are at their
 * limits (a tiny file, a piece too small) quality has to give way, below and
 * above its usual range.
 */
static int fit(struct image *d, struct attempt *a, size_t n, size_t *ret_jpeg)
{
	double scan = (double)n * AIM - HEADER_BYTES;
	size_t got = 0;
	int r;

	choose_quality(a, scan);
	for (int i = 0; i < ATTEMPTS; i++) {
		double off;

		choose_sides(a, scan);
		r = encode(d, a, &got);
		if (r < 0)
			return r;
		if (got <= n && (double)(n - got) <= PADDING_MOST * (double)n)
			break;
		off = MAX((double)got - HEADER_BYTES, 1) / expected(a);
		/* half a step once it swings to and fro */
		a->error *= i < 4 ? off : sqrt(off);
		if (i % 4 == 3)
			a->quality += got > n ? -1 : 1;
		a->quality = MIN(MAX(a->quality, 1), 100);
		/* another part of the texture, as good as any */
		if (i % 8 == 7)
			a->place_x = fmod(a->place_x + .381966, 1);
	}
	while (got > n && a->quality > 1) {
		a->quality = a->quality * 3 / 4;
		r = encode(d, a, &got);
		if (r < 0)
			return r;
	}
	*ret_jpeg = got;
	return got <= n ? 0 : -ERANGE;
}

/*
 * A comment is at least 4 bytes; up to 3 are fill bytes, which may stand
 * before any marker (ITU-T T.81, B.1.1.2).
 */
static uint8_t *add_padding(uint8_t *p, size_t n)
{
	while (n > 0) {
		size_t part = MIN(n, COMMENT_MOST);

		if (part < 4) {
			memset(p, 0xff, part);
			return p + part;
		}
		if (n - part > 0 && n - part < 4)
			part -= 4;
		p[0] = 0xff;
		p[1] = 0xfe;
		p[2] = (uint8_t)((part - 2) >> 8);
		p[3] = (uint8_t)(part - 2);
		memset(p + 4, ' ', part - 4);
		p += part;
		n -= part;
	}
	return p;
}

static int assemble(struct image *d, size_t n_jpeg, size_t n)
{
	size_t padding = n - n_jpeg;
	uint8_t *p;

	if (util_reserve_anew(&d->bytes, &d->bytes_capacity, n, 1) < 0)
		return -ENOMEM;
	memcpy(d->bytes, d->jpeg, AFTER_JFIF);
	p = add_padding(d->bytes + AFTER_JFIF, padding);
	memcpy(p, d->jpeg + AFTER_JFIF, n_jpeg - AFTER_JFIF);
	d->n = n;
	d->padding_bytes += padding;
	d->worst_padding = MAX(d->worst_padding, (double)padding / (double)n);
	return 0;
}

/* A piece of its own, for a picture larger than those of the pool. */
static int enlarge(const struct image *d, const struct image_piece *from,
		   double width, double height, struct rng *rng,
		   struct image_piece *ret)
{
	/* room for the sides to grow by a fifth */
	unsigned w = (unsigned)MAX(width * 1.2, from->texture.width);
	unsigned h = (unsigned)MAX(height * 1.2, from->texture.height);
	struct image_texture t;
	int r;

	w = MIN(w, SIDE_MOST);
	h = MIN(h, SIDE_MOST);
	r = d->pool->mirror ? image_texture_mirror(&from->texture, w, h, &t)
			    : image_texture_synthesise(w, h, rng, &t);
	return r < 0 ? r : image_piece_init(ret, &t);
}

int image_make(struct image *d, size_t n, struct rng *rng, struct err *err)
{
	/* the two shapes of film and sensors, mostly lying */
	double shape = rng_below(rng, 3) ? 4 / 3.0 : 3 / 2.0;
	double bits = bits_per_pixel((double)n, rng);
	double pixels = MAX(((double)n * AIM - HEADER_BYTES) * 8 / bits, 64);
	bool upright = rng_below(rng, 4) == 0;
	double width = sqrt(upright ? pixels / shape : pixels * shape);
	double height = pixels / width;
	struct image_piece own = { 0 };
	struct attempt a = {
		.piece = &d->pool->pieces[rng_below(rng, d->pool->n)],
		.place_x = rng_double(rng),
		.place_y = rng_double(rng),
		.error = 1,
	};
	size_t n_jpeg;
	int r = 0;

	if (width > a.piece->texture.width ||
	    height > a.piece->texture.height) {
		r = enlarge(d, a.piece, width, height, rng, &own);
		a.piece = &own;
	}
	if (r == 0) {
		resize(&a, width, height);
		r = fit(d, &a, n, &n_jpeg);
	}
	if (r == 0)
		r = assemble(d, n_jpeg, n);
	d->pixels = (uint64_t)a.rect.width * a.rect.height;
	image_piece_fini(&own);
	return r < 0 ? err_set(err, r, "a JPEG of %zu bytes: %s", n,
			       strerror(-r))
		     : 0;
}

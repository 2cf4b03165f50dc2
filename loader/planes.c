/* SPDX-License-Identifier: MIT */
#include "loader/planes.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <turbojpeg.h>

#include "common/util.h"

/*
 * LIMITSCANS: a progressive file of thousands of scans is an attack, not a
 * picture. The decoder's default (the exact) DCT is kept: it is as fast as
 * the quick one where there is SIMD code.
 */
enum { FLAGS = TJFLAG_LIMITSCANS };

int planes_init(struct planes *p)
{
	p->tj = tjInitDecompress();
	return p->tj ? 0 : -ENOMEM;
}

void planes_fini(struct planes *p)
{
	if (p->tj)
		tjDestroy(p->tj);
	free(p->memory);
	*p = (struct planes){ 0 };
}

/*
 * After an error in a header libjpeg-turbo 2.1.5 keeps the marker it was
 * reading, and takes it for the first of the next image: tests/unit/test_prep
 * found good images refused after a truncated one. So a decoder that failed
 * is not used again.
 */
static int broken(struct planes *p)
{
	tjDestroy(p->tj);
	p->tj = NULL;
	return -EBADMSG;
}

int planes_header(struct planes *p, const void *raw, size_t n)
{
	int w, h;

	if (!p->tj && planes_init(p) < 0)
		return -ENOMEM;
	if (tjDecompressHeader3(p->tj, raw, n, &w, &h, &p->subsampling,
				&p->colour_space) < 0)
		return broken(p);
	if (w < 1 || h < 1 || p->subsampling < 0 ||
	    (uint64_t)w * (uint64_t)h > PLANES_MAX_PIXELS)
		return -EBADMSG;
	p->width = (unsigned)w;
	p->height = (unsigned)h;
	return 0;
}

unsigned planes_eighths(unsigned w, unsigned h, unsigned least)
{
	/* libjpeg-turbo 2.1 has SIMD code for these; the others (3/8, 5/8,
	 * 6/8, 7/8) are plain C and slower than decoding the whole */
	static const unsigned fast[] = { 1, 2, 4 };

	for (size_t i = 0; i < ARRAY_SIZE(fast); i++)
		if (w * fast[i] >= least * PLANES_EIGHTHS &&
		    h * fast[i] >= least * PLANES_EIGHTHS)
			return fast[i];
	return PLANES_EIGHTHS;
}

static int reserve(struct planes *p, size_t n)
{
	if (n <= p->capacity)
		return 0;
	free(p->memory);
	p->capacity = 0;
	p->memory = malloc(n);
	if (!p->memory)
		return -ENOMEM;
	p->capacity = n;
	return 0;
}

/* The planes one behind the other, each row at a multiple of 32 bytes. */
static int lay_out(struct planes *p, int w, int h, int subsampling)
{
	size_t at[3], n = 0;
	int r;

	for (unsigned i = 0; i < p->n; i++) {
		struct plane *c = &p->plane[i];

		c->width = (unsigned)tjPlaneWidth((int)i, w, subsampling);
		c->height = (unsigned)tjPlaneHeight((int)i, h, subsampling);
		c->stride = (c->width + 31u) & ~31u;
		at[i] = n;
		n += c->stride * c->height;
	}
	r = reserve(p, n);
	for (unsigned i = 0; r == 0 && i < p->n; i++)
		p->plane[i].pixels = p->memory + at[i];
	return r;
}

static int decode_yuv(struct planes *p, const void *raw, size_t n, int w, int h)
{
	unsigned char *at[3] = { 0 };
	int stride[3] = { 0 };
	int r;

	p->is_rgb = false;
	p->n = p->subsampling == TJSAMP_GRAY ? 1 : 3;
	r = lay_out(p, w, h, p->subsampling);
	if (r < 0)
		return r;
	for (unsigned i = 0; i < p->n; i++) {
		at[i] = p->plane[i].pixels;
		stride[i] = (int)p->plane[i].stride;
	}
	r = tjDecompressToYUVPlanes(p->tj, raw, n, at, w, stride, h, FLAGS);
	return r < 0 ? broken(p) : 0;
}

/*
 * By Adobe's custom, which every viewer follows, CMYK and YCCK files store
 * their inks inverted: 255 is none. What two inks let through together is the
 * product of what each does.
 */
static void split(struct planes *p, const uint8_t *packed, unsigned n_channels)
{
	const struct plane *c = p->plane;

	for (unsigned y = 0; y < c->height; y++) {
		size_t row = y * c->stride;

		for (unsigned x = 0; x < c->width; x++, packed += n_channels) {
			unsigned k = n_channels == 4 ? packed[3] : 255;

			for (int i = 0; i < 3; i++)
				c[i].pixels[row + x] =
					(uint8_t)((packed[i] * k + 127) / 255);
		}
	}
}

/* What is not stored as Y Cb Cr comes packed, and is taken apart here. */
static int decode_packed(struct planes *p, const void *raw, size_t n, int w,
			 int h)
{
	bool cmyk = p->colour_space == TJCS_CMYK ||
		    p->colour_space == TJCS_YCCK;
	int format = cmyk ? TJPF_CMYK : TJPF_RGB;
	unsigned n_channels = cmyk ? 4 : 3;
	_cleanup_free_ uint8_t *packed =
		malloc((size_t)w * (size_t)h * n_channels);
	int r;

	p->is_rgb = true;
	p->n = 3;
	r = lay_out(p, w, h, TJSAMP_444);
	if (!packed || r < 0)
		return -ENOMEM;
	if (tjDecompress2(p->tj, raw, n, packed, w, 0, h, format, FLAGS) < 0)
		return broken(p);
	split(p, packed, n_channels);
	return 0;
}

int planes_decode(struct planes *p, const void *raw, size_t n, unsigned eighths)
{
	const tjscalingfactor scale = { (int)eighths, PLANES_EIGHTHS };
	int w = TJSCALED((int)p->width, scale);
	int h = TJSCALED((int)p->height, scale);

	if (p->colour_space == TJCS_YCbCr || p->colour_space == TJCS_GRAY)
		return decode_yuv(p, raw, n, w, h);
	return decode_packed(p, raw, n, w, h);
}

void planes_chroma_scale(const struct planes *p, double *ret_x, double *ret_y)
{
	bool chroma = p->n == 3 && !p->is_rgb;

	*ret_x = chroma ? tjMCUWidth[p->subsampling] / 8.0 : 1;
	*ret_y = chroma ? tjMCUHeight[p->subsampling] / 8.0 : 1;
}

/* SPDX-License-Identifier: MIT */
#include "emu/image/image_piece.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <turbojpeg.h>

#include "common/util.h"

/* Qualities at which costs are measured; between them they are interpolated */
static const double measured[IMAGE_QUALITIES] = { 40, 70, 88, 97 };

enum { MARKER_SOS = 0xda, MARKER_COM = 0xfe, MARKER_FILL = 0xff };

/*
 * Walk the header's segments: calls for each and returns where the scan
 * begins. `padding`, when not NULL, gathers comments and fill bytes.
 */
static size_t walk(const uint8_t *p, size_t n, size_t *padding)
{
	size_t i = 2;

	while (i + 4 <= n && p[i] == 0xff) {
		size_t size;

		if (p[i + 1] == MARKER_FILL) {
			i++;
			if (padding)
				++*padding;
			continue;
		}
		size = 2 + ((size_t)p[i + 2] << 8 | p[i + 3]);
		if (padding && p[i + 1] == MARKER_COM)
			*padding += size;
		if (p[i + 1] == MARKER_SOS)
			return MIN(i + size, n);
		i += size;
	}
	return n;
}

/* Where the scan of a JPEG begins, or n when it has none. */
static size_t image_jpeg_scan(const uint8_t *jpeg, size_t n)
{
	return walk(jpeg, n, NULL);
}

size_t image_jpeg_padding(const uint8_t *jpeg, size_t n)
{
	size_t padding = 0;

	walk(jpeg, n, &padding);
	return padding;
}

struct probe {
	tjhandle tj;
	unsigned char *jpeg;
	unsigned long capacity;
};

/* Bytes of one tile's scan; tiles at the edges may be smaller. */
static double tile_bytes(struct probe *probe, const struct image_texture *t,
			 unsigned x, unsigned y, int quality)
{
	unsigned w = MIN(IMAGE_TILE, t->width - x);
	unsigned h = MIN(IMAGE_TILE, t->height - y);
	size_t chroma = (size_t)(y / 2) * (t->width / 2) + x / 2;
	const unsigned char *planes[3] = { t->plane[0] + (size_t)y * t->width +
						   x,
					   t->plane[1] + chroma,
					   t->plane[2] + chroma };
	const int strides[3] = { (int)t->width, (int)t->width / 2,
				 (int)t->width / 2 };
	unsigned long n = probe->capacity;

	if (tjCompressFromYUVPlanes(probe->tj, planes, (int)w, strides, (int)h,
				    TJSAMP_420, &probe->jpeg, &n, quality,
				    TJFLAG_NOREALLOC) < 0)
		return -1;
	return (double)(n - image_jpeg_scan(probe->jpeg, n));
}

static int measure(struct image_piece *p, unsigned q, struct probe *probe)
{
	unsigned w = p->tiles_x + 1;
	double *sum = calloc((size_t)w * (p->tiles_y + 1), sizeof(*sum));

	p->sum[q] = sum;
	if (!sum)
		return -ENOMEM;
	for (unsigned y = 1; y <= p->tiles_y; y++) {
		double row = 0;

		for (unsigned x = 1; x <= p->tiles_x; x++) {
			double v = tile_bytes(probe, &p->texture,
					      (x - 1) * IMAGE_TILE,
					      (y - 1) * IMAGE_TILE,
					      (int)measured[q]);

			if (v < 0)
				return -ENOMEM;
			row += v;
			sum[(size_t)y * w + x] =
				sum[(size_t)(y - 1) * w + x] + row;
		}
	}
	return 0;
}

int image_piece_init(struct image_piece *p, struct image_texture *texture)
{
	struct probe probe = { .tj = tjInitCompress() };
	int r = 0;

	*p = (struct image_piece){
		.texture = *texture,
		.tiles_x = (texture->width + IMAGE_TILE - 1) / IMAGE_TILE,
		.tiles_y = (texture->height + IMAGE_TILE - 1) / IMAGE_TILE,
	};
	*texture = (struct image_texture){ 0 };
	probe.capacity = tjBufSize(IMAGE_TILE, IMAGE_TILE, TJSAMP_420);
	probe.jpeg = malloc(probe.capacity);
	if (!probe.tj || !probe.jpeg)
		r = -ENOMEM;
	for (unsigned q = 0; r == 0 && q < IMAGE_QUALITIES; q++)
		r = measure(p, q, &probe);
	free(probe.jpeg);
	if (probe.tj)
		tjDestroy(probe.tj);
	if (r < 0)
		image_piece_fini(p);
	return r;
}

void image_piece_fini(struct image_piece *p)
{
	image_texture_fini(&p->texture);
	for (unsigned q = 0; q < IMAGE_QUALITIES; q++) {
		free(p->sum[q]);
		p->sum[q] = NULL;
	}
}

/* The sum up to a place between tiles: bilinear between its corners. */
static double sum_at(const struct image_piece *p, unsigned q, unsigned x,
		     unsigned y)
{
	double fx = (double)x / IMAGE_TILE, fy = (double)y / IMAGE_TILE;
	unsigned i = MIN((unsigned)fx, p->tiles_x - 1);
	unsigned j = MIN((unsigned)fy, p->tiles_y - 1);
	const double *s = p->sum[q] + (size_t)j * (p->tiles_x + 1) + i;
	const double *t = s + p->tiles_x + 1;

	fx -= i;
	fy -= j;
	return (s[0] * (1 - fx) + s[1] * fx) * (1 - fy) +
	       (t[0] * (1 - fx) + t[1] * fx) * fy;
}

static double rect_bytes(const struct image_piece *p, unsigned q,
			 const struct image_rect *r)
{
	unsigned x1 = r->x + r->width, y1 = r->y + r->height;

	return MAX(sum_at(p, q, x1, y1) - sum_at(p, q, r->x, y1) -
			   sum_at(p, q, x1, r->y) + sum_at(p, q, r->x, r->y),
		   1);
}

/* By what libjpeg multiplies the standard's quantisation tables, percent. */
static double quantiser(double quality)
{
	return quality < 50 ? 5000 / quality : 200 - 2 * quality;
}

double image_piece_bytes(const struct image_piece *p,
			 const struct image_rect *r, double quality)
{
	unsigned q = 0;

	while (q + 2 < IMAGE_QUALITIES && quality > measured[q + 1])
		q++;

	/* bytes fall as a power of the quantiser, piece by piece */
	double low = log(rect_bytes(p, q, r));
	double high = log(rect_bytes(p, q + 1, r));
	double at = log(quantiser(quality) / quantiser(measured[q])) /
		    log(quantiser(measured[q + 1]) / quantiser(measured[q]));

	return exp(low + (high - low) * at);
}

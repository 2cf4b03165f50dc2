/* SPDX-License-Identifier: MIT */
/*
 * The textures from which the images of a dataset are cut, each with a map of
 * what its parts cost: how many bytes a rectangle of it will take as a JPEG
 * of a given quality is then known before it is encoded, within a few percent.
 * Read-only once filled; any thread may look.
 */
#ifndef GPEMU_EMU_IMAGE_IMAGE_PIECE_H
#define GPEMU_EMU_IMAGE_IMAGE_PIECE_H

#include <stddef.h>
#include <stdint.h>

#include "common/rng.h"

/*
 * A large picture from which many small ones are cut: synthesised so that it
 * costs a JPEG coder what a photograph costs, or read from a file.
 */
struct image_texture {
	unsigned width, height; /* even */
	uint8_t *plane[3];	/* Y, Cb, Cr; rows without gaps, chroma halved
				 * both ways */
};

/*
 * Larger images are refused before anything is allocated for them.
 * Source: twice Pillow's Image.MAX_IMAGE_PIXELS, where it refuses too.
 */
#define IMAGE_MAX_PIXELS 178956970u

/* -ENOMEM. Sizes are rounded up to even numbers. */
int image_texture_synthesise(unsigned width, unsigned height, struct rng *rng,
			     struct image_texture *ret);
/* Of a JPEG of any kind. -EBADMSG: cannot be used; -ENOMEM. */
int image_texture_decode(const uint8_t *bytes, size_t n,
			 struct image_texture *ret);
/* The same picture and its mirror images, side by side, up to that size. */
int image_texture_mirror(const struct image_texture *from, unsigned width,
			 unsigned height, struct image_texture *ret);
void image_texture_fini(struct image_texture *t);

enum { IMAGE_TILE = 64, IMAGE_QUALITIES = 4 };

struct image_piece {
	struct image_texture texture;
	unsigned tiles_x, tiles_y;
	/* bytes of all tiles above and left of (x, y), (tiles_x + 1) wide */
	double *sum[IMAGE_QUALITIES];
};

struct image_rect {
	unsigned x, y, width, height; /* even; x and y in the texture */
};

/*
 * Measure the costs of `texture`, which the piece then owns (and releases
 * when this fails: -ENOMEM).
 */
int image_piece_init(struct image_piece *p, struct image_texture *texture);
void image_piece_fini(struct image_piece *p);

/* Expected bytes of the rectangle's JPEG scan at quality 1..100. */
double image_piece_bytes(const struct image_piece *p,
			 const struct image_rect *r, double quality);

/* Bytes of padding in a JPEG: comments, and fill before markers. */
size_t image_jpeg_padding(const uint8_t *jpeg, size_t n);

#endif

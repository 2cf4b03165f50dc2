/* SPDX-License-Identifier: MIT */
/*
 * The textures from which the images of a dataset are cut, each with a map of
 * what its parts cost: how many bytes a rectangle of it will take as a JPEG
 * of a given quality is then known before it is encoded, within a few percent.
 * Read-only once filled; any thread may look.
 */
#ifndef GPEMU_LOADER_DATA_POOL_H
#define GPEMU_LOADER_DATA_POOL_H

#include "loader/data_texture.h"

enum { DATA_TILE = 64, DATA_QUALITIES = 4 };

struct data_piece {
	struct data_texture texture;
	unsigned tiles_x, tiles_y;
	/* bytes of all tiles above and left of (x, y), (tiles_x + 1) wide */
	double *sum[DATA_QUALITIES];
};

struct data_rect {
	unsigned x, y, width, height; /* even; x and y in the texture */
};

/*
 * Measure the costs of `texture`, which the piece then owns (and releases
 * when this fails: -ENOMEM).
 */
int data_piece_init(struct data_piece *p, struct data_texture *texture);
void data_piece_fini(struct data_piece *p);

/* Expected bytes of the rectangle's JPEG scan at quality 1..100. */
double data_piece_bytes(const struct data_piece *p, const struct data_rect *r,
			double quality);

/* Where the scan of a JPEG begins, or n when it has none. */
size_t data_jpeg_scan(const uint8_t *jpeg, size_t n);
/* Bytes of padding in a JPEG: comments, and fill before markers. */
size_t data_jpeg_padding(const uint8_t *jpeg, size_t n);

#endif

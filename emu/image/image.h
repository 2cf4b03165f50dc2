/* SPDX-License-Identifier: MIT */
/*
 * JPEGs of an exact number of bytes, cut from a pool of textures. One object
 * belongs to one thread; the pool is shared and only read.
 */
#ifndef GPEMU_EMU_IMAGE_IMAGE_H
#define GPEMU_EMU_IMAGE_IMAGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/err.h"
#include "emu/image/image_piece.h"

/* A JPEG has tables of 600 bytes before its first pixel. */
enum { IMAGE_LEAST = 700 };

struct image_pool {
	struct image_piece *pieces;
	unsigned n;
	/* what is larger than a piece: mirrored copies, else synthesised */
	bool mirror;
};

struct image {
	/* of the image made last: owned, as written to a file */
	uint8_t *bytes;
	size_t n;
	/* counted over all images */
	uint64_t n_encodes;
	uint64_t padding_bytes;
	double worst_padding; /* share of a file */
	/* private */
	const struct image_pool *pool;
	void *tj;
	uint8_t *jpeg; /* what the encoder wrote */
	size_t capacity;
	size_t bytes_capacity;
	uint64_t pixels; /* of the image made last */
};

int image_init(struct image *d, const struct image_pool *pool);
void image_fini(struct image *d);

/*
 * Make an image of exactly `n` bytes, >= IMAGE_LEAST; padding is at most
 * 5 % of it. `rng` decides what it shows. -ENOMEM.
 */
int image_make(struct image *d, size_t n, struct rng *rng, struct err *err);

#endif

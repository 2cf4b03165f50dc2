/* SPDX-License-Identifier: MIT */
/*
 * A large picture from which many small ones are cut: synthesised so that it
 * costs a JPEG coder what a photograph costs, or read from a file.
 */
#ifndef GPEMU_EMU_IMAGE_IMAGE_TEXTURE_H
#define GPEMU_EMU_IMAGE_IMAGE_TEXTURE_H

#include <stddef.h>
#include <stdint.h>

#include "common/rng.h"

/*
 * Larger images are refused before anything is allocated for them.
 * Source: twice Pillow's Image.MAX_IMAGE_PIXELS, where it refuses too.
 */
#define IMAGE_MAX_PIXELS 178956970u

struct image_texture {
	unsigned width, height; /* even */
	uint8_t *plane[3];	/* Y, Cb, Cr; rows without gaps, chroma halved
				 * both ways */
};

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

#endif

/* SPDX-License-Identifier: MIT */
/*
 * A large picture from which many small ones are cut: synthesised so that it
 * costs a JPEG coder what a photograph costs, or read from a file.
 */
#ifndef GPEMU_LOADER_DATA_TEXTURE_H
#define GPEMU_LOADER_DATA_TEXTURE_H

#include <stdint.h>

#include "common/err.h"
#include "common/rng.h"

struct data_texture {
	unsigned width, height; /* even */
	uint8_t *plane[3];	/* Y, Cb, Cr; rows without gaps, chroma halved
				 * both ways */
};

/* -ENOMEM. Sizes are rounded up to even numbers. */
int data_texture_synthesise(unsigned width, unsigned height, struct rng *rng,
			    struct data_texture *ret);
/* From a JPEG of any kind. -EBADMSG, or of open(2). */
int data_texture_load(const char *path, struct data_texture *ret,
		      struct err *err);
/* The same picture and its mirror images, side by side, up to that size. */
int data_texture_mirror(const struct data_texture *from, unsigned width,
			unsigned height, struct data_texture *ret);
void data_texture_fini(struct data_texture *t);

#endif

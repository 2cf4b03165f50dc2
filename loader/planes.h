/* SPDX-License-Identifier: MIT */
/*
 * A JPEG as planes of 8-bit pixels, decoded at a fraction of its size where
 * that is enough. Luma and chroma stay apart, chroma at the resolution it was
 * stored in: whoever resamples anyway spares the upsampling and the colour
 * conversion of pixels that are about to be averaged away.
 *
 * One object belongs to one thread and keeps its memory for the next image.
 */
#ifndef GPEMU_LOADER_PLANES_H
#define GPEMU_LOADER_PLANES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * Larger images are refused before anything is allocated for them.
 * Source: twice Pillow's Image.MAX_IMAGE_PIXELS, where it refuses too.
 */
#define PLANES_MAX_PIXELS 178956970u

enum { PLANES_EIGHTHS = 8 };

struct plane {
	uint8_t *pixels; /* owned by the struct planes */
	size_t stride;
	unsigned width, height;
};

struct planes {
	/* of the image read last, at full size */
	unsigned width, height;
	int subsampling, colour_space; /* enum TJSAMP, enum TJCS */
	/* of the image decoded last */
	unsigned n; /* 1: grey; 3: Y Cb Cr, or R G B with is_rgb */
	bool is_rgb;
	struct plane plane[3];
	/* private */
	void *tj;
	uint8_t *memory;
	size_t capacity;
};

/* -ENOMEM. planes_fini also after a failed init, or none (all zeros). */
int planes_init(struct planes *p);
void planes_fini(struct planes *p);

/*
 * Read the header: fills width, height, subsampling, colour_space.
 * -EBADMSG: not a JPEG, or larger than PLANES_MAX_PIXELS.
 */
int planes_header(struct planes *p, const void *raw, size_t n);

/*
 * The number of eighths, of those that decode faster than the whole, at which
 * a crop of w x h pixels still has at least `least` pixels each way.
 */
unsigned planes_eighths(unsigned w, unsigned h, unsigned least);

/*
 * Decode the image whose header was just read at `eighths`/8 of its size,
 * each side rounded up. What lies at (x, y) of the image, its corner being
 * (0, 0), lies at (x, y) * eighths / 8 of plane 0, and in a chroma plane there
 * divided by planes_chroma_scale.
 * -EBADMSG: any error or warning of the decoder; -ENOMEM.
 */
int planes_decode(struct planes *p, const void *raw, size_t n,
		  unsigned eighths);

/* Size of a chroma pixel in luma pixels, across and down; 1 without chroma. */
void planes_chroma_scale(const struct planes *p, double *ret_x, double *ret_y);

#endif

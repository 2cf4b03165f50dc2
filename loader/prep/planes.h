/* SPDX-License-Identifier: MIT */
/*
 * A JPEG as planes of 8-bit pixels, decoded at a fraction of its size where
 * that is enough. Luma and chroma stay apart, chroma at the resolution it was
 * stored in: whoever resamples anyway spares the upsampling and the colour
 * conversion of pixels that are about to be averaged away.
 *
 * One object belongs to one thread and keeps its memory for the next image.
 */
#ifndef GPEMU_LOADER_PREP_PLANES_H
#define GPEMU_LOADER_PREP_PLANES_H

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
	double scale_x, scale_y; /* its pixels to a pixel of the image */
};

struct planes {
	unsigned width, height; /* of the image read last, at full size */
	/* of the image decoded last */
	unsigned n; /* 1: grey; 3: Y Cb Cr, or R G B with is_rgb */
	bool is_rgb;
	struct plane plane[3];
	/* private */
	void *decoder;
	uint8_t *memory;
	size_t capacity;
};

/* -ENOMEM. planes_fini also after a failed init, or none (all zeros). */
int planes_init(struct planes *p);
void planes_fini(struct planes *p);

/*
 * Read the header: fills width and height. `raw` stays in use until
 * planes_decode. -EBADMSG: not a JPEG, or larger than PLANES_MAX_PIXELS.
 */
int planes_header(struct planes *p, const void *raw, size_t n);

/*
 * The number of eighths, of those that decode faster than the whole, at which
 * a crop of w x h pixels still has at least `least` pixels each way.
 */
unsigned planes_eighths(unsigned w, unsigned h, unsigned least);

/*
 * Decode the image whose header was just read at `eighths`/8 of its size,
 * each side rounded up; of it only the rows top..bottom - 1 (at full size),
 * the others may hold anything. What lies at (x, y) of the image, its corner
 * being (0, 0), lies at (x * scale_x, y * scale_y) of a plane. Chroma may
 * come at a higher resolution than eighths/8 of what is stored.
 * -EBADMSG: any error or warning of the decoder, or no end of the image;
 * -ENOMEM.
 */
int planes_decode(struct planes *p, unsigned eighths, unsigned top,
		  unsigned bottom);

#endif

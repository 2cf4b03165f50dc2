/* SPDX-License-Identifier: MIT */
/*
 * An image as planes of 8-bit pixels. Its format is known by its first bytes: a
 * JPEG (image_jpeg.c) or a PNG (image_png.c). A JPEG is decoded at a fraction
 * of its size where that is enough. Luma and chroma stay separate, chroma at
 * its stored resolution. A caller that resamples anyway saves the upsampling
 * and colour conversion of pixels that would only be averaged.
 *
 * What Pillow 9.4 reads is read, and nothing else: libjpeg's warnings are those
 * of libjpeg, and a truncated file is an error. Grey, alpha, palettes and inks
 * become what Image.convert("RGB") makes of them.
 *
 * One object belongs to one thread and keeps its memory for the next image.
 */
#ifndef GPEMU_LOADER_PREP_PLANES_H
#define GPEMU_LOADER_PREP_PLANES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/*
 * Larger images are refused before any allocation. Source: twice Pillow's
 * Image.MAX_IMAGE_PIXELS, where it refuses too.
 */
#define PLANES_MAX_PIXELS 178956970u

enum { PLANES_EIGHTHS = 8, PLANES_FORMATS = 2 };

struct plane {
	uint8_t *pixels; /* owned by the struct planes */
	size_t stride;
	unsigned width, height;
	double scale_x, scale_y; /* pixels of it per pixel of the image */
};

struct planes {
	unsigned width, height; /* of the last image read, at full size */
	/* of the last image decoded */
	unsigned n; /* 1: grey; 3: Y Cb Cr, or R G B with is_rgb */
	bool is_rgb;
	struct plane plane[3];
	/* private */
	unsigned format; /* of the header read last */
	void *decoder[PLANES_FORMATS];
	uint8_t *memory;
	size_t capacity;
};

/* A zeroed struct is a new one. */
void planes_fini(struct planes *p);

/*
 * Read the header: fills width and height. `raw` stays in use until
 * planes_decode. -EBADMSG: broken; -ENOMEM; the negative of an enum unusable
 * (unusable.h), such as another format, or more than PLANES_MAX_PIXELS.
 */
int planes_header(struct planes *p, const void *raw, size_t n);

/*
 * The number of eighths at which a crop of w x h pixels still has at least
 * `least` pixels each way, among those that decode faster than full size.
 */
unsigned planes_eighths(unsigned w, unsigned h, unsigned least);

/*
 * Decode the image whose header was just read at `eighths`/8 of its size, each
 * side rounded up. Only the rows top..bottom - 1 (at full size) are valid, the
 * others are undefined. The point (x, y) of the image, with its corner at (0,
 * 0), is at (x * scale_x, y * scale_y) of a plane. Chroma may have a higher
 * resolution than eighths/8 of what is stored, and a PNG always has the full
 * one. Errors as of planes_header.
 */
int planes_decode(struct planes *p, unsigned eighths, unsigned top,
		  unsigned bottom);

/* --- for formats ---------------------------------------------------------- */

struct image_ops {
	/* With which every file of the format begins. */
	const char *magic;
	size_t n_magic;
	/* As planes_header and planes_decode. `decoder`, NULL at first, is kept
	 * for the next image. */
	int (*header)(struct planes *p, void **decoder, const uint8_t *raw,
		      size_t n);
	int (*decode)(struct planes *p, void **decoder, unsigned eighths,
		      unsigned top, unsigned bottom);
	void (*fini)(void *decoder); /* NULL is allowed */
};

extern const struct image_ops image_jpeg, image_png;

/* Three planes R G B, or with `n` 1 a grey one, at eighths/8 of the image, and
 * `*ret` with room for `extra` bytes. -ENOMEM. */
int planes_lay_out(struct planes *p, unsigned n, unsigned eighths, size_t extra,
		   uint8_t **ret);

static inline size_t plane_stride(size_t width)
{
	return (width + 31u) & ~(size_t)31u;
}

#endif

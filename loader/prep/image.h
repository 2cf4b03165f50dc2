/* SPDX-License-Identifier: MIT */
/* A format of images: its decoder, behind planes.h. */
#ifndef GPEMU_LOADER_PREP_IMAGE_H
#define GPEMU_LOADER_PREP_IMAGE_H

#include <string.h>

#include "loader/prep/planes.h"

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

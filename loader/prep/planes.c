/* SPDX-License-Identifier: MIT */
#include "loader/prep/planes.h"

#include <stdlib.h>
#include <string.h>

#include "common/util.h"
#include "loader/prep/unusable.h"

static const struct image_ops *const images[PLANES_FORMATS] = { &image_jpeg,
								&image_png };

void planes_fini(struct planes *p)
{
	for (unsigned i = 0; i < PLANES_FORMATS; i++)
		images[i]->fini(p->decoder[i]);
	free(p->memory);
	*p = (struct planes){ 0 };
}

int planes_header(struct planes *p, const void *raw, size_t n)
{
	unsigned i = 0;
	int r;

	while (i < PLANES_FORMATS &&
	       (n < images[i]->n_magic ||
		memcmp(raw, images[i]->magic, images[i]->n_magic)))
		i++;
	if (i == PLANES_FORMATS)
		return -(int)unusable_format(raw, n);
	p->format = i;
	r = images[i]->header(p, &p->decoder[i], raw, n);
	if (r == 0 && (uint64_t)p->width * p->height > PLANES_MAX_PIXELS)
		r = -UNUSABLE_LARGE;
	return r;
}

int planes_decode(struct planes *p, unsigned eighths, unsigned top,
		  unsigned bottom)
{
	return images[p->format]->decode(p, &p->decoder[p->format], eighths,
					 top, bottom);
}

unsigned planes_eighths(unsigned w, unsigned h, unsigned least)
{
	/* libjpeg-turbo 2.1 has SIMD code for these; the others (3/8, 5/8, 6/8,
	 * 7/8) are plain C and slower than a decode at full size */
	static const unsigned fast[] = { 1, 2, 4 };

	for (size_t i = 0; i < ARRAY_SIZE(fast); i++)
		if (w * fast[i] >= least * PLANES_EIGHTHS &&
		    h * fast[i] >= least * PLANES_EIGHTHS)
			return fast[i];
	return PLANES_EIGHTHS;
}

/* SPDX-License-Identifier: MIT */
#include "loader/prep/planes.h"

#include <errno.h>

#include "common/util.h"

static unsigned scaled(unsigned size, unsigned eighths)
{
	return (size * eighths + PLANES_EIGHTHS - 1) / PLANES_EIGHTHS;
}

int planes_lay_out(struct planes *p, unsigned n, unsigned eighths, size_t extra,
		   uint8_t **ret)
{
	const struct plane one = {
		.width = scaled(p->width, eighths),
		.height = scaled(p->height, eighths),
		.stride = plane_stride(scaled(p->width, eighths)),
		.scale_x = (double)eighths / PLANES_EIGHTHS,
		.scale_y = (double)eighths / PLANES_EIGHTHS,
	};
	size_t size = one.stride * one.height;

	if (util_reserve_anew(&p->memory, &p->capacity, n * size + extra, 1) <
	    0)
		return -ENOMEM;
	p->is_rgb = n > 1;
	p->n = n;
	for (unsigned i = 0; i < n; i++) {
		p->plane[i] = one;
		p->plane[i].pixels = p->memory + i * size;
	}
	*ret = p->memory + n * size;
	return 0;
}

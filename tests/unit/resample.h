/* SPDX-License-Identifier: MIT */
#ifndef GPEMU_TESTS_UNIT_RESAMPLE_H
#define GPEMU_TESTS_UNIT_RESAMPLE_H

#include "common/util.h"
#include "loader/prep/resample.h"

/* The whole output in one call. */
static inline int resample_plane(struct resample *r,
				 const struct resample_input *in,
				 const struct resample_box *box, bool mirror,
				 unsigned out_w, unsigned out_h, float *out)
{
	int e = resample_begin(r, in, box, mirror, out_w, out_h);

	for (unsigned y = 0; e == 0 && y < out_h; y += RESAMPLE_ROWS)
		resample_rows(r, y, MIN(RESAMPLE_ROWS, out_h - y),
			      out + (size_t)y * out_w);
	return e;
}

#endif

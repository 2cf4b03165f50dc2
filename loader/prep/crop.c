/* SPDX-License-Identifier: MIT */
#include "loader/prep/crop.h"

#include <math.h>

enum { TRIES = 10 };

static double uniform(struct rng *rng, double low, double high)
{
	return low + (high - low) * rng_double(rng);
}

/* The largest centred rectangle with a permitted ratio. */
static struct crop crop_centre(unsigned w, unsigned h)
{
	struct crop c = { .width = w, .height = h };

	if (w * 4.0 < h * 3.0)
		c.height = (unsigned)lround(w / .75);
	else if (w * 3.0 > h * 4.0)
		c.width = (unsigned)lround(h * (4.0 / 3.0));
	c.x = (w - c.width) / 2;
	c.y = (h - c.height) / 2;
	return c;
}

struct crop crop_random(struct rng *rng, unsigned w, unsigned h, double least)
{
	const double log_ratio = log(4.0 / 3.0);

	for (int i = 0; i < TRIES; i++) {
		double area = (double)w * h * uniform(rng, least, 1);
		double ratio = exp(uniform(rng, -log_ratio, log_ratio));
		double cw = rint(sqrt(area * ratio));
		double ch = rint(sqrt(area / ratio));

		if (cw < 1 || ch < 1 || cw > w || ch > h)
			continue;

		struct crop c = { .width = (unsigned)cw,
				  .height = (unsigned)ch };

		c.y = (unsigned)rng_below(rng, h - c.height + 1);
		c.x = (unsigned)rng_below(rng, w - c.width + 1);
		return c;
	}
	return crop_centre(w, h);
}

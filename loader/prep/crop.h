/* SPDX-License-Identifier: MIT */
/*
 * The rectangle of torchvision's RandomResizedCrop: its area a share of the
 * image's, uniform in least..1, its ratio of width to height log-uniform in
 * 3/4..4/3, its position uniform. A rectangle that does not fit is drawn again;
 * after ten attempts it is the largest centred rectangle with a permitted
 * ratio. Source: torchvision 0.14, transforms/transforms.py, get_params.
 */
#ifndef GPEMU_LOADER_PREP_CROP_H
#define GPEMU_LOADER_PREP_CROP_H

#include "common/rng.h"

struct crop {
	unsigned x, y, width, height; /* pixels */
};

/* For an image of w x h >= 1 pixels. */
struct crop crop_random(struct rng *rng, unsigned w, unsigned h, double least);

#endif

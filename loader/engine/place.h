/* SPDX-License-Identifier: MIT */
/* The slot of one sample in a batch. */
#ifndef GPEMU_LOADER_ENGINE_PLACE_H
#define GPEMU_LOADER_ENGINE_PLACE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct place {
	const void *data;
	size_t n;	 /* bytes at `data` */
	uint32_t sample; /* in the dataset */
	int error;	 /* 0; -errno: unusable, `data` is zeros */
	bool bypassed;	 /* read past the mount of its dataset */
};

#endif

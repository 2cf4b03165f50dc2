/* SPDX-License-Identifier: MIT */
/* A GPU of which nothing is known but how many samples it trains in a second:
 * a number of its user. */
#ifndef GPEMU_EMU_PROFILE_PROFILE_RATE_H
#define GPEMU_EMU_PROFILE_PROFILE_RATE_H

#include "emu/profile/profile_gpu.h"

/* Bounds of a rate, samples per s. Arbitrary: no GPU is outside. */
#define GPU_RATE_MIN 1e-2
#define GPU_RATE_MAX 1e9

struct gpu_rate {
	const char *name, *source, *model;
	double samples_per_s;  /* of a step: GPU_RATE_MIN..GPU_RATE_MAX */
	uint64_t batch;	       /* of that step; 0: any */
	const char *precision; /* NULL: not given */
	uint64_t memory_bytes; /* 0: any batch fits */
	/* 0: as other profiles have them for this model; without any, no
	 * gradients, and the bytes of a 224 x 224 image */
	uint64_t parameters, sample_bytes;
};

/*
 * A step of n samples takes n / samples_per_s. A third of it is forward:
 * nominal, as for most models in the database; copies take no time. Free with
 * gpu_profile_free, failed or not. -EINVAL with a text; -ENOMEM.
 */
int gpu_profile_from_rate(const struct gpu_rate *rate, struct gpu_profile *ret,
			  struct err *err);

/* The rate of steps of a model whose copies and memory are to stay; with
 * `inference` a step is its forward pass. `source` is the model's then.
 * -ENOMEM.
 */
int gpu_model_set_rate(struct gpu_model *m, double samples_per_s,
		       bool inference, const char *source);

/* A `check` of a conf_field: the double at `object` is 0 or a rate. */
int gpu_rate_check(const void *object, struct err *err);

#endif

/* SPDX-License-Identifier: MIT */
/*
 * The time of one CPU core for the transforms of a sample, from the bytes read
 * to the model's input:
 *
 *	cost = sample (a distribution) + per_mb * bytes read / 10^6
 *
 * and, for transforms on the GPU (`device: gpu`), the time of a batch on the
 * compute stream and the memory it needs there.
 */
#ifndef GPEMU_EMU_PROFILE_PROFILE_PREP_H
#define GPEMU_EMU_PROFILE_PROFILE_PREP_H

#include <stdbool.h>
#include <stdint.h>

#include "common/rng.h"
#include "emu/profile/dist.h"
#include "emu/profile/profile.h"

/* The default. */
#define PREP_DEFAULT "pytorch-pillow"

enum prep_output {
	PREP_FP32,  /* normalised as torchvision's models want it */
	PREP_UINT8, /* 0..255; the device would normalise */
};

/* "fp32" or "uint8"; -EINVAL with a text. */
int prep_output_parse(const char *s, enum prep_output *ret, struct err *err);

/* Bytes of a transformed image: `side` pixels square, three channels. */
uint64_t prep_image_bytes(uint64_t side, enum prep_output output);

struct prep_row {
	uint64_t batch;
	double ms;
};

struct prep_gpu {
	struct conf_list rows; /* struct prep_row, batch ascending */
	double memory_mib;
	char *source;
};

struct prep_profile {
	char *name;
	char *source;
	char *notes;
	bool verified;		 /* every number was read at its source */
	char *device;		 /* "cpu"; "gpu": partly on the GPU */
	struct dist_time sample; /* body.kind_name NULL: not known */
	uint64_t per_mb_ns;	 /* for each 10^6 bytes read */
	struct prep_gpu gpu;	 /* no rows: nothing */
};

PROFILE_DECLARE(prep);
/* Only the time of a sample, whatever its size, as dist_time_parse reads it. */
int prep_profile_given(const char *time, struct prep_profile *ret,
		       struct err *err);

/* The time of a sample of `bytes`, ns: one draw. */
uint64_t prep_profile_cost(const struct prep_profile *p, uint64_t bytes,
			   struct rng *rng);

/*
 * The time of a batch on the GPU, ns: linear between the rows and beyond them;
 * with a single row, through the origin. Never below 0.
 */
uint64_t prep_profile_gpu_ns(const struct prep_profile *p, uint64_t batch);

#endif

/* SPDX-License-Identifier: MIT */
/* gpemu-train's options about preprocessing, and what the record says of it. */
#ifndef GPEMU_LOADER_TRAIN_TRAIN_PREP_H
#define GPEMU_LOADER_TRAIN_TRAIN_PREP_H

#include <jansson.h>
#include <stdio.h>

#include "emu/profile/profile_prep.h"
#include "loader/account/account.h"
#include "loader/train/train_options.h"

struct train_prep {
	struct prep_config config;
	struct prep_profile profile; /* of what is emulated */
	uint32_t cores;		     /* virtual ones; 0: none */
	size_t sample_bytes;	     /* prepared; 0: as read */
};

/*
 * Are the options sound together? Fills in `workers` and `cores` where they
 * follow from each other. -EINVAL with a text.
 */
int train_prep_check(struct train_options *o, const struct train_choice *c,
		     struct err *err);
/* After the check: load the profile where one is needed. Free with
 * train_prep_close, failed or not; `ret` must stay where it is until then. */
int train_prep_open(const struct train_options *o, const struct train_choice *c,
		    struct train_prep *ret, struct err *err);
void train_prep_close(struct train_prep *p);

/* The record's `prep`. */
json_t *train_prep_json(const struct train_prep *p,
			const struct train_options *o);
/* One line for people; nothing when no sample was prepared. */
void train_prep_summary(const struct train_prep *p,
			const struct train_options *o, const struct account *a,
			FILE *f);

#endif

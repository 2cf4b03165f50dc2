/* SPDX-License-Identifier: MIT */
/* gpemu-train's options about transforms (prep), and the record's part about
 * them. */
#ifndef GPEMU_LOADER_OPTIONS_TRAIN_PREP_H
#define GPEMU_LOADER_OPTIONS_TRAIN_PREP_H

#include <jansson.h>
#include <stdio.h>

#include "emu/profile/profile_prep.h"
#include "loader/account/account.h"
#include "loader/options/train_options.h"

struct train_prep {
	struct prep_config config;
	struct prep_profile profile; /* for emulated transforms */
	uint32_t cores;		     /* virtual cores; 0: none */
	size_t sample_bytes;	     /* size when transformed; 0: raw */
	uint32_t int64_rows;	     /* as struct prep_ops */
};

/*
 * Check that the options are consistent. Fills in `workers` and `cores` where
 * one follows from the other. -EINVAL with a text.
 */
int train_prep_check(struct train_options *o, const struct train_choice *c,
		     struct err *err);
/* After the check: load the profile if one is needed. Free with
 * train_prep_close, failed or not; `ret` must not move until then. */
int train_prep_open(const struct train_options *o, const struct train_choice *c,
		    struct train_prep *ret, struct err *err);
void train_prep_close(struct train_prep *p);

/* The record's `prep`. */
json_t *train_prep_json(const struct train_prep *p,
			const struct train_options *o);
/* One line for people; nothing if no sample was transformed. */
void train_prep_summary(const struct train_prep *p,
			const struct train_options *o,
			const struct train_account *a, FILE *f);

#endif

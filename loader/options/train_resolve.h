/* SPDX-License-Identifier: MIT */
/* The options of a run, against each other: what they choose, and why they
 * cannot go together. */
#ifndef GPEMU_LOADER_OPTIONS_TRAIN_RESOLVE_H
#define GPEMU_LOADER_OPTIONS_TRAIN_RESOLVE_H

#include "loader/options/train_options.h"

/* Resolve pin_mode. -EINVAL with a text. */
int train_options_pin(struct train_options *o, struct err *err);
void train_choice_fini(struct train_choice *c);
/* Fill in `workers` 0, and look up the names. Keeps an engine that is already
 * set, one outside the table. -EINVAL with a text. */
int train_options_resolve(struct train_options *o, struct train_choice *ret,
			  struct err *err);

#endif

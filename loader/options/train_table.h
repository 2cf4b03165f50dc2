/* SPDX-License-Identifier: MIT */
/* The table of gpemu-train's options, and their defaults. */
#ifndef GPEMU_LOADER_OPTIONS_TRAIN_TABLE_H
#define GPEMU_LOADER_OPTIONS_TRAIN_TABLE_H

#include "loader/options/train_options.h"

extern const struct conf_field train_fields[];

/* The defaults, with owned strings; free with conf_free(train_fields). */
void train_options_init(struct train_options *o);
/*
 * This process is `rank` of `world_size` that run together: sets both, and
 * replaces %r in the names of what each rank has for itself, its dataset and
 * its logs. -EINVAL: a log that several ranks would write; with a text.
 */
int train_options_join(struct train_options *o, uint32_t rank,
		       uint32_t world_size, struct err *err);

#endif

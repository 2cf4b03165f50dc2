/* SPDX-License-Identifier: MIT */
/* "key=value" strings into the options of gpemu-train. */
#ifndef GPEMU_LIB_OPTIONS_H
#define GPEMU_LIB_OPTIONS_H

#include "loader/options/train_options.h"

/*
 * Parse `options` (terminated by NULL; NULL: none) into `o`, which holds the
 * defaults. `only`: the allowed keys, terminated by NULL; NULL: all. -EINVAL
 * with a text that begins with the key, or with the position in the file of
 * config=FILE.
 */
int options_set(struct train_options *o, const char *const options[],
		const char *const only[], struct err *err);

/* Was the key given? */
bool options_have(const char *const options[], const char *key);

#endif

/* SPDX-License-Identifier: MIT */
/* Files of weights: one number a line, as numpy.savetxt writes them. */
#ifndef GPEMU_COMMON_TEXT_WEIGHTS_H
#define GPEMU_COMMON_TEXT_WEIGHTS_H

#include <stdint.h>

#include "common/err.h"

/*
 * `n` numbers, finite and 0 or more; empty lines and those of '#' are skipped.
 * `of`: what has them, for errors ("sample"). -EINVAL with "path:line:column:
 * what", also of more or fewer; as open(2).
 */
int weights_read(const char *file, double *ret, uint64_t n, const char *of,
		 struct err *err);

#endif

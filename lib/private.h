/* SPDX-License-Identifier: MIT */
/* What the library's files share. */
#ifndef GPEMU_LIB_PRIVATE_H
#define GPEMU_LIB_PRIVATE_H

#include "common/err.h"
#include "emu/gpu/gpu.h"
#include "include/gpemu.h"

/* The error's text, or errno's, for a caller who gave room for n bytes, or
 * NULL. */
void lib_tell(int r, const struct err *err, char *error, size_t n);

struct gpemu_step lib_step(const struct gpu_step *s);

#endif

/* SPDX-License-Identifier: MIT */
/* Shared by the library's files. */
#ifndef GPEMU_LIB_PRIVATE_H
#define GPEMU_LIB_PRIVATE_H

#include "common/err.h"
#include "emu/gpu/gpu.h"
#include "include/gpemu.h"

/* Copy the error's text, or that of errno, to the caller's n bytes, if not
 * NULL. */
void lib_tell(int r, const struct err *err, char *error, size_t n);

struct gpemu_step lib_step(const struct gpu_step *s);

#endif

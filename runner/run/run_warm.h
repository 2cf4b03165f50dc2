/* SPDX-License-Identifier: MIT */
/*
 * Warms the page cache: the bytes of the emulated device come from a real one,
 * which must not be slower than the emulated one.
 */
#ifndef GPEMU_RUNNER_RUN_RUN_WARM_H
#define GPEMU_RUNNER_RUN_RUN_WARM_H

#include "common/program/child.h"
#include "common/err.h"

/*
 * Read all files below `folder` into the page cache; 3 GB that are already
 * cached take a second. A folder larger than half of the memory is skipped with
 * a warning, because the page cache would not keep it. -EINTR: stopped by a
 * signal. -errno.
 */
int warm_folder(const char *folder, struct stop *stop, struct err *err);

#endif

/* SPDX-License-Identifier: MIT */
/*
 * What stands for the emulated device is read from a real one, which must not
 * be the slower of the two: a file that the page cache has lost would be.
 */
#ifndef GPEMU_RUNNER_RUN_RUN_WARM_H
#define GPEMU_RUNNER_RUN_RUN_WARM_H

#include "common/program/child.h"
#include "common/err.h"

/*
 * Read all files below `folder`, so that the page cache holds them; a second
 * for 3 GB that are there already. Nothing is read of a folder with more than
 * half of the machine's memory: the page cache would not keep it, which is
 * logged. -EINTR: a stop signal came. -errno.
 */
int warm_folder(const char *folder, struct stop *stop, struct err *err);

#endif

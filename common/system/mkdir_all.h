/* SPDX-License-Identifier: MIT */
/* Folders that are made with those above them. */
#ifndef GPEMU_COMMON_SYSTEM_MKDIR_ALL_H
#define GPEMU_COMMON_SYSTEM_MKDIR_ALL_H

#include <sys/types.h>

#include "common/err.h"

/* mkdir -p, less the umask: 0, the folder is there; -errno with a text. */
int mkdir_all(const char *path, mode_t mode, struct err *err);

#endif

/* SPDX-License-Identifier: MIT */
/* Which files a process may read. */
#ifndef GPEMU_COMMON_SYSTEM_CONFINE_H
#define GPEMU_COMMON_SYSTEM_CONFINE_H

#include <stddef.h>

/*
 * From now on this thread, and those that it starts, read only files and
 * folders below `paths`, whatever links lead there; one that does not exist is
 * left out. For good. -ENOTSUP: this kernel cannot (Landlock, Linux 5.13);
 * other -errno.
 */
int confine_reads(const char *const *paths, size_t n);

#endif

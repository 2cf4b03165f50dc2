/* SPDX-License-Identifier: MIT */
/* The memory available to this process. */
#ifndef GPEMU_COMMON_SYSTEM_MEMORY_H
#define GPEMU_COMMON_SYSTEM_MEMORY_H

#include <stdint.h>

/*
 * The minimum of the machine's memory and the limits of the process's control
 * groups and their parents: memory.max and memory.high of version 2,
 * memory.limit_in_bytes of version 1. Bytes. Ignores current use, so that two
 * runs get the same value.
 */
uint64_t memory_limit(void);
/* The limit of the control groups alone, with `root` before the paths of /proc
 * and of the mounts of cgroups. UINT64_MAX: none. */
uint64_t memory_cgroup_limit(const char *root);

#endif

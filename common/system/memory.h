/* SPDX-License-Identifier: MIT */
/* How much memory there is for this process. */
#ifndef GPEMU_COMMON_SYSTEM_MEMORY_H
#define GPEMU_COMMON_SYSTEM_MEMORY_H

#include <stdint.h>

/*
 * The least of the machine's memory and the limits of the control groups that
 * the process is in, with all above them: memory.max and memory.high of
 * version 2, memory.limit_in_bytes of version 1. Bytes. What others take of it
 * is not looked at, so that two runs see the same.
 */
uint64_t memory_limit(void);
/* The limit of the control groups alone, with `root` before the paths of /proc
 * and of the mounts of cgroups. UINT64_MAX: none. */
uint64_t memory_cgroup_limit(const char *root);

#endif

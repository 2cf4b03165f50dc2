/* SPDX-License-Identifier: MIT */
/* The workloads that come with gpemu, by name: `demo` is workloads/demo.yaml in
 * the source tree, or in {share}/gpemu. */
#ifndef GPEMU_RUNNER_RUN_SHIPPED_H
#define GPEMU_RUNNER_RUN_SHIPPED_H

#include "common/err.h"

/*
 * The path of the workload that the user calls `name`: the file of that name;
 * else the shipped one, with or without ".yaml". *ret is malloc'ed. -ENOENT:
 * neither, with a text that names the nearest; -ENOMEM.
 */
int shipped_find(const char *name, char **ret, struct err *err);

#endif

/* SPDX-License-Identifier: MIT */
/* `gpemu-run check`: what would run, in words. */
#ifndef GPEMU_RUNNER_RUN_CHECK_H
#define GPEMU_RUNNER_RUN_CHECK_H

#include <stdio.h>

#include "runner/run/runner.h"

/* Everything that the file asks for, how much of it is done, and how long the
 * rest will take. -ENOMEM. */
int check_print(struct runner *r, FILE *f, struct err *err);

#endif

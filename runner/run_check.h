/* SPDX-License-Identifier: MIT */
/* `gpemu-run check`: describes what would run. */
#ifndef GPEMU_RUNNER_RUN_CHECK_H
#define GPEMU_RUNNER_RUN_CHECK_H

#include <stdio.h>

#include "runner/run/runner.h"

/* Print the experiment, how much of it is done, and the estimated time of the
 * rest. -ENOMEM. */
int check_print(struct runner *r, FILE *f, struct err *err);

#endif

/* SPDX-License-Identifier: MIT */
/* One line of CSV for each step of a run: where its time went. */
#ifndef GPEMU_LOADER_ACCOUNT_STEP_LOG_H
#define GPEMU_LOADER_ACCOUNT_STEP_LOG_H

#include <stdio.h>

#include "loader/account/observer.h"

/* -errno with a text; on success *ret has the CSV header. */
int step_log_open(const char *path, FILE **ret, struct err *err);
/* Its ctx is that file. Times are emulated seconds since the start of the
 * run. */
extern const struct observer observe_steps;
/* NULL is allowed. -errno with a text when a line could not be written. */
int step_log_close(FILE *f, const char *path, struct err *err);

#endif

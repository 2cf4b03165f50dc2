/* SPDX-License-Identifier: MIT */
/* Origins of records: a table may mix versions of gpemu-run, kernels and hosts,
 * because a record is kept until its key changes. */
#ifndef GPEMU_RUNNER_RESULT_RUN_ORIGINS_H
#define GPEMU_RUNNER_RESULT_RUN_ORIGINS_H

#include <jansson.h>
#include <stdbool.h>
#include <stdio.h>

/* Count a record in {gpemu{}, kernel{}, host{}, order{}}, each {VALUE: number
 * of records}. -ENOMEM. */
int origins_add(json_t *origins, const json_t *record);
/* Does any of them have more than one value? */
bool origins_mixed(const json_t *origins);
/* Print "MIXED ..." and a line for each with several values, if any. */
void origins_print(const json_t *origins, FILE *f);

#endif

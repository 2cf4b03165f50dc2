/* SPDX-License-Identifier: MIT */
/* Where records come from: those of one table may be of several versions of
 * gpemu-run, kernels and hosts, as each was kept until its key changed. */
#ifndef GPEMU_RUNNER_RESULT_RUN_ORIGINS_H
#define GPEMU_RUNNER_RESULT_RUN_ORIGINS_H

#include <jansson.h>
#include <stdbool.h>
#include <stdio.h>

/* Count one more record in {gpemu{}, kernel{}, host{}, order{}}, each {VALUE:
 * how many records}. -ENOMEM. */
int origins_add(json_t *origins, const json_t *record);
/* Is there more than one value of anything? */
bool origins_mixed(const json_t *origins);
/* "MIXED ..." and a line for each that has several values; else nothing. */
void origins_print(const json_t *origins, FILE *f);

#endif

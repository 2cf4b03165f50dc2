/* SPDX-License-Identifier: MIT */
/* Fields of a table with commas (RFC 4180). */
#ifndef GPEMU_RUNNER_RESULT_RUN_CSV_H
#define GPEMU_RUNNER_RESULT_RUN_CSV_H

#include "runner/result/run_result.h"

/* In quotes where needed. */
void csv_text(FILE *f, const char *s);
/* The fewest digits that read back to the same number. */
void csv_number(FILE *f, double v);
/* Text, number, or anything else as JSON; nothing for NULL and null. */
void csv_value(FILE *f, const json_t *j);

/* Workload, id, labels of the axes, repetition and seed. */
void csv_cell(FILE *f, const struct workload *w, const struct cell *cell);

#endif

/* SPDX-License-Identifier: MIT */
/*
 * Tables of rows (common/text/rows.h) with a header, as measurement scripts
 * write them, in memory: every row has as many cells as the header. Errors are
 * -EINVAL with "file:line: what".
 */
#ifndef GPEMU_EMU_PROFILE_CSV_H
#define GPEMU_EMU_PROFILE_CSV_H

#include <stddef.h>
#include <stdint.h>

#include "common/err.h"

struct csv {
	char *name;	 /* the path, for messages */
	char *text;	 /* storage of the cells */
	char **cells;	 /* n_rows x n_columns, the requested columns */
	uint64_t *lines; /* of the rows, from 1 */
	size_t n_columns, n_rows;
};

/*
 * Read a file and select `columns` (terminated by NULL) by name, in that order;
 * others are ignored. Free with csv_free, failed or not.
 */
int csv_load(const char *path, const char *const *columns, struct csv *ret,
	     struct err *err);
/* The same from memory; safe on any input. */
int csv_parse(const char *bytes, size_t n, const char *name,
	      const char *const *columns, struct csv *ret, struct err *err);
void csv_free(struct csv *csv);

const char *csv_text(const struct csv *csv, size_t row, size_t column);
/* A finite number within min..max. */
int csv_number(const struct csv *csv, size_t row, size_t column, double min,
	       double max, double *ret, struct err *err);
/* err_set(-EINVAL) prefixed with "file:line: " of a row. */
int csv_error(const struct csv *csv, size_t row, struct err *err,
	      const char *fmt, ...) __attribute__((format(printf, 4, 5)));

#endif

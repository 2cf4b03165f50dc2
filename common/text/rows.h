/* SPDX-License-Identifier: MIT */
/*
 * Lines of fields separated by commas: what traces are made of. Blanks around a
 * field do not count, nor do the quotes around all of it (a line ends within
 * quotes, too, and then they count), a byte order mark in front of the text,
 * and the CR of lines that end with CRLF. Nothing is copied: a field points
 * into the bytes, and keeps doubled quotes. Safe on any input.
 */
#ifndef GPEMU_COMMON_TEXT_ROWS_H
#define GPEMU_COMMON_TEXT_ROWS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/err.h"

enum { ROWS_COLUMNS_MAX = 32 };

struct rows_field {
	const char *text;
	size_t n;
};

/* The fields of a line up to `end`; what is behind the last of
 * ROWS_COLUMNS_MAX is left out. Returns how many. */
int rows_split(const char *line, const char *end, struct rows_field *ret);
/* The same with another delimiter; ' ': one blank or more. */
int rows_split_by(const char *line, const char *end, char delimiter,
		  struct rows_field *ret);
/* The first byte behind a byte order mark (UTF-8), if there is one. */
const char *rows_begin(const char *at, const char *end);
/* Case-insensitive comparison. */
bool rows_is(const struct rows_field *f, const char *word);
/* A decimal number, nothing else. */
bool rows_u64(const struct rows_field *f, uint64_t *ret);
/* A finite number. */
bool rows_double(const struct rows_field *f, double *ret);

/* A text, row by row. Empty lines and those that begin with '#' are skipped. */
struct rows {
	const char *name;     /* of the file, for errors; borrowed */
	const char *at, *end; /* what is left to read */
	uint64_t line;	      /* of this row, from 1; initially 0 */
	const char *start;    /* of this row */
	struct rows_field f[ROWS_COLUMNS_MAX];
	int n;		/* fields in this row */
	int width;	/* of the header of a table */
	char separator; /* of the fields of rows_next; 0: a comma */
	struct err *err;
};

/* The next row: true, or false at the end. */
bool rows_next(struct rows *c);
/* The same, of fields with blanks between them. */
bool rows_next_words(struct rows *c);
/* Before the first row, which rows_next has read: it is read again. */
void rows_rewind(struct rows *c);
/*
 * The column of each of `n` words in this row, the header; -1 of those that it
 * lacks. -EINVAL: it lacks one of the first `required`.
 */
int rows_header(struct rows *c, const char *const *words, int n, int required,
		int *ret_columns);
/*
 * The text of a file, of which *ret_bytes is malloc'ed; rows_next is next.
 * -errno with a text.
 */
int rows_load(struct rows *c, const char *path, char **ret_bytes,
	      struct err *err);
/* The same as rows_header of the first row, in a table, which has one. */
int rows_begin_table(struct rows *c, const char *const *words, int n,
		     int required, int *ret_columns);
/* -EINVAL: this row has not as many fields as the header of its table. */
int rows_check_width(const struct rows *c);
/* -EINVAL: this row, the header, has a column that is none of these words, or
 * one twice. */
int rows_closed(const struct rows *c, const char *const *words, int n);
/* -EINVAL with "name:line:column: text"; `f` is a field of this row, or NULL
 * for the whole of it. */
int rows_error(const struct rows *c, const struct rows_field *f,
	       const char *fmt, ...) __attribute__((format(printf, 3, 4)));
/*
 * The number in column `at` of this row, from `min` to `max`; 0 without that
 * column (at < 0). -EINVAL with a text that calls it `what`.
 */
int rows_number(const struct rows *c, int at, const char *what, double min,
		double max, double *ret);
/* The same of a whole number. */
int rows_count(const struct rows *c, int at, const char *what, uint64_t max,
	       uint64_t *ret);
/* The text in column `at`, malloc'ed; NULL without it or when it is empty.
 * -ENOMEM. */
int rows_text(const struct rows *c, int at, char **ret);

#endif

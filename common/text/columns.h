/* SPDX-License-Identifier: MIT */
/*
 * Texts in aligned columns. Where they are wider than the terminal, what
 * follows a newline in a cell goes below the rest, and columns that still do
 * not fit form a second table below the first.
 */
#ifndef GPEMU_COMMON_TEXT_COLUMNS_H
#define GPEMU_COMMON_TEXT_COLUMNS_H

#include <stddef.h>
#include <stdio.h>

/* Bytes of a cell with its NUL. arbitrary: wider than most terminals */
enum { COLUMNS_TEXT = 160 };

struct columns {
	char (*text)[COLUMNS_TEXT]; /* rows * n */
	size_t rows, n;
	size_t heads; /* rows above the rule; 0: no rule */
	size_t words; /* columns on the left that are left-aligned, and that
		       * each part has */
};

/* Empty cells; heads and words are the caller's to set. -ENOMEM. */
int columns_init(struct columns *c, size_t rows, size_t n);
void columns_fini(struct columns *c);
/* A cell, for snprintf. A newline in it is a blank where all fits. */
char *columns_at(const struct columns *c, size_t row, size_t column);
/* In lines of at most `width` bytes (0: any), if the columns can be so narrow.
 */
void columns_print(const struct columns *c, size_t width, FILE *f);

#endif

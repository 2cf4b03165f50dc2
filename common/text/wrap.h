/* SPDX-License-Identifier: MIT */
/* Long lines for a terminal. */
#ifndef GPEMU_COMMON_TEXT_WRAP_H
#define GPEMU_COMMON_TEXT_WRAP_H

#include <stddef.h>
#include <stdio.h>

/* Columns of the terminal that `f` is; 0: it is none, or does not say. */
size_t wrap_width(FILE *f);

/* Print `text`, broken at spaces into lines of at most `width` bytes, the
 * second and later ones indented by `indent` spaces; a longer word has a line
 * of its own. width 0: one line. Ends with a newline. */
void wrap_print(const char *text, size_t indent, size_t width, FILE *f);

#endif

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

/* What is printed to `f` goes to `to` at the end; on a terminal of `width`
 * columns long lines are broken as above. Their later lines begin below their
 * text: behind a word or two that two spaces set apart ("WARN  "). */
struct wrap {
	FILE *f, *to;
	size_t width; /* 0: `to` is no terminal */
	char *text;   /* private, as the next */
	size_t n;
};

/* -ENOMEM. */
int wrap_begin(struct wrap *w, FILE *to);
void wrap_end(struct wrap *w);

#endif

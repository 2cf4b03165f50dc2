/* SPDX-License-Identifier: MIT */
#include "common/text/columns.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "common/util.h"

enum { GAP = 2 }; /* blanks between columns */

int columns_init(struct columns *c, size_t rows, size_t n)
{
	*c = (struct columns){ .text = calloc(rows * n, sizeof(*c->text)),
			       .rows = rows,
			       .n = n };
	return c->text ? 0 : -ENOMEM;
}

void columns_fini(struct columns *c)
{
	free(c->text);
	c->text = NULL;
}

char *columns_at(const struct columns *c, size_t row, size_t column)
{
	return c->text[row * c->n + column];
}

/* How the columns are shown. */
struct look {
	const struct columns *c;
	bool below;	/* the end of a cell goes below */
	size_t *widths; /* of each column */
};

/* The bytes of a cell in the first or second line of its row. */
static const char *piece(const struct look *k, size_t row, size_t column,
			 bool second, size_t *ret_n)
{
	const char *s = columns_at(k->c, row, column);
	size_t n = strlen(s), head = k->below ? strcspn(s, "\n") : n;

	*ret_n = second ? n - head - (head < n) : head;
	return second ? s + n - *ret_n : s;
}

/* Sets the widths; returns that of all columns. */
static size_t measure(struct look *k)
{
	size_t sum = 0, n;

	for (size_t i = 0; i < k->c->n; i++) {
		k->widths[i] = 0;
		for (size_t line = 0; line < 2 * k->c->rows; line++) {
			piece(k, line / 2, i, line % 2, &n);
			k->widths[i] = MAX(k->widths[i], n);
		}
		sum += k->widths[i] + (i ? GAP : 0);
	}
	return sum;
}

/* One line of a row: its words, and the columns from `from` up to `to`. */
static void print_line(const struct look *k, size_t from, size_t to, size_t row,
		       bool second, FILE *f)
{
	size_t at = 0, start = 0, n; /* columns of the terminal */

	for (size_t i = 0; i < to; i++) {
		const char *s = piece(k, row, i, second, &n);
		bool word = i < k->c->words;
		size_t left = word ? 0 : k->widths[i] - n;

		if (!word && i < from)
			continue;
		if (n)
			fprintf(f, "%*s", (int)(start + left - at), "");
		for (size_t b = 0; b < n; b++)
			fputc(s[b] == '\n' ? ' ' : s[b], f);
		if (n)
			at = start + left + n;
		start += k->widths[i] + GAP;
	}
	fputc('\n', f);
}

static void print_part(const struct look *k, size_t from, size_t to, FILE *f)
{
	size_t width = 0, n;

	for (size_t i = 0; i < to; i++)
		if (i < k->c->words || i >= from)
			width += k->widths[i] + GAP;
	for (size_t row = 0; row < k->c->rows; row++) {
		bool more = false;

		print_line(k, from, to, row, false, f);
		for (size_t i = 0; i < to; i++) {
			piece(k, row, i, true, &n);
			more |= n && (i < k->c->words || i >= from);
		}
		if (more)
			print_line(k, from, to, row, true, f);
		for (size_t i = 0; row + 1 == k->c->heads && i < width - GAP;
		     i++)
			fputc('-', f);
		if (row + 1 == k->c->heads)
			fputc('\n', f);
	}
}

void columns_print(const struct columns *c, size_t width, FILE *f)
{
	_cleanup_free_ size_t *widths = calloc(c->n, sizeof(*widths));
	struct look k = { .c = c, .widths = widths };
	size_t words = 0, from = c->words;

	if (!widths)
		return;
	if (measure(&k) > width && width) {
		k.below = true;
		measure(&k);
	}
	for (size_t i = 0; i < c->words; i++)
		words += widths[i] + GAP;
	do {
		size_t to = from, used = words;

		/* one at least, however wide */
		while (to < c->n &&
		       (to == from || !width || used + widths[to] <= width))
			used += widths[to++] + GAP;
		if (from > c->words)
			fputc('\n', f);
		print_part(&k, from, to, f);
		from = to;
	} while (from < c->n);
}

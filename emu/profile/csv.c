/* SPDX-License-Identifier: MIT */
#include "emu/profile/csv.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <string.h>

#include "common/text/rows.h"
#include "common/units.h"
#include "common/util.h"

/* Arbitrary: far above any table, and memory for it. */
enum { FILE_MOST = 256 << 20 };

int csv_error(const struct csv *csv, size_t row, struct err *err,
	      const char *fmt, ...)
{
	char text[256];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	return err_set(err, -EINVAL, "%s:%" PRIu64 ": %s", csv->name,
		       csv->lines[row], text);
}

/* The requested columns of a row; its fields lie in csv->text. */
static int read_row(struct csv *csv, const struct rows *row, const int *place,
		    int width)
{
	if (row->n != width)
		return rows_error(row, NULL, "%d cells where the header has %d",
				  row->n, width);
	for (size_t c = 0; c < csv->n_columns; c++) {
		const struct rows_field *f = &row->f[place[c]];
		char *cell = csv->text + (f->text - csv->text);

		cell[f->n] = '\0'; /* in place of what ends it */
		csv->cells[csv->n_rows * csv->n_columns + c] = cell;
	}
	csv->lines[csv->n_rows++] = row->line;
	return 0;
}

static size_t count_lines(const char *s)
{
	size_t n = 1;

	for (; (s = strchr(s, '\n')) != NULL; s++)
		n++;
	return n;
}

int csv_parse(const char *bytes, size_t n, const char *name,
	      const char *const *columns, struct csv *ret, struct err *err)
{
	struct rows row = { .name = name, .err = err };
	int place[ROWS_COLUMNS_MAX], width, r;
	size_t lines;

	*ret = (struct csv){ .name = strdup(name), .text = malloc(n + 1) };
	if (!ret->name || !ret->text)
		return -ENOMEM;
	if (memchr(bytes, '\0', n))
		return err_set(err, -EINVAL, "%s:1: not a text file", name);
	memcpy(ret->text, bytes, n);
	ret->text[n] = '\0';
	while (columns[ret->n_columns])
		ret->n_columns++;
	lines = count_lines(ret->text);
	ret->cells = calloc(lines * ret->n_columns, sizeof(*ret->cells));
	ret->lines = calloc(lines, sizeof(*ret->lines));
	if (!ret->cells || !ret->lines)
		return -ENOMEM;
	row.at = rows_begin(ret->text, ret->text + n);
	row.end = ret->text + n;
	if (!rows_next(&row))
		return err_set(err, -EINVAL, "%s:1: empty file", name);
	width = row.n;
	r = rows_header(&row, columns, (int)ret->n_columns, (int)ret->n_columns,
			place);
	while (r == 0 && rows_next(&row))
		r = read_row(ret, &row, place, width);
	return r;
}

int csv_load(const char *path, const char *const *columns, struct csv *ret,
	     struct err *err)
{
	_cleanup_free_ char *bytes = NULL;
	size_t n;
	int r = util_read_file(path, FILE_MOST, &bytes, &n);

	*ret = (struct csv){ 0 };
	if (r < 0)
		return err_set(err, r, "%s: %s", path, strerror(-r));
	return csv_parse(bytes, n, path, columns, ret, err);
}

void csv_free(struct csv *csv)
{
	free(csv->name);
	free(csv->text);
	free(csv->cells);
	free(csv->lines);
	*csv = (struct csv){ 0 };
}

const char *csv_text(const struct csv *csv, size_t row, size_t column)
{
	return csv->cells[row * csv->n_columns + column];
}

int csv_number(const struct csv *csv, size_t row, size_t column, double min,
	       double max, double *ret, struct err *err)
{
	const char *s = csv_text(csv, row, column);

	if (units_parse_double(s, ret) < 0)
		return csv_error(csv, row, err, "'%s' is not a number", s);
	if (*ret < min || *ret > max)
		return csv_error(csv, row, err, "%s is outside %.15g..%.15g", s,
				 min, max);
	return 0;
}

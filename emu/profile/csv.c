/* SPDX-License-Identifier: MIT */
#include "emu/profile/csv.h"

#include <errno.h>
#include <stdarg.h>
#include <string.h>

#include "common/units.h"
#include "common/util.h"

/* Arbitrary: measurement tables have under ten. */
enum { MAX_COLUMNS = 64 };
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
	/* the header is line 1 */
	return err_set(err, -EINVAL, "%s:%zu: %s", csv->name, row + 2, text);
}

/* Cut a line at its commas; the number of cells, at most `max` stored. */
static size_t split(char *line, char **cells, size_t max)
{
	size_t n = 0;

	for (char *cell; (cell = strsep(&line, ",")) != NULL; n++)
		if (n < max)
			cells[n] = cell;
	return n;
}

/* The next line without its end; NULL after the last. */
static char *next_line(char **rest)
{
	char *line = *rest, *end;

	if (!line || !line[0])
		return NULL;
	end = strchr(line, '\n');
	*rest = end ? end + 1 : NULL;
	if (end)
		*end = '\0';
	else
		end = line + strlen(line);
	if (end > line && end[-1] == '\r')
		end[-1] = '\0';
	return line;
}

/* The index of each requested column. */
static int read_header(struct csv *csv, char *line, const char *const *columns,
		       size_t *place, size_t *ret_width, struct err *err)
{
	char *names[MAX_COLUMNS];
	size_t width = line ? split(line, names, MAX_COLUMNS) : 0;

	if (!line)
		return err_set(err, -EINVAL, "%s:1: empty file", csv->name);
	if (width > MAX_COLUMNS)
		return err_set(err, -EINVAL, "%s:1: more than %d columns",
			       csv->name, MAX_COLUMNS);
	for (size_t c = 0; c < csv->n_columns; c++) {
		place[c] = 0;
		while (place[c] < width && strcmp(names[place[c]], columns[c]))
			place[c]++;
		if (place[c] == width)
			return err_set(err, -EINVAL,
				       "%s:1: no column '%s' in the header",
				       csv->name, columns[c]);
	}
	*ret_width = width;
	return 0;
}

static int read_row(struct csv *csv, char *line, const size_t *place,
		    size_t width, struct err *err)
{
	char *cells[MAX_COLUMNS];
	size_t n;

	if (strchr(line, '"'))
		return csv_error(csv, csv->n_rows, err,
				 "quoted cells are not supported");
	n = split(line, cells, MAX_COLUMNS);
	if (n != width)
		return csv_error(csv, csv->n_rows, err,
				 "%zu cells where the header has %zu", n,
				 width);
	for (size_t c = 0; c < csv->n_columns; c++)
		csv->cells[csv->n_rows * csv->n_columns + c] = cells[place[c]];
	csv->n_rows++;
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
	size_t place[MAX_COLUMNS], width = 0;
	char *rest, *line;
	int r;

	*ret = (struct csv){ .name = strdup(name), .text = malloc(n + 1) };
	if (!ret->name || !ret->text)
		return -ENOMEM;
	if (memchr(bytes, '\0', n))
		return err_set(err, -EINVAL, "%s:1: not a text file", name);
	memcpy(ret->text, bytes, n);
	ret->text[n] = '\0';
	while (columns[ret->n_columns])
		ret->n_columns++;
	ret->cells = calloc(count_lines(ret->text) * ret->n_columns,
			    sizeof(*ret->cells));
	if (!ret->cells)
		return -ENOMEM;
	rest = ret->text;
	r = read_header(ret, next_line(&rest), columns, place, &width, err);
	while (r == 0 && (line = next_line(&rest)) != NULL)
		r = read_row(ret, line, place, width, err);
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

/* SPDX-License-Identifier: MIT */
#include "sched/solver/assign.h"

#include <errno.h>
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>

#include "common/util.h"

/* Rows and columns count from 1; column 0 is where a path begins. */
struct search {
	const double *cost;
	size_t columns;
	double *row_price, *column_price; /* potentials */
	double *least;		 /* reduced cost of reaching a column */
	uint32_t *row_of, *from; /* of a column */
	bool *reached;
};

/* Extend the tree by the nearest column that was not reached; returns it. */
static size_t step(struct search *s, size_t column)
{
	size_t row = s->row_of[column], next = 0;
	double delta = INFINITY;

	s->reached[column] = true;
	for (size_t j = 1; j <= s->columns; j++) {
		double c;

		if (s->reached[j])
			continue;
		c = s->cost[(row - 1) * s->columns + j - 1] -
		    s->row_price[row] - s->column_price[j];
		if (c < s->least[j]) {
			s->least[j] = c;
			s->from[j] = (uint32_t)column;
		}
		if (s->least[j] < delta) {
			delta = s->least[j];
			next = j;
		}
	}
	for (size_t j = 0; j <= s->columns; j++) {
		if (s->reached[j]) {
			s->row_price[s->row_of[j]] += delta;
			s->column_price[j] -= delta;
		} else {
			s->least[j] -= delta;
		}
	}
	return next;
}

/* Give the row a column, and move others along the path to a free one. */
static void augment(struct search *s, size_t row)
{
	size_t column = 0;

	for (size_t j = 0; j <= s->columns; j++) {
		s->least[j] = INFINITY;
		s->reached[j] = false;
	}
	s->row_of[0] = (uint32_t)row;
	do
		column = step(s, column);
	while (s->row_of[column]);
	while (column) {
		size_t from = s->from[column];

		s->row_of[column] = s->row_of[from];
		column = from;
	}
}

int assign_min(const double *cost, size_t rows, size_t columns, uint32_t *ret)
{
	_cleanup_free_ double *prices =
		calloc(rows + 2 * columns + 4, sizeof(double));
	_cleanup_free_ uint32_t *links =
		calloc(2 * columns + 2, sizeof(uint32_t));
	_cleanup_free_ bool *reached = calloc(columns + 1, sizeof(bool));
	struct search s = { .cost = cost, .columns = columns };

	if (!prices || !links || !reached)
		return -ENOMEM;
	s.row_price = prices;
	s.column_price = prices + rows + 1;
	s.least = s.column_price + columns + 1;
	s.row_of = links;
	s.from = links + columns + 1;
	s.reached = reached;
	for (size_t i = 1; i <= rows; i++)
		augment(&s, i);
	for (size_t j = 1; j <= columns; j++)
		if (s.row_of[j])
			ret[s.row_of[j] - 1] = (uint32_t)(j - 1);
	return 0;
}

/* SPDX-License-Identifier: MIT */
#include "fs/measure/serial.h"

#include <math.h>

/* Arbitrary: many. */
enum { LEAST_DEPTH = 8, MORE_DEPTH = 64 };
/* So much more with eight times as many: it was not. Arbitrary: far from 8. */
#define GROWS 2.
/* The sum and the longer: else noise would decide. Arbitrary: at most 2, where
 * both are alike. */
#define DIFFERS 1.15

/* The shortest time between two reads of a size, at any depth; 0: many at once
 * were not measured. */
static double shortest(const struct points *p, uint64_t bytes)
{
	double most = 0;

	if (!points_find(p, POINT_RANDOM, bytes, LEAST_DEPTH) &&
	    !points_find(p, POINT_RANDOM, bytes, MORE_DEPTH))
		return 0;

	for (size_t i = 0; i < p->n; i++) {
		const struct point *at = &p->point[i];

		if (at->n && at->kind == POINT_RANDOM && at->bytes == bytes)
			most = fmax(most, at->per_s);
	}
	return most > 0 ? 1e9 / most : 0;
}

static bool reached(const struct points *p, uint64_t bytes)
{
	const struct point *at =
		points_find(p, POINT_RANDOM, bytes, LEAST_DEPTH);
	const struct point *more =
		points_find(p, POINT_RANDOM, bytes, MORE_DEPTH);

	return !at || !more || more->per_s < GROWS * at->per_s;
}

static double line(const struct serial *s, size_t i, double bytes)
{
	return s->at[i].ns + (s->at[i + 1].ns - s->at[i].ns) *
				     (bytes - s->at[i].bytes) /
				     (s->at[i + 1].bytes - s->at[i].bytes);
}

/* No read holds the server for longer than it takes alone: when many wait, the
 * processors that client and server share make both slower. */
static void hold_no_longer(const struct points *p, struct serial *s)
{
	for (size_t i = 0; i < s->n; i++) {
		const struct point *at = points_find(
			p, POINT_RANDOM, (uint64_t)s->at[i].bytes, 1);

		if (at)
			s->at[i].ns = fmin(s->at[i].ns, at->ns[POINT_P50]);
		if (i)
			s->at[i].ns = fmax(s->at[i].ns, s->at[i - 1].ns);
	}
}

bool serial_fit(const struct points *p, double per_s, double mb_per_s,
		struct serial *ret)
{
	double between = (double)POINTS_BETWEEN, sum, longer;
	double took = shortest(p, POINTS_BETWEEN);

	*ret = (struct serial){ 0 };
	for (uint64_t bytes = POINTS_LEAST; bytes <= POINTS_PIECE; bytes *= 2) {
		double ns = shortest(p, bytes);
		double last = ret->n ? ret->at[ret->n - 1].ns : 0;

		if (!reached(p, bytes))
			return false;
		if (ns <= 0 || bytes == POINTS_BETWEEN ||
		    ret->n == SERIAL_SIZES)
			continue;
		ret->at[ret->n].bytes = (double)bytes;
		ret->at[ret->n++].ns = fmax(ns, last);
	}
	if (ret->n < 2 || took <= 0 || ret->at[0].bytes > between ||
	    ret->at[1].bytes < between)
		return false;
	sum = line(ret, 0, between);
	longer = fmax(1e9 / per_s, between * 1e3 / mb_per_s);
	hold_no_longer(p, ret);
	ret->each_ns = fmax(0, line(ret, 0, 0));
	return sum > DIFFERS * longer && took > sqrt(sum * longer);
}

/* SPDX-License-Identifier: MIT */
#include "fs/measure/times.h"

#include <inttypes.h>
#include <math.h>

#include "emu/profile/dist.h"

/* of a line */
enum { IN_LINE = 6 };

/*
 * The quantiles less `less` ns, ascending. The last one is not the longest that
 * happened to come, but what gives the lines between them the mean that was
 * measured: a single slow read would weigh too much, or too little. Beyond `to`
 * they stay: the rest waited for a quota, or too few were seen.
 */
static void quantiles(const struct point *p, double less, double to,
		      double ret[POINT_QUANTILES])
{
	const int last = POINT_QUANTILES - 1;
	double mean = 0, width;

	for (int i = 0; i <= last; i++) {
		double ns = fmin(fmax(0, p->ns[i] - less), DIST_MAX_NS);

		if (i && point_quantiles[i] > to)
			ns = 0;
		ret[i] = i ? fmax(ret[i - 1], ns) : ns;
		width = i ? point_quantiles[i] - point_quantiles[i - 1] : 0;
		if (i && i < last)
			mean += width * (ret[i - 1] + ret[i]) / 2;
	}
	if (to < 1)
		return;
	width = point_quantiles[last] - point_quantiles[last - 1];
	ret[last] = fmax(ret[last - 1], 2 * (p->mean_ns - less - mean) / width -
						ret[last - 1]);
	ret[last] = fmin(ret[last], DIST_MAX_NS);
}

void times_write(FILE *f, const char *key, const struct point *p, double less,
		 double to)
{
	double ns[POINT_QUANTILES];

	quantiles(p, less, to, ns);
	fprintf(f, "  %s:\n    kind: empirical\n    quantiles:\n", key);
	for (int i = 0; i < POINT_QUANTILES; i++)
		fprintf(f, "    - [%g, %.0fns]\n", point_quantiles[i], ns[i]);
}

/* Each of those in flight waits once in a window. Twice as many are left out,
 * as windows are not exactly so. */
double times_passing(const struct point *p, double window_ns)
{
	return window_ns > 0 ? fmax(0, 1 - 2e9 * (double)p->depth /
						       (p->per_s * window_ns))
			     : 1;
}

/* The measured point of a row, or NULL. */
static const struct point *row(const struct points *p, uint64_t bytes,
			       uint64_t depth, double window_ns)
{
	const struct point *at = points_find(p, POINT_RANDOM, bytes, depth);

	/* arbitrary: the middle must be one of those that passed */
	return at && times_passing(at, window_ns) > .6 ? at : NULL;
}

static void write_row(const struct point *p, double window_ns, FILE *f)
{
	double ns[POINT_QUANTILES];

	quantiles(p, 0, times_passing(p, window_ns), ns);
	fprintf(f,
		"  - in_queue: %" PRIu64 "\n    size: %" PRIu64
		"\n    quantiles: [",
		p->depth, p->bytes);
	for (int i = 0; i < POINT_QUANTILES; i++)
		fprintf(f, "%s[%g, %.0fns]",
			!i	      ? ""
			: i % IN_LINE ? ", "
				      : ",\n      ",
			point_quantiles[i], ns[i]);
	fprintf(f, "]\n");
}

void times_write_loaded(const struct points *p, double window_ns, FILE *f)
{
	fprintf(f, "  loaded:\n");
	for (uint64_t depth = 1; depth <= TIMES_DEPTH; depth *= 2) {
		const struct point *rows[64];
		size_t n = 0;

		for (uint64_t bytes = POINTS_LEAST; bytes <= POINTS_LONGEST;
		     bytes *= 2) {
			rows[n] = row(p, bytes, depth, window_ns);
			n += rows[n] != NULL;
		}
		for (size_t i = 0; i < n && n > 1; i++)
			write_row(rows[i], window_ns, f);
	}
}

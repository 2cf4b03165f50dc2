/* SPDX-License-Identifier: MIT */
#include "fs/measure/fit.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

#include "common/heap.h"
#include "common/json.h"
#include "common/rng.h"
#include "common/units.h"
#include "common/util.h"
#include "emu/profile/dist.h"
#include "fs/device/device.h"

#define SMALL ((uint64_t)POINTS_LEAST)
/* A continued read this much faster than a random one: something moves. */
#define SEEKS 3.
/* The sizes through which the line of one read goes. Beyond, a read may be
 * several pieces that are in flight at once. */
#define LINE_FROM (128 * KIB)
#define LINE_TO POINTS_PIECE
#define LARGE (16 * MIB)
/* A large read so much faster than its line is several pieces. */
#define PIECES 1.2

/* A median so much below depth / rate: the others wait for a window. Arbitrary:
 * far from any queue, where it is about 1. */
#define WAITS 3.
/* The same rate: capped. Arbitrary: the noise of a good measurement. */
#define SAME .95
#define NEAR .85
enum { CAPPED = 3 };

/* --- a server that works on one request at a time, as a FUSE process does - */

enum { SERIAL_SIZES = 8 };

/* Time between two reads of a size, where more in flight give no more; at most
 * that of one alone. */
struct serial {
	size_t n; /* ascending by bytes */
	struct {
		double bytes, ns;
	} at[SERIAL_SIZES];
	double each_ns; /* of a read without bytes */
};

/* Arbitrary: many. */
enum { LEAST_DEPTH = 8, MORE_DEPTH = 64 };
/* So much more with eight times as many: it was not. Arbitrary: far from 8. */
#define GROWS_ON 2.
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

	return !at || !more || more->per_s < GROWS_ON * at->per_s;
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

/*
 * Do the costs of a read and of its bytes add up? Where those of a read are as
 * long as those of its bytes, a read then takes twice as long as with limits
 * that overlap: the longer of 1 / per_s and bytes / mb_per_s (10^6 a second).
 * The points of POINTS_BETWEEN, which neither is made from, decide by what they
 * are closer to.
 */
static bool serial_fit(const struct points *p, double per_s, double mb_per_s,
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

/* --- durations, as a profile gives them ----------------------------------- */

/* The depths at which several sizes are measured: powers of two up to this. */
enum { TIMES_DEPTH = 64 };

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

/* A distribution `key`: the quantiles less `less` ns, of the fastest part `to`;
 * 1: of all. */
static void times_write(FILE *f, const char *key, const struct point *p,
			double less, double to)
{
	double ns[POINT_QUANTILES];

	quantiles(p, less, to, ns);
	fprintf(f, "  %s:\n    kind: empirical\n    quantiles:\n", key);
	for (int i = 0; i < POINT_QUANTILES; i++)
		fprintf(f, "    - [%g, %.0fns]\n", point_quantiles[i], ns[i]);
}

/* The part of a point's reads that surely did not wait for a quota with that
 * window; 1 without one, 0. Each of those in flight waits once in a window.
 * Twice as many are left out, as windows are not exactly so. */
static double times_passing(const struct point *p, double window_ns)
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

/* `loaded` of a class: random reads at the depths at which two sizes or more
 * were measured, without those that waited for a quota. */
static void times_write_loaded(const struct points *p, double window_ns,
			       FILE *f)
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

/* --- the parameters ------------------------------------------------------- */

struct fit {
	const struct points *p;
	const struct point *alone; /* 4 KiB at random, one at a time */
	double stream_mb_per_s;	   /* one read */
	bool pieces;		   /* large reads are several of LINE_TO */
	double link_mb_per_s;
	double per_s;	  /* 4 KiB reads */
	double window_ns; /* of a quota, or 0 */
	double quota_per_s, quota_mb_per_s;
	const struct point *continued; /* if the device seeks; else NULL */
	bool is_serial;
	struct serial serial;
};

static double median(const struct point *p)
{
	return p->ns[POINT_P50];
}

/* 10^6 bytes a second are bytes a us. */
static double mb_per_s(const struct point *p)
{
	return p->per_s * (double)p->bytes / 1e6;
}

/* The slope of the medians over the bytes, each weighed by its relative error;
 * MB/s, 0: there is none. */
static double line_rate(const struct points *p, enum point_kind kind)
{
	double w = 0, wx = 0, wy = 0, wxx = 0, wxy = 0, slope;

	for (size_t i = 0; i < p->n; i++) {
		const struct point *at = &p->point[i];
		double x = (double)at->bytes, y = median(at), weight;

		if (!at->n || at->kind != kind || at->depth != 1 ||
		    at->bytes < LINE_FROM || at->bytes > LINE_TO || y <= 0)
			continue;
		weight = 1 / (y * y);
		w += weight;
		wx += weight * x;
		wy += weight * y;
		wxx += weight * x * x;
		wxy += weight * x * y;
	}
	slope = w * wxx - wx * wx > 0
			? (w * wxy - wx * wy) / (w * wxx - wx * wx)
			: 0;
	return slope > 0 ? 1e3 / slope : 0;
}

/* What all in flight have, by the median: the rate within a window. */
static double rate_inside(const struct point *p)
{
	return (double)p->depth * 1e9 / median(p);
}

static bool waits(const struct point *p)
{
	return p->per_s > 0 && median(p) > 0 &&
	       rate_inside(p) > WAITS * p->per_s;
}

/* The measured one at or above: between two there may be a cliff. */
static double quantile_from(const struct point *p, double q)
{
	int i = 0;

	while (i < POINT_QUANTILES - 1 && point_quantiles[i] < q)
		i++;
	return p->ns[i];
}

/*
 * In a window of w, r * w reads pass: each of `depth` slots waits once, for s,
 * and all others take the median m, so that
 *
 *	depth * w = depth * s + (r * w - depth) * m
 *
 * s is in the middle of the longest depth / (r * w) of the reads.
 */
static double window_of(const struct point *p)
{
	enum { ROUNDS = 20 };
	double m = median(p), depth = (double)p->depth, r = p->per_s / 1e9;
	double w = p->ns[POINT_QUANTILES - 1], waiting;

	for (int i = 0; i < ROUNDS; i++) {
		waiting = fmin(1, depth / (r * w));
		w = (quantile_from(p, 1 - waiting / 2) - m) /
		    (1 - r * m / depth);
	}
	return w;
}

/* The middle of those rates that are SAME as it; 0: too few are. */
static double usual(double *rate, size_t n)
{
	size_t same = 0;

	qsort(rate, n, sizeof(*rate), util_compare_double);
	for (size_t i = 0; i < n; i++)
		same += rate[i] > SAME * rate[n / 2] &&
			rate[i] < rate[n / 2] / SAME;
	return same >= CAPPED ? rate[n / 2] : 0;
}

/* Is there a quota? Of small reads, some depths in which they wait for it; the
 * rate of a single point is off by a part of a window. */
static void fit_quota(const struct points *p, struct fit *v)
{
	double rate[POINTS_MAX], bytes[POINTS_MAX], most = 0, window = 0;
	size_t n = 0, n_bytes = 0;

	for (size_t i = 0; i < p->n; i++) {
		const struct point *at = &p->point[i];

		if (!at->n || at->kind > POINT_SEQUENTIAL)
			continue;
		most = fmax(most, mb_per_s(at));
		if (at->kind != POINT_RANDOM || at->bytes != SMALL ||
		    at->depth < CAPPED || !waits(at))
			continue;
		rate[n++] = at->per_s;
		window += window_of(at);
	}
	v->quota_per_s = n ? usual(rate, n) : 0;
	if (v->quota_per_s <= 0)
		return;
	v->window_ns = window / (double)n;
	for (size_t i = 0; i < p->n; i++)
		if (p->point[i].n && p->point[i].kind <= POINT_SEQUENTIAL &&
		    mb_per_s(&p->point[i]) > NEAR * most)
			bytes[n_bytes++] = mb_per_s(&p->point[i]);
	v->quota_mb_per_s = usual(bytes, n_bytes);
	if (v->quota_mb_per_s <= 0)
		v->quota_mb_per_s = most;
}

/* The middle of those near the most: the most alone is a lucky point. */
static double near_most(double *rate, size_t n)
{
	size_t from = 0;

	qsort(rate, n, sizeof(*rate), util_compare_double);
	while (from < n && rate[from] < NEAR * rate[n - 1])
		from++;
	return n ? rate[(from + n) / 2] : 0;
}

/* What reads at random have together; of a disk, those that go on too. */
static void fit_limits(const struct points *p, struct fit *v)
{
	double mb[POINTS_MAX], small[POINTS_MAX];
	size_t n = 0, n_small = 0;

	for (size_t i = 0; i < p->n; i++) {
		const struct point *at = &p->point[i];
		double rate = at->per_s;

		if (!at->n || at->kind > POINT_SEQUENTIAL ||
		    (at->kind == POINT_SEQUENTIAL && !v->continued))
			continue;
		if (v->window_ns > 0 && waits(at))
			rate = rate_inside(at);
		mb[n++] = rate * (double)at->bytes / 1e6;
		if (at->kind == POINT_RANDOM && at->bytes == SMALL)
			small[n_small++] = rate;
	}
	v->link_mb_per_s = near_most(mb, n);
	v->per_s = near_most(small, n_small);
}

static int fit(const struct points *p, struct fit *ret, struct err *err)
{
	const struct point *next, *large;

	*ret = (struct fit){ .p = p,
			     .alone = points_find(p, POINT_RANDOM, SMALL, 1) };
	ret->stream_mb_per_s = line_rate(p, POINT_RANDOM);
	if (!ret->alone || ret->stream_mb_per_s <= 0)
		return err_set(err, -ENODATA,
			       "too few points: random reads of 4 KiB and of "
			       "128 KiB and more, one at a time, are needed");
	large = points_find(p, POINT_RANDOM, LARGE, 1);
	ret->pieces = large && mb_per_s(large) > PIECES * ret->stream_mb_per_s;
	next = points_find(p, POINT_SEQUENTIAL, SMALL, 1);
	if (next && median(ret->alone) > SEEKS * median(next))
		ret->continued = next;
	fit_quota(p, ret);
	fit_limits(p, ret);
	ret->is_serial =
		!ret->continued && ret->window_ns <= 0 &&
		serial_fit(p, ret->per_s, ret->link_mb_per_s, &ret->serial);
	return 0;
}

/* --- writing -------------------------------------------------------------- */

static void write_reorder(const struct fit *v, FILE *f)
{
	double still = median(v->continued), last = 1;
	double alone = 1e9 / v->alone->per_s - still;

	fprintf(f, "  reorder:\n  - [1, 1]\n");
	for (uint64_t depth = 2; depth <= 256; depth *= 2) {
		const struct point *at =
			points_find(v->p, POINT_RANDOM, SMALL, depth);
		double share = at ? (1e9 / at->per_s - still) / alone : last;

		last = fmin(last, fmax(0, share));
		if (at)
			fprintf(f, "  - [%" PRIu64 ", %.4g]\n", depth, last);
	}
}

static void write_quota(const struct fit *v, FILE *f)
{
	if (v->window_ns <= 0)
		return;
	fprintf(f,
		"quota:\n  source: depths with the same rate, and most reads "
		"far below depth / rate\n  verified: true\n"
		"  window: %.0fns\n  per_s: %.5g\n  mb_per_s: %.4g\n",
		v->window_ns, v->quota_per_s, v->quota_mb_per_s);
}

/* What a server that works on one request at a time spends on it. */
static void write_each(double ns, FILE *f)
{
	fprintf(f, "  occupancy: {kind: const, value: %.0fns}\n", ns);
}

static void write_read(const struct fit *v, FILE *f)
{
	double bytes_ns = (double)SMALL * 1e3 / v->stream_mb_per_s;
	double to = times_passing(v->alone, v->window_ns);

	fprintf(f,
		"read:\n  source: 4 KiB reads, one at a time (%" PRIu64
		" of them)\n  verified: true\n",
		v->alone->n);
	if (!v->continued) {
		if (v->is_serial)
			write_each(v->serial.each_ns, f);
		times_write(f, "latency", v->alone, bytes_ns, to);
		times_write_loaded(v->p, v->window_ns, f);
		return;
	}
	times_write(f, "occupancy", v->continued, bytes_ns, to);
	times_write(f, "seek", v->alone, median(v->continued), to);
	write_reorder(v, f);
}

static void write_names(const struct fit *v, enum point_kind kind,
			const char *key, FILE *f)
{
	const struct point *at = points_find(v->p, kind, 0, 1);
	double each;

	if (!at) {
		fprintf(f, "# %s was not measured\n", key);
		return;
	}
	fprintf(f,
		"%s:\n  source: %" PRIu64
		" of them, names not known to the kernel\n  verified: true\n"
		"  slots: 0\n",
		key, at->n);
	/* at most: a part of it is the kernel's, as of a read */
	each = v->is_serial ? median(at) * fmin(1, v->serial.at[0].ns /
							   median(v->alone))
			    : 0;
	if (each > 0)
		write_each(each, f);
	times_write(f, "latency", at, each, 1);
}

static void write_kept(const struct fit *v, FILE *f)
{
	const struct point *at = points_find(v->p, POINT_KEPT, 0, 1);

	if (!at)
		fprintf(f, "# how long names are kept was not measured\n");
	else if (median(at) < .99 * POINT_KEPT_MOST)
		fprintf(f,
			"names:\n  source: the kernel asked again for %" PRIu64
			" of them\n  verified: true\n  kept: %.2fs\n",
			at->n, median(at) / NS_PER_S);
}

/* What reads up to LINE_TO take longer than SMALL ones, by their medians. Heads
 * that move hide it. */
static void write_times(const struct fit *v, FILE *f)
{
	double first = (double)SMALL * 1e3 / v->stream_mb_per_s, last = first;

	fprintf(f, "  times:\n  - [%llu, %.0fns]\n", (unsigned long long)SMALL,
		first);
	for (uint64_t bytes = 2 * SMALL; bytes <= LINE_TO; bytes *= 2) {
		const struct point *at =
			points_find(v->p, POINT_RANDOM, bytes, 1);

		if (!at || (v->window_ns > 0 && median(at) > v->window_ns / 4))
			continue;
		last = fmax(last, first + median(at) - median(v->alone));
		fprintf(f, "  - [%" PRIu64 ", %.0fns]\n", bytes,
			fmin(last, DIST_MAX_NS));
	}
}

/* One server: no other limits. */
static void write_serial(const struct fit *v, FILE *f)
{
	const struct serial *s = &v->serial;
	size_t last = s->n - 1;

	fprintf(f,
		"channels:\n  source: the time between two of many reads, by "
		"size; those of a read and of its bytes add up\n"
		"  verified: true\n  count: 1\n  mb_per_s: %.4g\n%s  times:\n",
		1e3 * (s->at[last].bytes - s->at[last - 1].bytes) /
			fmax(1, s->at[last].ns - s->at[last - 1].ns),
		v->pieces ? "  stripe: 1M\n" : "");
	for (size_t i = 0; i < s->n; i++)
		fprintf(f, "  - [%.0f, %.0fns]\n", s->at[i].bytes,
			s->at[i].ns - s->each_ns);
}

static void write_channels(const struct fit *v, FILE *f)
{
	fprintf(f,
		"channels:\n  source: one read, by size; the rate by the line "
		"through those of 128 KiB to 1 MiB%s\n  verified: true\n"
		"  count: %d\n  mb_per_s: %.4g\n%s",
		v->pieces ? "; larger ones are faster, as several pieces" : "",
		v->continued ? 1 : 0, v->stream_mb_per_s,
		v->pieces ? "  stripe: 1M\n" : "");
	if (!v->continued)
		write_times(v, f);
}

static void write_head(const struct fit_text *text, FILE *f)
{
	fprintf(f, "# SPDX-License-Identifier: MIT\n");
	json_put_yaml(f, "name", text->name);
	json_put_yaml(f, "source", text->source);
	json_put_yaml(f, "notes", text->notes);
}

static void write_device(const struct fit *v, const struct fit_text *text,
			 FILE *f)
{
	write_head(text, f);
	if (v->is_serial)
		write_serial(v, f);
	else
		write_channels(v, f);
	if (!v->is_serial)
		fprintf(f,
			"link:\n  source: what all reads had together\n"
			"  verified: true\n  mb_per_s: %.4g\n",
			v->link_mb_per_s);
	if (!v->continued && !v->is_serial)
		fprintf(f,
			"iops:\n  source: 4 KiB reads a second, the middle of "
			"those near the most\n  verified: true\n  per_s: "
			"%.5g\n  burst: %d\n",
			v->per_s, v->window_ns > 0 ? 1 : TIMES_DEPTH);
	write_quota(v, f);
	write_names(v, POINT_OPEN, "open", f);
	write_names(v, POINT_LOOKUP, "lookup", f);
	write_names(v, POINT_READDIR, "readdir", f);
	write_kept(v, f);
	write_read(v, f);
}

/* --- an object store ------------------------------------------------------ */

/* So much more with four times the requests: their number is the limit, not
 * that of the link. Arbitrary: between 1 and 4. */
#define GROWS 1.5

struct store {
	/* one at a time; the longest, and one that is a part of it */
	const struct point *shortest, *longer, *longest;
	double channel_mb_per_s, link_mb_per_s;
	uint64_t depth; /* the most requests at once */
	bool reached;	/* the link is a limit */
};

static void fit_alone(const struct points *p, struct store *s)
{
	for (size_t i = 0; i < p->n; i++) {
		const struct point *at = &p->point[i];

		if (!at->n || at->kind != POINT_GET || at->depth != 1)
			continue;
		if (!s->shortest)
			s->shortest = at;
		if (at->bytes == 64 * KIB || !s->longer)
			s->longer = at;
		s->longest = at;
	}
}

static void fit_together(const struct points *p, struct store *s)
{
	const struct point *before = NULL;
	double mb[POINTS_MAX];
	size_t n = 0;

	for (size_t i = 0; i < p->n; i++) {
		const struct point *at = &p->point[i];

		if (!at->n || at->kind != POINT_GET)
			continue;
		mb[n++] = mb_per_s(at);
		s->depth = at->depth;
		s->reached = before && before->bytes == at->bytes &&
			     before->depth < at->depth &&
			     mb_per_s(at) < GROWS * mb_per_s(before);
		before = at;
	}
	s->link_mb_per_s = near_most(mb, n);
}

/* The highest quantile that so many requests show. */
static double seen(const struct point *p)
{
	return 1 - 1 / (double)p->n;
}

static void write_store(const struct points *p, const struct store *s, FILE *f)
{
	const struct point *list = points_find(p, POINT_READDIR, 0, 1);
	static const char *const heads[] = { "open", "lookup" };
	double less = (double)s->shortest->bytes * 1e3 / s->channel_mb_per_s;

	fprintf(f,
		"channels:\n  source: one GET of %" PRIu64
		" bytes at a time, behind its first byte (%" PRIu64
		" of them)\n  verified: true\n  mb_per_s: %.4g\n",
		s->longest->bytes, s->longest->n, s->channel_mb_per_s);
	fprintf(f,
		s->reached ? "link:\n  source: %" PRIu64
			     " GETs at once\n  verified: true\n  mb_per_s: "
			     "%.4g\n"
			   : "# no link: %" PRIu64
			     " GETs at once had %.4g MB/s, and fewer so much "
			     "less that more would have more\n",
		s->depth, s->link_mb_per_s);
	for (size_t i = 0; i < ARRAY_SIZE(heads); i++) {
		fprintf(f,
			"%s:\n  source: a HEAD request, taken to be as slow as "
			"the first byte of a GET\n  verified: false\n",
			heads[i]);
		times_write(f, "latency", s->shortest, less, seen(s->shortest));
	}
	if (list) {
		fprintf(f,
			"readdir:\n  source: a page of a listing (%" PRIu64
			" of them)\n  verified: true\n",
			list->n);
		times_write(f, "latency", list, 0, seen(list));
	}
	fprintf(f,
		"read:\n  source: the first byte of a GET of %" PRIu64
		" bytes, one at a time (%" PRIu64
		" of them)\n  verified: true\n",
		s->shortest->bytes, s->shortest->n);
	times_write(f, "latency", s->shortest, less, seen(s->shortest));
}

static int fit_store(const struct points *p, const struct fit_text *text,
		     FILE *f, struct err *err)
{
	struct store s = { 0 };
	double ns;

	fit_alone(p, &s);
	fit_together(p, &s);
	ns = s.longest ? s.longest->rest_ns - s.longer->rest_ns : 0;
	if (ns <= 0)
		return err_set(
			err, -ENODATA,
			"too few points: shorter and longer GETs, one at "
			"a time, are needed");
	s.channel_mb_per_s =
		1e3 * (double)(s.longest->bytes - s.longer->bytes) / ns;
	write_head(text, f);
	write_store(p, &s, f);
	return 0;
}

int fit_write(const struct points *p, const struct fit_text *text, FILE *f,
	      struct err *err)
{
	struct fit v;
	int r;

	for (size_t i = 0; i < p->n; i++)
		if (p->point[i].kind == POINT_GET)
			return fit_store(p, text, f, err);
	r = fit(p, &v, err);
	if (r == 0)
		write_device(&v, text, f);
	return r;
}

/* --- what a profile says of the points ------------------------------------ */

static enum storage_op op_of(enum point_kind kind)
{
	static const enum storage_op ops[] = {
		[POINT_RANDOM] = STORAGE_READ,
		[POINT_SEQUENTIAL] = STORAGE_READ,
		[POINT_GET] = STORAGE_READ,
		[POINT_LOOKUP] = STORAGE_LOOKUP,
		[POINT_OPEN] = STORAGE_OPEN,
		[POINT_READDIR] = STORAGE_READDIR,
	};

	return ops[kind];
}

/* The next operation of a client: all on one file, as measured. */
static uint64_t schedule(struct device *d, const struct point *p,
			 struct rng *rng, uint64_t i, uint64_t now)
{
	bool read = p->kind <= POINT_GET;
	uint64_t at = p->kind == POINT_SEQUENTIAL ? i : rng_below(rng, 1 << 20);

	return device_schedule(d, op_of(p->kind), read ? 1 : i, at * p->bytes,
			       p->bytes, now);
}

static int simulate(const struct storage_profile *profile,
		    const struct point *p, struct point *ret)
{
	enum { MANY = 20000 };
	uint64_t n = MANY + p->depth, now = 0, warm = 0;
	_cleanup_free_ uint64_t *done = calloc(p->depth, sizeof(*done));
	_cleanup_free_ struct hist *h = calloc(1, sizeof(*h));
	struct rng rng = rng_stream(0, "predict", p->depth);
	struct device *d = NULL;

	if (!done || !h || device_new(profile, 0, &d) < 0)
		return -ENOMEM;
	/* `done` is a heap of completions, the earliest first: each makes room
	 * for an operation */
	for (uint64_t i = 0; i < n; i++) {
		now = done[0];
		if (i == p->depth)
			warm = now;
		done[0] = schedule(d, p, &rng, i, now);
		if (i >= p->depth)
			hist_add_alone(h, done[0] - now, 1);
		heap_times_down(done, p->depth, 0);
	}
	device_free(d);
	*ret = *p;
	point_fill(ret, h, MANY, now - warm);
	return 0;
}

static void predict_kept(const struct storage_profile *profile,
			 struct point *ret)
{
	double ns = profile->names.source ? (double)MIN(profile->names.kept_ns,
							POINT_KEPT_MOST)
					  : (double)POINT_KEPT_MOST;

	ret->n = 1;
	ret->per_s = 0;
	for (int i = 0; i < POINT_QUANTILES; i++)
		ret->ns[i] = ns;
}

int predict_point(const struct storage_profile *profile, const struct point *p,
		  struct point *ret)
{
	struct point first = *p, whole = *p;
	int r = 0;

	if (p->kind == POINT_KEPT)
		predict_kept(profile, &whole);
	else
		r = simulate(profile, p, &whole);
	first.bytes = MIN(first.bytes, 4 * KIB);
	if (r == 0 && p->kind == POINT_GET)
		r = simulate(profile, &first, &first);
	if (r == 0 && p->kind == POINT_GET) {
		first.bytes = p->bytes;
		first.per_s = whole.per_s;
		first.rest_ns = storage_channel_ns(profile, (double)p->bytes);
		whole = first;
	}
	if (r == 0)
		*ret = whole;
	return r;
}

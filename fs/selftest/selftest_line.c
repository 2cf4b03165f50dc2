/* SPDX-License-Identifier: MIT */
/*
 * The parameters of a line's run:
 *
 * scale    1 if a client can measure that. An operation shorter than the
 *	    kernel's round trip to this process is stretched to twice that.
 *	    A rate is slowed down until the mount itself can serve four times
 *	    as much. The rates of slow devices are sped up, within the same
 *	    limit.
 * n	    enough that sampling noise is a third of the allowed deviation;
 *	    the model, run with another seed, gives the noise. Published
 *	    figures leave less room, since the profile itself differs from
 *	    them. There the noise is known, because one reader of a fresh
 *	    mount gets the first draws of the device's seed. It is divided
 *	    out.
 * streams  latency: one, or several where the device has neither channels nor
 *	    a head, so that none waits for another. Rate: half again as many
 *	    as keep the model busy.
 */
#include "fs/selftest/selftest_line.h"

#include <errno.h>
#include <math.h>
#include <string.h>

#include "common/units.h"
#include "common/util.h"

static const uint64_t SMALL = 4 * KIB, LARGE = MIB;

/* Allowed deviations: the project's own targets (docs/timing.md). */
static const double MEAN_SHARE = .03, RATE_SHARE = .02, MEASURED_SHARE = .05;
static const double MEAN_WALL_NS = 20e3;

/* Shorter latencies are stretched to twice this; source: docs/timing.md, the
 * wake-up latency of an idle core. */
static const double SHORTEST_NS = 100e3;
/* Share of the mount's own rate. arbitrary: leaves most of the machine idle,
 * since a delayed request costs more than an immediate answer. */
static const double CEILING_SHARE = .25;
/* arbitrary: the longest time of one line, wall */
static const double LONGEST_S = 10;
enum { MODEL_OPERATIONS = 100000, MAX_PARALLEL = 64 };
/* arbitrary: takes a disk some seconds */
enum { MEASURED_READS = 300 };

/* --- the lines ------------------------------------------------------------ */

static void add_line(struct line *lines, size_t *n, enum line_kind kind,
		     enum storage_op op, uint64_t bytes, double want)
{
	lines[(*n)++] = (struct line){
		.kind = kind,
		.want = want,
		.load = { .op = op,
			  .bytes = bytes,
			  .sequential = kind == LINE_STREAM,
			  .streams = 1 },
	};
}

static void add_measured(struct line *lines, size_t *n,
			 const struct storage_profile *p)
{
	const struct storage_measured *v = p->random_reads.items;

	for (size_t i = 0; i < p->random_reads.n; i++)
		add_line(lines, n, LINE_MEASURED, STORAGE_READ, v[i].bytes,
			 v[i].mb_per_s);
}

int lines_new(const struct storage_profile *p, struct line **ret, size_t *ret_n)
{
	size_t most = STORAGE_N_READING + 2 + p->random_reads.n, n = 0;
	struct line *lines = calloc(most, sizeof(*lines));

	if (!lines)
		return -ENOMEM;
	for (int op = 0; op < STORAGE_N_READING; op++) {
		struct model_load l = { .op = op,
					.bytes = op == STORAGE_READ ? SMALL : 0,
					.streams = 1 };
		double mean = model_mean_ns(p, &l);

		if (mean > 0)
			add_line(lines, &n, LINE_LATENCY, op, l.bytes, mean);
	}
	add_measured(lines, &n, p);
	struct model_load l = { .op = STORAGE_READ, .bytes = SMALL };

	if (model_rate(p, &l) > 0)
		add_line(lines, &n, LINE_RATE, l.op, l.bytes,
			 model_rate(p, &l));
	l.bytes = LARGE;
	l.sequential = true;
	if (model_rate(p, &l) > 0)
		add_line(lines, &n, LINE_STREAM, l.op, l.bytes,
			 model_rate(p, &l) * (double)l.bytes / 1e6);
	*ret = lines;
	*ret_n = n;
	return 0;
}

void lines_free(struct line *lines, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		model_run_fini(&lines[i].model);
		client_run_fini(&lines[i].run);
	}
	free(lines);
}

/* --- the plan ------------------------------------------------------------- */

int line_streams(struct line *l, const struct storage_profile *p, uint64_t seed)
{
	int r;

	/* a second stream would add a seek to each read of the first */
	if (l->kind == LINE_LATENCY || l->kind == LINE_MEASURED ||
	    (l->load.sequential && model_seeks(p)))
		return 0;
	r = model_depth(p, &l->load, seed, &l->load.streams);
	l->load.streams += l->load.streams / 2 + 1;
	return r;
}

/* The number of streams that do not wait for each other. */
static size_t parallel(const struct line *l, const struct storage_profile *p,
		       double mean_wall_ns, double n)
{
	double rate = model_rate(p, &l->load), most = MAX_PARALLEL;

	if (p->channels.count || model_seeks(p) || mean_wall_ns < 4e6)
		return 1;
	if (rate > 0) /* a third of the highest rate */
		most = fmin(most, rate / 3 * l->want / 1e9);
	return (size_t)fmax(1, fmin(most, n * mean_wall_ns / 1e9 / 3));
}

/* Two digits are enough for a scale. */
static double rounded_up(double x)
{
	double unit = pow(10, floor(log10(x)) - 1);

	return ceil(x / unit - 1e-9) * unit;
}

static int plan_latency(struct line *l, const struct storage_profile *p,
			uint64_t seed, double time_scale)
{
	struct model_run alone = { .n = MODEL_OPERATIONS };
	double n, mean_ns;
	int r = model_run(p, &l->load, seed, &alone);

	model_run_fini(&alone);
	if (r < 0)
		return r;
	mean_ns = alone.mean_ns;
	l->time_scale = time_scale;
	if (time_scale <= 0)
		l->time_scale = mean_ns >= SHORTEST_NS
					? 1
					: rounded_up(2 * SHORTEST_NS / mean_ns);
	if (l->kind == LINE_MEASURED) {
		l->n = MEASURED_READS;
		return 0;
	}
	n = pow(alone.sd_ns / mean_ns / (MEAN_SHARE / 3.3), 2);
	l->n = (size_t)fmax(1000, n);
	l->load.streams = parallel(l, p, mean_ns * l->time_scale, (double)l->n);
	l->model.n = MODEL_OPERATIONS;
	return model_run(p, &l->load, seed + 1, &l->model);
}

static int plan_rate(struct line *l, const struct storage_profile *p,
		     uint64_t seed, double time_scale)
{
	double rate = model_rate(p, &l->load), noise, n;
	double slowest = rate / (l->ceiling * CEILING_SHARE), x = 1;
	size_t block = MAX(4096, 16 * l->load.streams);
	int r = model_noise(p, &l->load, seed, block, &noise);

	if (r < 0)
		return r;
	n = (double)block * pow(noise / (RATE_SHARE / 4), 2);
	n = fmax(n, 12. * (double)l->load.streams);
	if (slowest > 1)
		x = rounded_up(slowest);
	else if (n / rate > LONGEST_S)
		x = rounded_up(fmax(slowest, LONGEST_S * rate / n));
	l->time_scale = time_scale > 0 ? time_scale : x;
	/* two seconds at least: the machine has its own noise */
	l->n = (size_t)fmax(n, 2 * rate / l->time_scale);
	l->ceiling *= l->time_scale;
	if (l->kind == LINE_STREAM)
		l->ceiling *= (double)l->load.bytes / 1e6;
	return 0;
}

int line_plan(struct line *l, const struct storage_profile *p, uint64_t seed,
	      double time_scale)
{
	int r;

	switch (l->kind) {
	case LINE_LATENCY:
	case LINE_MEASURED: r = plan_latency(l, p, seed, time_scale); break;
	default: r = plan_rate(l, p, seed, time_scale);
	}
	switch (l->kind) {
	case LINE_LATENCY:
		l->allowed = fmax(MEAN_SHARE * l->want,
				  MEAN_WALL_NS / l->time_scale);
		break;
	case LINE_MEASURED: l->allowed = MEASURED_SHARE * l->want; break;
	default: l->allowed = RATE_SHARE * l->want;
	}
	return r;
}

/* --- the verdict ---------------------------------------------------------- */

/* The Kolmogorov-Smirnov distance of two samples, both ascending; `a` is
 * divided by the scale. */
static double ks_distance(const uint64_t *a, size_t n_a, double scale,
			  const uint64_t *b, size_t n_b)
{
	size_t i = 0, j = 0;
	double most = 0;

	while (i < n_a && j < n_b) {
		double x = (double)a[i] / scale, y = (double)b[j];
		double at = fmin(x, y);

		while (i < n_a && (double)a[i] / scale <= at)
			i++;
		while (j < n_b && (double)b[j] <= at)
			j++;
		most = fmax(most, fabs((double)i / (double)n_a -
				       (double)j / (double)n_b));
	}
	return most;
}

/* See the top: the mean of the draws over the mean of the distribution. */
static int measure_luck(struct line *l, const struct storage_profile *p,
			uint64_t seed)
{
	struct model_run drawn = { .n = MAX(l->run.n_done, (size_t)1) };
	int r = model_run(p, &l->load, seed, &drawn);

	l->luck = drawn.mean_ns / model_mean_ns(p, &l->load);
	model_run_fini(&drawn);
	return r;
}

/* The rate of a stream, 10^6 bytes a second, without seeks: a device with a
 * head seeks whenever a reader restarts its file. */
static double streamed(const struct line *l, const struct storage_profile *p)
{
	const struct client_run *run = &l->run;
	struct model_load seek = { .op = l->load.op, .streams = 1 };
	double rate = run->rate * l->time_scale;
	double again = run->n_done ? (double)run->n_again / (double)run->n_done
				   : 0;

	if (model_seeks(p))
		rate /= 1 - rate * again * model_mean_ns(p, &seek) / 1e9;
	return rate * (double)l->load.bytes / 1e6;
}

int line_judge(struct line *l, const struct storage_profile *p, uint64_t seed)
{
	const struct client_run *run = &l->run;
	double mb = (double)l->load.bytes / 1e6;
	int r = 0;

	switch (l->kind) {
	case LINE_LATENCY:
		l->got = run->mean_ns / l->time_scale;
		l->ks = l->model.sd_ns > 0
				? ks_distance(run->ns, run->n_done,
					      l->time_scale, l->model.ns,
					      l->model.n)
				: -1;
		break;
	case LINE_RATE: l->got = run->rate * l->time_scale; break;
	case LINE_STREAM: l->got = streamed(l, p); break;
	case LINE_MEASURED:
		r = measure_luck(l, p, seed);
		if (r == 0 && run->n_done)
			l->got = l->luck * 1e9 / run->mean_ns * l->time_scale *
				 mb;
		break;
	}
	l->verdict = fabs(l->got - l->want) <= l->allowed ? LINE_OK : LINE_MISS;
	return r;
}

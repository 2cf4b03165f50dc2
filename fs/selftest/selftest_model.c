/* SPDX-License-Identifier: MIT */
#include "fs/selftest/selftest_model.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "common/heap.h"
#include "common/units.h"
#include "common/util.h"
#include "fs/device/device.h"

/* arbitrary: more threads would measure the machine's scheduler, not the
 * mount */
enum { MAX_STREAMS = 4096 };

/* --- by formula ----------------------------------------------------------- */

/* 10^6 bytes a second are one byte in 1000 / mb_per_s ns; 0: no limit. */
static double stream_ns(double bytes, double mb_per_s)
{
	return mb_per_s > 0 ? bytes * 1000 / mb_per_s : 0;
}

/* The time of the head's movement; `busy`: the queue is full, and the device
 * serves the nearest request first. */
static double seek_ns(const struct storage_profile *p,
		      const struct model_load *load, bool busy)
{
	const struct storage_class *c = &p->op[load->op];
	const struct storage_reorder *v = c->reorder.items;
	double share = 1;

	if (load->sequential)
		return 0;
	if (c->reorder.n)
		share = v[busy ? c->reorder.n - 1 : 0].share;
	return share * (dist_time_mean(&c->seek) + (double)c->rotation_ns / 2);
}

static double slots(const struct storage_profile *p,
		    const struct model_load *load)
{
	double n = (double)p->op[load->op].slots;

	if (p->iops.slot_bytes && load->bytes)
		n *= (double)((load->bytes - 1) / p->iops.slot_bytes + 1);
	return n;
}

double model_mean_ns(const struct storage_profile *p,
		     const struct model_load *load)
{
	const struct storage_class *c = &p->op[load->op];
	double bytes = (double)load->bytes;
	double cap = p->iops.per_s > 0 ? 1e9 * slots(p, load) / p->iops.per_s
				       : 0;
	double alone = seek_ns(p, load, false) + dist_time_mean(&c->occupancy) +
		       fmax(storage_channel_ns(p, bytes),
			    stream_ns(bytes, p->link.mb_per_s)) +
		       dist_time_mean(&c->latency);

	if (c->loaded.n)
		alone = storage_loaded_ns(c, load->bytes, 1, -1);
	/* single operations are no faster than the cap either */
	return alone > 0 ? fmax(alone, cap) : 0;
}

double model_rate(const struct storage_profile *p,
		  const struct model_load *load)
{
	const struct storage_class *c = &p->op[load->op];
	double bytes = (double)load->bytes, stripe, pieces, hold, n;
	double least = INFINITY;

	n = slots(p, load);
	if (p->iops.per_s > 0 && n > 0)
		least = p->iops.per_s / n;
	n = (double)c->slots;
	if (p->quota.per_s > 0 && n > 0)
		least = fmin(least, p->quota.per_s / n);
	if (p->quota.mb_per_s > 0 && bytes > 0)
		least = fmin(least, 1e9 / stream_ns(bytes, p->quota.mb_per_s));
	if (p->link.mb_per_s > 0 && bytes > 0)
		least = fmin(least, 1e9 / stream_ns(bytes, p->link.mb_per_s));
	stripe = (double)p->channels.stripe_bytes;
	pieces = stripe > 0 ? fmax(1, ceil(bytes / stripe)) : 1;
	hold = seek_ns(p, load, true) + pieces * dist_time_mean(&c->occupancy) +
	       pieces * storage_channel_ns(p, bytes / pieces);
	if (p->channels.count && hold > 0)
		least = fmin(least, (double)p->channels.count * 1e9 / hold);
	return isinf(least) ? 0 : least;
}

bool model_seeks(const struct storage_profile *p)
{
	const struct storage_class *c = &p->op[STORAGE_READ];

	return dist_time_mean(&c->seek) > 0 || c->rotation_ns;
}

/* --- in virtual time ------------------------------------------------------ */

/* Run n operations; `took`: ns of each, in order; `sent`: when each began. */
static int closed_loop(const struct storage_profile *p,
		       const struct model_load *load, uint64_t seed, size_t n,
		       uint64_t *took, uint64_t *sent)
{
	_cleanup_free_ uint64_t *next = calloc(load->streams, sizeof(*next));
	struct device *d;
	uint64_t at = 0;
	int r = next ? device_new(p, seed, &d) : -ENOMEM;

	if (r < 0)
		return r;
	for (size_t i = 0; i < n; i++) {
		uint64_t now = next[0], object = load->sequential ? 1 : i + 1;
		uint64_t done = device_schedule(d, load->op, object, at,
						load->bytes, now);

		took[i] = done - now;
		if (sent)
			sent[i] = now;
		next[0] = done;
		heap_times_down(next, load->streams, 0);
		if (load->sequential)
			at += load->bytes;
	}
	device_free(d);
	return 0;
}

static void sum_up(struct model_run *run)
{
	double sum = 0, squares = 0;

	for (size_t i = 0; i < run->n; i++)
		sum += (double)run->ns[i];
	run->mean_ns = sum / (double)run->n;
	for (size_t i = 0; i < run->n; i++)
		squares += pow((double)run->ns[i] - run->mean_ns, 2);
	run->sd_ns = sqrt(squares / (double)run->n);
	qsort(run->ns, run->n, sizeof(*run->ns), util_compare_u64);
}

int model_run(const struct storage_profile *p, const struct model_load *load,
	      uint64_t seed, struct model_run *run)
{
	_cleanup_free_ uint64_t *sent = calloc(run->n, sizeof(*sent));
	/* skip the first few rounds of all streams */
	size_t first = MIN(4 * load->streams, run->n / 2);
	int r;

	run->ns = calloc(run->n, sizeof(*run->ns));
	r = sent && run->ns ? closed_loop(p, load, seed, run->n, run->ns, sent)
			    : -ENOMEM;
	if (r < 0) {
		model_run_fini(run);
		return r;
	}
	uint64_t wall = sent[run->n - 1] - sent[first];

	run->rate =
		wall ? (double)(run->n - 1 - first) * NS_PER_S / (double)wall
		     : 0;
	sum_up(run);
	return 0;
}

void model_run_fini(struct model_run *run)
{
	free(run->ns);
	run->ns = NULL;
}

double model_quantile(const uint64_t *ns, size_t n, double q)
{
	return n ? (double)ns[MIN((size_t)(q * (double)n), n - 1)] : 0;
}

int model_depth(const struct storage_profile *p, const struct model_load *load,
		uint64_t seed, size_t *ret)
{
	double want = model_rate(p, load) * .998;
	struct model_load l = *load;

	for (l.streams = 1; l.streams < MAX_STREAMS;
	     l.streams += (l.streams + 3) / 4) {
		struct model_run run = { .n = 10000 + 20 * l.streams };
		int r = model_run(p, &l, seed, &run);

		model_run_fini(&run);
		if (r < 0)
			return r;
		if (run.rate >= want)
			break;
	}
	*ret = MIN(l.streams, (size_t)MAX_STREAMS);
	return 0;
}

int model_noise(const struct storage_profile *p, const struct model_load *load,
		uint64_t seed, size_t n, double *ret)
{
	enum { REPEATS = 20 };
	double sum = 0, squares = 0, mean;

	for (uint64_t i = 0; i < REPEATS; i++) {
		struct model_run run = { .n = n };
		int r = model_run(p, load, seed + i, &run);

		model_run_fini(&run);
		if (r < 0)
			return r;
		sum += run.rate;
		squares += run.rate * run.rate;
	}
	mean = sum / REPEATS;
	*ret = sqrt(fmax(0, squares / REPEATS - mean * mean)) / mean;
	return 0;
}

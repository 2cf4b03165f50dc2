/* SPDX-License-Identifier: MIT */
#include "common/hist.h"

#include "common/util.h"

/*
 * Values below 64 have a bucket each; above, the exponent picks a row of 64
 * and the six bits after the leading one the column.
 */
static unsigned bucket_of(uint64_t ns)
{
	if (ns < HIST_SUB)
		return (unsigned)ns;
	unsigned e = 63u - (unsigned)__builtin_clzll(ns);
	unsigned row = e - HIST_SUB_BITS + 1;
	unsigned col = (unsigned)(ns >> (e - HIST_SUB_BITS)) & (HIST_SUB - 1);

	return MIN(row * HIST_SUB + col, (unsigned)HIST_BUCKETS - 1);
}

/* The middle of a bucket. */
static double value_of(unsigned b)
{
	if (b < HIST_SUB)
		return b;
	unsigned shift = b / HIST_SUB - 1;

	return ((double)(HIST_SUB + b % HIST_SUB) + 0.5) *
	       (double)(1ull << shift);
}

void hist_add(struct hist *h, uint64_t ns)
{
	uint64_t max = __atomic_load_n(&h->max_ns, __ATOMIC_RELAXED);

	__atomic_fetch_add(&h->bucket[bucket_of(ns)], 1, __ATOMIC_RELAXED);
	__atomic_fetch_add(&h->n, 1, __ATOMIC_RELAXED);
	__atomic_fetch_add(&h->sum_ns, ns, __ATOMIC_RELAXED);
	while (ns > max &&
	       !__atomic_compare_exchange_n(&h->max_ns, &max, ns, 1,
					    __ATOMIC_RELAXED, __ATOMIC_RELAXED))
		;
}

static uint64_t get(const uint64_t *p)
{
	return __atomic_load_n(p, __ATOMIC_RELAXED);
}

static void raise_by(uint64_t *p, uint64_t by)
{
	__atomic_store_n(p, __atomic_load_n(p, __ATOMIC_RELAXED) + by,
			 __ATOMIC_RELAXED);
}

void hist_add_alone(struct hist *h, uint64_t ns, uint64_t times)
{
	if (!times)
		return;
	raise_by(&h->bucket[bucket_of(ns)], times);
	raise_by(&h->n, times);
	raise_by(&h->sum_ns, ns * times);
	if (ns > __atomic_load_n(&h->max_ns, __ATOMIC_RELAXED))
		__atomic_store_n(&h->max_ns, ns, __ATOMIC_RELAXED);
}

void hist_reset(struct hist *h)
{
	for (unsigned b = 0; b < HIST_BUCKETS; b++)
		__atomic_store_n(&h->bucket[b], 0, __ATOMIC_RELAXED);
	__atomic_store_n(&h->n, 0, __ATOMIC_RELAXED);
	__atomic_store_n(&h->sum_ns, 0, __ATOMIC_RELAXED);
	__atomic_store_n(&h->max_ns, 0, __ATOMIC_RELAXED);
}

void hist_merge(struct hist *into, const struct hist *from)
{
	for (unsigned b = 0; b < HIST_BUCKETS; b++)
		into->bucket[b] += get(&from->bucket[b]);
	into->n += get(&from->n);
	into->sum_ns += get(&from->sum_ns);
	into->max_ns = MAX(into->max_ns, get(&from->max_ns));
}

double hist_quantile(const struct hist *h, double q)
{
	double rank = q * (double)get(&h->n), max = (double)get(&h->max_ns);
	uint64_t seen = 0;

	if (rank <= 0)
		rank = 1;
	for (unsigned b = 0; b < HIST_BUCKETS; b++) {
		seen += get(&h->bucket[b]);
		if ((double)seen >= rank)
			return MIN(value_of(b), max);
	}
	return max;
}

double hist_mean(const struct hist *h)
{
	uint64_t n = get(&h->n);

	return n ? (double)get(&h->sum_ns) / (double)n : 0;
}

json_t *hist_json(const struct hist *h, double unit_ns)
{
	return json_pack("{s:f, s:f, s:f, s:f, s:f}", "mean",
			 hist_mean(h) / unit_ns, "p50",
			 hist_quantile(h, .5) / unit_ns, "p90",
			 hist_quantile(h, .9) / unit_ns, "p99",
			 hist_quantile(h, .99) / unit_ns, "max",
			 (double)get(&h->max_ns) / unit_ns);
}

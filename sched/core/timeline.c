/* SPDX-License-Identifier: MIT */
#include "sched/core/timeline.h"

#include "common/units.h"
#include "common/util.h"

void timeline_init(struct sched_timeline *t, uint64_t start_ns)
{
	*t = (struct sched_timeline){ .start_ns = start_ns,
				      .end_ns = start_ns,
				      /* arbitrary: shorter than any job */
				      .bin_ns = NS_PER_US };
}

static void double_width(struct sched_timeline *t)
{
	for (size_t i = 0; i < TIMELINE_BINS; i++) {
		t->sum[i / 2] = (i % 2 ? t->sum[i / 2] : 0) + t->sum[i];
		if (i >= TIMELINE_BINS / 2)
			t->sum[i] = 0;
	}
	t->bin_ns *= 2;
}

void timeline_add(struct sched_timeline *t, uint64_t to_ns, double value)
{
	while ((to_ns - t->start_ns) / t->bin_ns >= TIMELINE_BINS)
		double_width(t);
	while (t->end_ns < to_ns) {
		uint64_t bin = (t->end_ns - t->start_ns) / t->bin_ns;
		uint64_t next_ns = t->start_ns + (bin + 1) * t->bin_ns;
		uint64_t until_ns = MIN(next_ns, to_ns);

		t->sum[bin] += value * (double)(until_ns - t->end_ns);
		t->end_ns = until_ns;
	}
}

size_t timeline_n(const struct sched_timeline *t)
{
	uint64_t length_ns = t->end_ns - t->start_ns;

	return (length_ns + t->bin_ns - 1) / t->bin_ns;
}

double timeline_mean(const struct sched_timeline *t, size_t bin)
{
	uint64_t from_ns = t->start_ns + bin * t->bin_ns;
	uint64_t until_ns = MIN(from_ns + t->bin_ns, t->end_ns);

	return t->sum[bin] / (double)(until_ns - from_ns);
}

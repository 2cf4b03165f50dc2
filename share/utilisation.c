/* SPDX-License-Identifier: MIT */
#include "share/utilisation.h"

#include "common/units.h"
#include "common/util.h"

#define SLOT_NS (NS_PER_S / 10)

/* Nothing until `to`. */
static void idle(struct share_busy *b, uint64_t to)
{
	uint64_t last = to / SLOT_NS;

	/* older than the ring: all slots are empty */
	if (last > b->slot_at + SHARE_SLOTS)
		b->slot_at = last - SHARE_SLOTS;
	while (b->slot_at < last)
		b->slot_ns[++b->slot_at % SHARE_SLOTS] = 0;
}

/* In [from, to), of which a part may have been counted. */
static void busy(struct share_busy *b, uint64_t from, uint64_t to)
{
	from = MAX(from, b->until_ns);
	if (from >= to)
		return;
	idle(b, from);
	b->ns += to - from;
	b->until_ns = to;
	while (from < to) {
		uint64_t end = MIN(to, (b->slot_at + 1) * SLOT_NS);

		b->slot_ns[b->slot_at % SHARE_SLOTS] += end - from;
		from = end;
		idle(b, from);
	}
}

void utilisation_count(struct share *s, uint64_t now)
{
	for (uint32_t g = 0; g < s->config.n_gpus; g++)
		if (s->gpus[g].n_running)
			busy(&s->gpus[g].busy, s->now, now);
	for (uint32_t i = 0; i < s->n_jobs; i++) {
		const struct share_job *job = s->jobs[i];
		struct share_quota *q = job->want.quota;

		for (uint32_t g = 0; job->running && q && g < s->config.n_gpus;
		     g++)
			if (share_on(job, g))
				busy(&q->busy[g], s->now, now);
	}
}

double utilisation_at(const struct share_busy *b, uint64_t now)
{
	struct share_busy a = *b;
	uint64_t sum = 0, into = now % SLOT_NS, oldest;

	idle(&a, now);
	for (uint64_t i = 0; i < 10 && i <= a.slot_at; i++)
		sum += a.slot_ns[(a.slot_at - i) % SHARE_SLOTS];
	if (a.slot_at >= 10) { /* the part of it that is in the second */
		oldest = a.slot_ns[(a.slot_at - 10) % SHARE_SLOTS];
		sum += (uint64_t)((double)oldest * (double)(SLOT_NS - into) /
				  SLOT_NS);
	}
	return (double)sum / (double)MIN(NS_PER_S, MAX(now, 1));
}

/* SPDX-License-Identifier: MIT */
#include "share/utilisation.h"

#include "common/units.h"
#include "common/util.h"

#define SLOT_NS (NS_PER_S / 10)

void utilisation_busy(struct share_gpu *g, uint64_t from, uint64_t to)
{
	g->busy_ns += to - from;
	while (from < to) {
		uint64_t end = MIN(to, (g->slot_at + 1) * SLOT_NS);

		g->slot_busy[g->slot_at % SHARE_SLOTS] += end - from;
		from = end;
		if (from == (g->slot_at + 1) * SLOT_NS)
			g->slot_busy[++g->slot_at % SHARE_SLOTS] = 0;
	}
}

void utilisation_idle(struct share_gpu *g, uint64_t to)
{
	uint64_t last = to / SLOT_NS;

	/* older than the ring: all slots are empty */
	if (last > g->slot_at + SHARE_SLOTS)
		g->slot_at = last - SHARE_SLOTS;
	while (g->slot_at < last)
		g->slot_busy[++g->slot_at % SHARE_SLOTS] = 0;
}

double share_utilisation(const struct share *s, uint32_t gpu)
{
	const struct share_gpu *g = &s->gpus[gpu];
	uint64_t sum = 0, into = s->now % SLOT_NS, oldest;

	for (uint64_t i = 0; i < 10 && i <= g->slot_at; i++)
		sum += g->slot_busy[(g->slot_at - i) % SHARE_SLOTS];
	if (g->slot_at >= 10) { /* the part of it that is in the second */
		oldest = g->slot_busy[(g->slot_at - 10) % SHARE_SLOTS];
		sum += (uint64_t)((double)oldest * (double)(SLOT_NS - into) /
				  SLOT_NS);
	}
	return (double)sum / (double)MIN(NS_PER_S, MAX(s->now, 1));
}

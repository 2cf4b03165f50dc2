/* SPDX-License-Identifier: MIT */
#include "sched/live/down.h"

#include "common/tick.h"
#include "common/units.h"
#include "common/util.h"

/* arbitrary: a server that is started again takes about a second; with five
 * retries a job gives up after half a minute */
#define PAUSE_NS (1 * NS_PER_S)
/* arbitrary: one minute more hardly matters to who waited for one */
enum { DOUBLINGS = 6 };

void down_begin(struct live *l, uint32_t node)
{
	struct live_down *d = &l->downs[node];

	if (d->until_ns)
		return; /* one outage */
	d->until_ns = tick_wall() + (PAUSE_NS << MIN(d->n_failed, DOUBLINGS));
	d->n_failed++;
	cluster_set_down(&l->cluster, node, true);
}

void down_never(struct live *l, uint32_t node)
{
	l->downs[node].n_failed = 0;
}

void down_end(struct live *l)
{
	uint64_t now = tick_wall();

	for (uint32_t i = 0; i < l->cluster.n; i++) {
		struct live_down *d = &l->downs[i];

		if (!d->until_ns || d->until_ns > now)
			continue;
		d->until_ns = 0;
		cluster_set_down(&l->cluster, i, false);
		l->changed = true;
	}
}

uint64_t down_left(const struct live *l)
{
	uint64_t now = tick_wall(), left = TICK_NEVER;

	/* a run that ends starts nothing any more */
	for (uint32_t i = 0; !l->closing && i < l->cluster.n; i++) {
		uint64_t until = l->downs[i].until_ns;

		if (until)
			left = MIN(left, until > now ? until - now : 0);
	}
	return left;
}

/* SPDX-License-Identifier: MIT */
#include "emu/node/cores.h"

#include <errno.h>
#include <stdlib.h>

#include "common/heap.h"
#include "common/util.h"

struct cores {
	uint32_t n;
	uint64_t scheduled_ns; /* the cost of all samples so far */
	uint64_t busy[];       /* a heap: until when, the earliest first */
};

int cores_new(uint32_t n, struct cores **ret)
{
	struct cores *c = calloc(1, sizeof(*c) + n * sizeof(c->busy[0]));

	if (!c)
		return -ENOMEM;
	c->n = n;
	*ret = c;
	return 0;
}

void cores_free(struct cores *c)
{
	free(c);
}

uint64_t cores_schedule(struct cores *c, uint64_t now, uint64_t cost_ns)
{
	uint64_t done = MAX(now, c->busy[0]) + cost_ns;

	c->busy[0] = done;
	heap_times_down(c->busy, c->n, 0);
	c->scheduled_ns += cost_ns;
	return done;
}

/*
 * A core that is busy at `now` stays busy without a gap, because all its
 * samples have arrived by then. The remaining work is therefore the sum of
 * these times.
 */
uint64_t cores_busy_ns(const struct cores *c, uint64_t now)
{
	uint64_t left = 0;

	for (uint32_t i = 0; i < c->n; i++)
		left += c->busy[i] > now ? c->busy[i] - now : 0;
	return c->scheduled_ns > left ? c->scheduled_ns - left : 0;
}

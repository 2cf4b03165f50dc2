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

/* With more of them than cores, the next sample begins when all but n - 1 are
 * done: the heap has the n latest. */
int cores_resize(struct cores **c, uint32_t n, const uint64_t *running,
		 size_t n_running, uint64_t waiting_ns)
{
	struct cores *fresh;
	int r = cores_new(n, &fresh);

	if (r < 0)
		return r;
	fresh->scheduled_ns = (*c)->scheduled_ns - waiting_ns;
	for (size_t i = 0; i < n_running; i++) {
		if (running[i] <= fresh->busy[0])
			continue;
		fresh->busy[0] = running[i];
		heap_times_down(fresh->busy, n, 0);
	}
	cores_free(*c);
	*c = fresh;
	return 0;
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

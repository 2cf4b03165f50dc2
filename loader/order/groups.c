/* SPDX-License-Identifier: MIT */
#include "loader/order/groups.h"

#include <errno.h>
#include <stdlib.h>

#include "common/util.h"

void groups_fini(struct order_groups *g)
{
	free(g->first);
	free(g->sample);
	free(g->turn);
}

static uint32_t group_of(const struct order_input *in, size_t i)
{
	return in->group ? in->group[i] : (uint32_t)i;
}

/* Counting sort of the samples by group. */
int groups_init(struct order_groups *g, const struct order_input *in)
{
	_cleanup_free_ size_t *at = NULL;

	g->n = in->group ? in->n_groups : (uint32_t)in->n;
	g->first = calloc((size_t)g->n + 1, sizeof(*g->first));
	at = calloc((size_t)g->n + 1, sizeof(*at));
	g->sample = calloc(in->n, sizeof(*g->sample));
	g->turn = calloc(g->n, sizeof(*g->turn));
	if (!g->first || !at || !g->sample || !g->turn)
		return -ENOMEM;
	for (size_t i = 0; i < in->n; i++)
		g->first[group_of(in, i) + 1]++;
	for (uint32_t i = 0; i < g->n; i++) {
		g->first[i + 1] += g->first[i];
		at[i] = g->first[i];
		g->turn[i] = i;
	}
	for (size_t i = 0; i < in->n; i++)
		g->sample[at[group_of(in, i)]++] = (uint32_t)i;
	return 0;
}

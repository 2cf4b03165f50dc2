/* SPDX-License-Identifier: MIT */
#include "fs/cache/policy/policy_ghost.h"

void ghosts_push(struct ghosts *g, unsigned queue, struct cache_entry *e)
{
	if (g->n == g->max)
		ghosts_drop(g, g->queue[queue].tail ? queue : !queue);
	e->state = ENTRY_GHOST;
	e->queue = queue;
	policy_list_push(&g->queue[queue], e);
	g->n++;
}

void ghosts_remove(struct ghosts *g, struct cache_entry *ghost)
{
	policy_list_remove(&g->queue[ghost->queue], ghost);
	g->n--;
}

void ghosts_drop(struct ghosts *g, unsigned queue)
{
	struct cache_entry *ghost = g->queue[queue].tail;

	ghosts_remove(g, ghost);
	policy_list_push(&g->dropped, ghost);
}

void ghosts_trim(struct ghosts *g, unsigned queue, uint64_t bytes)
{
	while (g->queue[queue].bytes > bytes)
		ghosts_drop(g, queue);
}

struct cache_entry *ghosts_forget(struct ghosts *g)
{
	struct cache_entry *ghost = g->dropped.tail;

	if (ghost)
		policy_list_remove(&g->dropped, ghost);
	return ghost;
}

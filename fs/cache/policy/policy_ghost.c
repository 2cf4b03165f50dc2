/* SPDX-License-Identifier: MIT */
#include "fs/cache/policy/policy_ghost.h"

#include <errno.h>
#include <stdlib.h>

#include "fs/cache/cache_index.h"

int ghosts_init(struct ghosts *g, size_t n)
{
	uint32_t slots = 16;

	while (slots < n)
		slots *= 2;
	*g = (struct ghosts){ .n = (uint32_t)n, .mask = slots - 1 };
	/* calloc: unused pages are never touched */
	g->v = calloc(n + 1, sizeof(*g->v));
	g->table = calloc(slots, sizeof(*g->table));
	return g->v && g->table ? 0 : -ENOMEM;
}

void ghosts_fini(struct ghosts *g)
{
	free(g->v);
	free(g->table);
	*g = (struct ghosts){ 0 };
}

static uint32_t *bucket(const struct ghosts *g, uint64_t key)
{
	return &g->table[cache_index_hash(key) & g->mask];
}

struct ghost *ghosts_find(const struct ghosts *g, uint64_t key)
{
	for (uint32_t i = *bucket(g, key); i; i = g->v[i].chain)
		if (g->v[i].key == key)
			return &g->v[i];
	return NULL;
}

static uint32_t take(struct ghosts *g, int queue)
{
	uint32_t i;

	if (!g->free && g->n_used == g->n) {
		struct ghost *o = ghosts_oldest(g, queue);

		ghosts_remove(g, o ? o : ghosts_oldest(g, !queue));
	}
	if (!g->free)
		return ++g->n_used;
	i = g->free;
	g->free = g->v[i].chain;
	return i;
}

void ghosts_push(struct ghosts *g, int queue, uint64_t key, uint64_t bytes,
		 uint64_t value)
{
	struct ghost_queue *q = &g->queue[queue];
	uint32_t i = take(g, queue), *b = bucket(g, key);

	g->v[i] = (struct ghost){ .key = key,
				  .bytes = bytes,
				  .value = value,
				  .prev = q->newest,
				  .chain = *b,
				  .queue = (uint32_t)queue };
	*b = i;
	if (q->newest)
		g->v[q->newest].next = i;
	else
		q->oldest = i;
	q->newest = i;
	q->n++;
	q->bytes += bytes;
}

void ghosts_remove(struct ghosts *g, struct ghost *ghost)
{
	struct ghost_queue *q = &g->queue[ghost->queue];
	uint32_t i = (uint32_t)(ghost - g->v), *b = bucket(g, ghost->key);

	while (*b != i)
		b = &g->v[*b].chain;
	*b = ghost->chain;
	if (ghost->prev)
		g->v[ghost->prev].next = ghost->next;
	else
		q->oldest = ghost->next;
	if (ghost->next)
		g->v[ghost->next].prev = ghost->prev;
	else
		q->newest = ghost->prev;
	q->n--;
	q->bytes -= ghost->bytes;
	ghost->chain = g->free;
	g->free = i;
}

struct ghost *ghosts_oldest(const struct ghosts *g, int queue)
{
	uint32_t i = g->queue[queue].oldest;

	return i ? &g->v[i] : NULL;
}

void ghosts_trim(struct ghosts *g, int queue, uint64_t bytes)
{
	while (g->queue[queue].bytes > bytes)
		ghosts_remove(g, ghosts_oldest(g, queue));
}

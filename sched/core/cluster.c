/* SPDX-License-Identifier: MIT */
#include "sched/core/cluster.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/util.h"

int cluster_model(struct cluster *c, const char *name)
{
	size_t i = 0;

	while (i < c->n_models && strcmp(c->models[i], name))
		i++;
	if (i == CLUSTER_MODELS_MAX)
		return -E2BIG;
	if (i == c->n_models) {
		c->models[i] = strdup(name);
		if (!c->models[i])
			return -ENOMEM;
		c->n_models++;
	}
	return (int)i;
}

static void clear_node(struct sched_node *n)
{
	n->cpu_free = n->cpu_milli;
	n->memory_free = n->memory_mib;
	for (uint32_t g = 0; g < CLUSTER_GPUS_MAX; g++)
		n->gpu_free[g] = g < n->n_gpus ? GPU_MILLI : 0;
	memset(n->held, 0, sizeof(n->held));
	n->changes++;
}

int cluster_add(struct cluster *c, const struct sched_node *n,
		const char *model, uint64_t count)
{
	int m = cluster_model(c, model), r;

	if (m < 0)
		return m;
	if (count > CLUSTER_NODES_MAX - c->n)
		return -E2BIG;
	r = util_reserve(&c->nodes, &c->allocated, c->n + count,
			 sizeof(*c->nodes));
	if (r < 0)
		return r;
	for (uint64_t i = 0; i < count; i++) {
		struct sched_node *to = &c->nodes[c->n++];

		*to = *n;
		to->model = (uint8_t)m;
		clear_node(to);
		c->whole.gpu_milli += (uint64_t)n->n_gpus * GPU_MILLI;
		c->whole.cpu_milli += n->cpu_milli;
		c->whole.memory_mib += n->memory_mib;
		c->cache_mib += n->cache_mib;
		c->remote_mib_s += n->remote_mib_s;
	}
	c->gpus_max = MAX(c->gpus_max, n->n_gpus);
	c->free = c->whole;
	return 0;
}

void cluster_fini(struct cluster *c)
{
	free(c->nodes);
	for (size_t i = 0; i < c->n_models; i++)
		free(c->models[i]);
	*c = (struct cluster){ 0 };
}

int cluster_copy(const struct cluster *from, struct cluster *ret)
{
	*ret = *from;
	memset(ret->models, 0, sizeof(ret->models));
	ret->n_models = 0;
	ret->allocated = from->n;
	ret->nodes = malloc((from->n + 1) * sizeof(*ret->nodes));
	if (!ret->nodes)
		return -ENOMEM;
	memcpy(ret->nodes, from->nodes, from->n * sizeof(*ret->nodes));
	return 0;
}

void cluster_sync(struct cluster *to, const struct cluster *from)
{
	for (size_t i = 0; i < from->n; i++) {
		struct sched_node *n = &to->nodes[i];
		uint32_t changes = n->changes;

		if (!memcmp(n, &from->nodes[i],
			    offsetof(struct sched_node, changes)))
			continue;
		*n = from->nodes[i];
		n->changes = changes + 1;
	}
	to->free = from->free;
}

/* What is taken of a node is not free. */
static void count_taken(const struct sched_node *n, struct capacity *free)
{
	free->cpu_milli -= n->cpu_milli - n->cpu_free;
	free->memory_mib -= n->memory_mib - n->memory_free;
	for (uint32_t g = 0; g < n->n_gpus; g++)
		free->gpu_milli -= (uint64_t)(GPU_MILLI - n->gpu_free[g]);
}

void cluster_clear(struct cluster *c)
{
	c->free = c->whole;
	for (size_t i = 0; i < c->n; i++)
		if (c->nodes[i].down)
			count_taken(&c->nodes[i], &c->free);
		else
			clear_node(&c->nodes[i]);
}

void cluster_set_down(struct cluster *c, uint32_t node, bool down)
{
	c->nodes[node].down = down;
	c->nodes[node].changes++;
}

bool cluster_has(const struct cluster *c, const struct sched_part *p)
{
	return cluster_fits(c, p) && !(p->gpus && c->nodes[p->node].down);
}

bool cluster_fits(const struct cluster *c, const struct sched_part *p)
{
	const struct sched_node *n;

	if (p->node >= c->n)
		return false;
	n = &c->nodes[p->node];
	if (p->gpus >> n->n_gpus || p->cpu_milli > n->cpu_free ||
	    p->memory_mib > n->memory_free)
		return false;
	for (uint32_t g = 0; g < n->n_gpus; g++)
		if (p->gpus >> g & 1 && n->gpu_free[g] < p->gpu_milli)
			return false;
	return true;
}

void cluster_take(struct cluster *c, const struct sched_part *p)
{
	struct sched_node *n = &c->nodes[p->node];

	for (uint32_t g = 0; g < n->n_gpus; g++)
		if (p->gpus >> g & 1)
			n->gpu_free[g] -= (uint16_t)p->gpu_milli;
	n->cpu_free -= p->cpu_milli;
	n->memory_free -= p->memory_mib;
	n->held[part_class(part_gpus(p), p->gpu_milli)]++;
	n->changes++;
	c->free.gpu_milli -= (uint64_t)part_gpus(p) * p->gpu_milli;
	c->free.cpu_milli -= p->cpu_milli;
	c->free.memory_mib -= p->memory_mib;
}

void cluster_give(struct cluster *c, const struct sched_part *p)
{
	struct sched_node *n = &c->nodes[p->node];

	for (uint32_t g = 0; g < n->n_gpus; g++)
		if (p->gpus >> g & 1)
			n->gpu_free[g] += (uint16_t)p->gpu_milli;
	n->cpu_free += p->cpu_milli;
	n->memory_free += p->memory_mib;
	n->held[part_class(part_gpus(p), p->gpu_milli)]--;
	n->changes++;
	c->free.gpu_milli += (uint64_t)part_gpus(p) * p->gpu_milli;
	c->free.cpu_milli += p->cpu_milli;
	c->free.memory_mib += p->memory_mib;
}

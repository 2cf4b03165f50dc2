/* SPDX-License-Identifier: MIT */
#include "loader/sim/sim_gather.h"

#include <errno.h>
#include <stdlib.h>

#include "common/util.h"
#include "loader/sim/sim_node.h"

struct made {
	struct sim_batch batch;
	void **single;	   /* struct sim_batch *; as many as a batch has */
	struct made *next; /* unused ones */
};

struct sim_gather {
	const struct batching_ops *ops;
	uint32_t batch;
	void *state;
	struct made *made, *unused;
	uint32_t n_made;
	uint64_t n_ready; /* samples added and not taken */
};

static int set_up(struct sim_gather *g, const struct batching_config *c)
{
	g->made = calloc(g->n_made, sizeof(*g->made));
	for (uint32_t i = 0; g->made && i < g->n_made; i++) {
		struct made *m = &g->made[i];

		m->single = calloc(c->batch, sizeof(*m->single));
		if (!m->single)
			return -ENOMEM;
		m->next = g->unused;
		g->unused = m;
	}
	g->state = calloc(1, g->ops->plugin.state_size + 1);
	return g->made && g->state ? g->ops->init(g->state, c) : -ENOMEM;
}

int sim_gather_new(const struct pipeline_config *c, uint32_t in_flight,
		   struct sim_gather **ret)
{
	struct batching_config b = { .batch = c->batch,
				     .ahead = in_flight,
				     .options = c->batching_options };
	struct sim_gather *g = calloc(1, sizeof(*g));

	if (!g)
		return -ENOMEM;
	g->ops = c->batching;
	g->batch = c->batch;
	/* full ones, and the incomplete last one of an epoch */
	g->n_made = in_flight / c->batch + 1;
	if (set_up(g, &b) < 0) {
		sim_gather_free(g);
		return -ENOMEM;
	}
	*ret = g;
	return 0;
}

void sim_gather_free(struct sim_gather *g)
{
	if (!g)
		return;
	if (g->state)
		g->ops->fini(g->state);
	for (uint32_t i = 0; g->made && i < g->n_made; i++)
		free(g->made[i].single);
	free(g->state);
	free(g->made);
	free(g);
}

void sim_gather_begin(struct sim_gather *g, uint64_t n)
{
	g->ops->begin(g->state, n);
}

void sim_gather_add(struct sim_gather *g, struct sim_batch *single)
{
	g->ops->add(g->state, single->window->first, single);
	g->n_ready++;
}

struct sim_batch *sim_gather_next(struct sim_gather *g)
{
	struct made *m = g->unused;
	struct sim_batch *b;

	if (!g->ops->full(g->state))
		return NULL;
	g->unused = m->next;
	b = &m->batch;
	*b = (struct sim_batch){ .n = g->ops->take(g->state, m->single) };
	for (uint32_t i = 0; i < b->n; i++) {
		const struct sim_batch *s = m->single[i];

		b->bytes += s->bytes;
		if (s->complete_ns < b->complete_ns)
			continue;
		b->complete_ns = s->complete_ns;
		b->owner = s->owner;
		b->spent = s->spent;
	}
	g->n_ready -= b->n;
	return b;
}

uint32_t sim_gather_n_complete(const struct sim_gather *g)
{
	return g->ops->full(g->state) ? (uint32_t)MAX(g->n_ready / g->batch, 1)
				      : 0;
}

uint32_t sim_gather_index(const struct sim_gather *g, const struct sim_batch *b)
{
	return (uint32_t)(container_of(b, struct made, batch) - g->made);
}

void sim_gather_release(struct sim_gather *g, uint32_t index,
			void (*give)(struct sim_batch *single, void *ctx),
			void *ctx)
{
	struct made *m = &g->made[index];

	for (uint32_t i = 0; i < m->batch.n; i++)
		give(m->single[i], ctx);
	m->next = g->unused;
	g->unused = m;
}

/* SPDX-License-Identifier: MIT */
#include "loader/pipeline/gather.h"

#include <errno.h>
#include <pthread.h>

#include "common/thread.h"
#include "common/util.h"

struct gather {
	struct flow *flow;
	struct place *places; /* of all batches */
	pthread_mutex_t lock;
	struct singles s; /* lock */
	bool waiting;	  /* lock: gather_next takes from the flow */
};

int gather_new(struct flow *flow, const struct singles_config *c,
	       struct gather **ret, struct err *err)
{
	struct gather *g = calloc(1, sizeof(*g));
	int r;

	if (!g)
		return err_set(err, -ENOMEM, "out of memory");
	g->flow = flow;
	pthread_mutex_init(&g->lock, NULL);
	r = singles_init(&g->s, c);
	if (r == 0)
		g->places = calloc((size_t)g->s.n_made * c->batch,
				   sizeof(*g->places));
	if (!g->places) {
		gather_free(g);
		return err_set(err, -ENOMEM,
			       "out of memory for %u samples in flight",
			       c->in_flight);
	}
	for (uint32_t i = 0; i < g->s.n_made; i++)
		g->s.made[i].batch.place = g->places + (size_t)i * c->batch;
	*ret = g;
	return 0;
}

void gather_free(struct gather *g)
{
	if (!g)
		return;
	singles_fini(&g->s);
	pthread_mutex_destroy(&g->lock);
	free(g->places);
	free(g);
}

void gather_begin(struct gather *g, uint64_t epoch, const uint32_t *order,
		  uint64_t n)
{
	pthread_mutex_lock(&g->lock);
	singles_begin(&g->s, n);
	pthread_mutex_unlock(&g->lock);
	flow_begin(g->flow, epoch, order, n);
}

/* Under the lock, by the only taker: what the flow has now. */
static void add_all(struct gather *g)
{
	struct batch *single;

	while (flow_n_complete(g->flow) &&
	       flow_next(g->flow, TICK_NEVER, &single) == 0)
		singles_add(&g->s, single);
}

int gather_next(struct gather *g, uint64_t deadline, struct batch **ret)
{
	struct singles_batch *m = NULL;
	struct batch *single;
	int r = 0;

	pthread_mutex_lock(&g->lock);
	add_all(g);
	while (r == 0 && !(m = singles_next(&g->s))) {
		g->waiting = true;
		pthread_mutex_unlock(&g->lock);
		r = flow_next(g->flow, deadline, &single);
		pthread_mutex_lock(&g->lock);
		g->waiting = false;
		if (r == 0)
			singles_add(&g->s, single);
	}
	for (uint32_t i = 0; m && i < m->batch.n; i++)
		m->batch.place[i] = ((struct batch *)m->single[i])->place[0];
	if (m)
		*ret = &m->batch;
	pthread_mutex_unlock(&g->lock);
	return r;
}

void gather_release(struct gather *g, struct batch *b)
{
	struct singles_batch *m = container_of(b, struct singles_batch, batch);

	LOCK_SCOPE(&g->lock);

	/* both at once: its windows may make the next batch */
	for (uint32_t i = 0; i < b->n; i++)
		flow_release(g->flow, m->single[i]);
	singles_release(&g->s, m);
}

uint32_t gather_n_complete(struct gather *g)
{
	LOCK_SCOPE(&g->lock);

	if (!g->waiting)
		add_all(g);
	return singles_n_complete(&g->s);
}

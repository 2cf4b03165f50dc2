/* SPDX-License-Identifier: MIT */
#include "loader/pipeline/gather.h"

#include <errno.h>
#include <pthread.h>

#include "common/util.h"

/* A batch of the consumer, and the samples in it. */
struct made {
	struct batch batch;
	void **single;	   /* struct batch *; `batch` of the config */
	struct made *next; /* unused ones */
};

struct gather {
	struct gather_config c;
	struct made *made; /* n_made */
	uint32_t n_made;
	pthread_mutex_t lock;
	/* lock guards all fields below */
	void *state; /* the batching's */
	struct made *unused;
	const uint32_t *order; /* of the epoch */
	uint64_t n_ready;      /* samples added and not taken */
	bool waiting;	       /* gather_next takes from the flow */
};

static int set_up(struct gather *g)
{
	const struct batching_ops *ops = g->c.batching;
	struct batching_config c = { .batch = g->c.batch,
				     .ahead = g->c.in_flight,
				     .options = g->c.options };

	/* full ones, and the incomplete last one of an epoch */
	g->n_made = g->c.in_flight / g->c.batch + 1;
	g->made = calloc(g->n_made, sizeof(*g->made));
	for (uint32_t i = 0; g->made && i < g->n_made; i++) {
		struct made *m = &g->made[i];

		m->batch.place = calloc(c.batch, sizeof(*m->batch.place));
		m->single = calloc(c.batch, sizeof(*m->single));
		if (!m->batch.place || !m->single)
			return -ENOMEM;
		m->next = g->unused;
		g->unused = m;
	}
	g->state = calloc(1, ops->plugin.state_size + 1);
	return g->made && g->state ? ops->init(g->state, &c) : -ENOMEM;
}

int gather_new(const struct gather_config *c, struct gather **ret,
	       struct err *err)
{
	struct gather *g = calloc(1, sizeof(*g));

	if (!g)
		return err_set(err, -ENOMEM, "out of memory");
	g->c = *c;
	pthread_mutex_init(&g->lock, NULL);
	if (set_up(g) < 0) {
		gather_free(g);
		return err_set(err, -ENOMEM,
			       "out of memory for %u samples in flight",
			       c->in_flight);
	}
	*ret = g;
	return 0;
}

void gather_free(struct gather *g)
{
	if (!g)
		return;
	if (g->state)
		g->c.batching->fini(g->state);
	for (uint32_t i = 0; g->made && i < g->n_made; i++) {
		free(g->made[i].batch.place);
		free(g->made[i].single);
	}
	free(g->state);
	free(g->made);
	pthread_mutex_destroy(&g->lock);
	free(g);
}

void gather_begin(struct gather *g, uint64_t epoch, const uint32_t *order,
		  uint64_t n)
{
	pthread_mutex_lock(&g->lock);
	g->order = order;
	g->c.batching->begin(g->state, n);
	pthread_mutex_unlock(&g->lock);
	flow_begin(g->c.flow, epoch, order, n);
}

/* Under the lock. */
static void add(struct gather *g, struct batch *single)
{
	g->c.batching->add(
		g->state, (uint64_t)(single->window->order - g->order), single);
	g->n_ready++;
}

/* Under the lock, by the only taker: what the flow has now. */
static void add_all(struct gather *g)
{
	struct batch *single;

	while (flow_n_complete(g->c.flow) &&
	       flow_next(g->c.flow, TICK_NEVER, &single) == 0)
		add(g, single);
}

/* Under the lock, where a batch is full. */
static struct batch *make(struct gather *g)
{
	struct made *m = g->unused;
	struct batch *b = &m->batch;

	g->unused = m->next;
	b->n = g->c.batching->take(g->state, m->single);
	b->complete_ns = 0;
	for (uint32_t i = 0; i < b->n; i++) {
		const struct batch *s = m->single[i];

		b->place[i] = s->place[0];
		if (s->complete_ns < b->complete_ns)
			continue;
		b->complete_ns = s->complete_ns;
		b->owner = s->owner;
		b->read_ns = s->read_ns;
		b->prep_ns = s->prep_ns;
	}
	g->n_ready -= b->n;
	return b;
}

int gather_next(struct gather *g, uint64_t deadline, struct batch **ret)
{
	const struct batching_ops *ops = g->c.batching;
	struct batch *single;
	int r = 0;

	pthread_mutex_lock(&g->lock);
	add_all(g);
	while (r == 0 && !ops->full(g->state)) {
		g->waiting = true;
		pthread_mutex_unlock(&g->lock);
		r = flow_next(g->c.flow, deadline, &single);
		pthread_mutex_lock(&g->lock);
		g->waiting = false;
		if (r == 0)
			add(g, single);
	}
	if (r == 0)
		*ret = make(g);
	pthread_mutex_unlock(&g->lock);
	return r;
}

void gather_release(struct gather *g, struct batch *b)
{
	struct made *m = container_of(b, struct made, batch);

	for (uint32_t i = 0; i < b->n; i++)
		flow_release(g->c.flow, m->single[i]);
	pthread_mutex_lock(&g->lock);
	m->next = g->unused;
	g->unused = m;
	pthread_mutex_unlock(&g->lock);
}

uint32_t gather_n_complete(struct gather *g)
{
	uint64_t n = 0;

	pthread_mutex_lock(&g->lock);
	if (!g->waiting)
		add_all(g);
	if (g->c.batching->full(g->state))
		n = MAX(g->n_ready / g->c.batch, 1);
	pthread_mutex_unlock(&g->lock);
	return (uint32_t)n;
}

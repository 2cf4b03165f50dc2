/* SPDX-License-Identifier: MIT */
#include "loader/core/singles.h"

#include <errno.h>
#include <stdlib.h>

int singles_init(struct singles *s, const struct singles_config *c)
{
	struct batching_config b = { .batch = c->batch,
				     .ahead = c->in_flight,
				     .options = c->options };

	/* full ones, and the incomplete last one of an epoch */
	*s = (struct singles){ .c = *c, .n_made = c->in_flight / c->batch + 1 };
	s->made = calloc(s->n_made, sizeof(*s->made));
	for (uint32_t i = 0; s->made && i < s->n_made; i++) {
		struct singles_batch *m = &s->made[i];

		m->single = calloc(c->batch, sizeof(*m->single));
		if (!m->single)
			return -ENOMEM;
		singles_release(s, m);
	}
	s->state = calloc(1, c->batching->plugin.state_size + 1);
	return s->made && s->state ? c->batching->init(s->state, &b) : -ENOMEM;
}

void singles_fini(struct singles *s)
{
	if (s->state)
		s->c.batching->fini(s->state);
	for (uint32_t i = 0; s->made && i < s->n_made; i++)
		free(s->made[i].single);
	free(s->state);
	free(s->made);
}

void singles_begin(struct singles *s, uint64_t n)
{
	s->c.batching->begin(s->state, n);
}

void singles_add(struct singles *s, struct batch *single)
{
	s->c.batching->add(s->state, single->window->first, single);
	s->n_ready++;
}

uint32_t singles_n_complete(const struct singles *s)
{
	return s->c.batching->full(s->state)
		       ? (uint32_t)MAX(s->n_ready / s->c.batch, 1)
		       : 0;
}

struct singles_batch *singles_next(struct singles *s)
{
	struct singles_batch *m = s->unused;
	struct batch *b;

	if (!s->c.batching->full(s->state))
		return NULL;
	b = &m->batch;
	s->unused = m->next;
	b->n = s->c.batching->take(s->state, m->single);
	b->complete_ns = b->bytes = 0;
	for (uint32_t i = 0; i < b->n; i++) {
		const struct batch *x = m->single[i];

		b->bytes += x->bytes;
		if (x->complete_ns < b->complete_ns)
			continue;
		b->complete_ns = x->complete_ns;
		b->owner = x->owner;
		b->read_ns = x->read_ns;
		b->prep_ns = x->prep_ns;
	}
	s->n_ready -= b->n;
	return m;
}

void singles_release(struct singles *s, struct singles_batch *m)
{
	m->next = s->unused;
	s->unused = m;
}

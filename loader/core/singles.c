/* SPDX-License-Identifier: MIT */
#include "loader/core/singles.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>

#include "common/util.h"

int singles_init(struct singles *s, const struct singles_config *c,
		 uint32_t in_flight)
{
	struct batching_config b = { .batch = c->batch,
				     .ahead = in_flight,
				     .options = c->options };

	/* full ones, and the incomplete last one of an epoch */
	*s = (struct singles){ .c = *c, .n_made = in_flight / c->batch + 1 };
	s->made = calloc(s->n_made, sizeof(*s->made));
	for (uint32_t i = 0; s->made && i < s->n_made; i++) {
		struct batch *made = &s->made[i];

		made->single = calloc(c->batch, sizeof(*made->single));
		if (!made->single)
			return -ENOMEM;
		singles_release(s, made);
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

struct batch *singles_next(struct singles *s)
{
	struct batch *b = s->unused;

	if (!s->c.batching->full(s->state))
		return NULL;
	assert(b);
	s->unused = b->next;
	b->n = s->c.batching->take(s->state, b->single);
	b->complete_ns = b->bytes = 0;
	for (uint32_t i = 0; i < b->n; i++) {
		const struct batch *x = b->single[i];

		b->bytes += x->bytes;
		if (x->complete_ns < b->complete_ns)
			continue;
		b->complete_ns = x->complete_ns;
		b->owner = x->owner;
		b->spent = x->spent;
	}
	s->n_ready -= b->n;
	return b;
}

void singles_release(struct singles *s, struct batch *b)
{
	b->next = s->unused;
	s->unused = b;
}

/* SPDX-License-Identifier: MIT */
#include "loader/sim/sim_reduce.h"

#include <errno.h>

#include "common/util.h"

/* A card has the gradients of one rank. */
enum { CHAIN = 1 };

static void add(void *ctx, const struct collective_bucket *b)
{
	struct sim *s = ctx;
	struct sim_reduce *a = &s->reduce;

	if (util_reserve(&a->bucket, &a->room, a->n_buckets + 1,
			 sizeof(*a->bucket)) < 0) {
		s->failed = -ENOMEM;
		return;
	}
	a->bucket[a->n_buckets++] = (struct gradients_bucket){
		.ready_ns = a->base_ns + b->ready_ns,
		.bytes = b->bytes,
		.bytes_per_s = s->c.sync->reduce.bytes_per_s,
		.latency_ns = b->latency_ns,
	};
}

void sim_reduce_begin(struct sim *s, uint64_t now)
{
	struct sim_reduce *a = &s->reduce;
	struct sync *sync = s->c.sync;
	const struct collective reduce = sync_reduce(sync);

	s->n_reached = 0;
	a->open = true;
	a->base_ns = sync->base_ns;
	a->most_ns = 0;
	a->n_over = a->on_cards ? 0 : s->c.nodes;
	sync_settle(sync, &a->all, &a->reduced_ns);
	if (!a->on_cards)
		return;
	a->n_buckets = 0;
	collective_each(&reduce, sync->pass, s->c.nodes, add, s);
	for (uint32_t i = 0; i < s->c.nodes; i++) {
		s->nodes[i].card.booked = false;
		sim_reduce_look(&s->nodes[i], now);
	}
}

/* A real node gets its next batch before it looks for the other nodes, unless
 * there is none, or no room for it. */
static bool is_ready(const struct sim_train *t)
{
	return t->holding || t->blocked || !t->n_left;
}

void sim_reduce_look(struct sim_node *n, uint64_t now)
{
	struct sim_reduce *a = &n->sim->reduce;
	int r = 0;

	if (!a->open || !a->on_cards || n->card.booked || !is_ready(&n->train))
		return;
	n->card.booked = true;
	n->card.waited_ns = 0;
	for (size_t i = 0; r == 0 && i < a->n_buckets; i++)
		r = nic_reduce(n->card.nic, CHAIN, &a->bucket[i], now);
	if (r < 0)
		n->sim->failed = r;
	sim_at(n, MAX(now, a->reduced_ns), SIM_REDUCED, 0);
}

void sim_reduce_wait(struct sim_node *n, uint64_t now)
{
	struct nic_delay delay[GRADIENTS_CHAINS];
	struct sim_reduce *a = &n->sim->reduce;

	/* more traffic may have come meanwhile */
	if (nic_delays(n->card.nic, delay) && delay->ns > n->card.waited_ns) {
		n->card.waited_ns = delay->ns;
		sim_at(n, MAX(now, a->reduced_ns + delay->ns), SIM_REDUCED, 0);
		return;
	}
	n->card.delay_ns += n->card.waited_ns;
	a->most_ns = MAX(a->most_ns, n->card.waited_ns);
	a->n_over++;
}

bool sim_reduce_end(struct sim *s, struct gpus_reach *ret_all,
		    uint64_t *ret_reduced)
{
	struct sim_reduce *a = &s->reduce;

	if (!a->open || a->n_over < s->c.nodes)
		return false;
	a->open = false;
	sync_delay(s->c.sync, a->most_ns);
	*ret_all = a->all;
	*ret_reduced = a->reduced_ns + a->most_ns;
	return true;
}

/* SPDX-License-Identifier: MIT */
#include "loader/sim/sim.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/util.h"
#include "loader/sim/sim_reduce.h"

/* No event: the begin of an epoch. */
#define NOTHING UINT32_MAX

static int init_prep(struct sim *s, struct err *err)
{
	const struct pipeline_config *c = s->c.pipeline;
	const struct prep_ops *prep = c->prep;
	int r = pipeline_sample_bytes(c, &s->sample_bytes, err);

	s->prep = calloc(1, prep->plugin.state_size + 1);
	if (!s->prep)
		return -ENOMEM;
	return r == 0 && prep->init ? prep->init(s->prep, c->prep_config, err)
				    : r;
}

static int init_nodes(struct sim *s)
{
	int r = 0;

	s->nodes = calloc(s->c.nodes, sizeof(*s->nodes));
	if (!s->nodes)
		return -ENOMEM;
	for (uint32_t i = 0; i < s->c.nodes; i++) {
		s->nodes[i].sim = s;
		s->nodes[i].node = i;
		if (s->reduce.on_cards)
			s->nodes[i].card.nic = sim_mounts_nic(s->c.mounts, i);
	}
	for (uint32_t i = 0; r == 0 && i < s->c.nodes; i++) {
		if (s->c.pipeline->engine->next)
			r = sim_load_init(&s->nodes[i]);
		if (r == 0)
			r = sim_step_init(&s->nodes[i]);
	}
	return r;
}

/* As loader/pipeline/pipeline.c. */
static int set_windows(struct sim *s, const struct pipeline_config *p)
{
	uint64_t samples = (uint64_t)p->batch * p->superbatch;

	s->n_windows = pipeline_windows(p);
	s->batch = p->batch;
	s->superbatch = p->superbatch;
	if (!pipeline_gathers(p))
		return 0;
	samples *= s->n_windows;
	if (samples >= SIM_PINNED) /* as an event has them */
		return -ENOMEM;
	s->n_windows = (uint32_t)samples;
	s->batch = s->superbatch = 1;
	return 0;
}

int sim_new(const struct sim_config *c, struct sim **ret, struct err *err)
{
	const struct pipeline_config *p = c->pipeline;
	struct sim *s = calloc(1, sizeof(*s));
	int r = 0;

	if (!s)
		return err_set(err, -ENOMEM, "out of memory");
	s->c = *c;
	s->pinned = p->pin && !p->pin_direct && p->engine->next;
	s->lanes = MAX(p->gpus, 1);
	s->reduce.on_cards = c->on_cards;
	if (p->engine->next) {
		s->depth = p->engine->whole_batches
				   ? 1
				   : MAX(p->queue_depth / p->workers, 1);
		r = set_windows(s, p);
		s->lease = pipeline_lease(p, 0);
	}
	if (r == 0)
		r = init_prep(s, err);
	if (r == 0)
		r = init_nodes(s);
	if (r < 0) {
		sim_free(s);
		return err_set(err, r, "%s", strerror(-r));
	}
	*ret = s;
	return 0;
}

void sim_free(struct sim *s)
{
	if (!s)
		return;
	for (uint32_t i = 0; s->nodes && i < s->c.nodes; i++) {
		sim_load_fini(&s->nodes[i]);
		sim_step_fini(&s->nodes[i]);
	}
	if (s->prep && s->c.pipeline->prep->fini)
		s->c.pipeline->prep->fini(s->prep);
	sim_events_fini(&s->events);
	free(s->reduce.bucket);
	free(s->prep);
	free(s->nodes);
	free(s);
}

static void begin(struct sim *s, uint64_t samples, uint64_t now,
		  struct account *accounts)
{
	bool reads = s->c.pipeline->engine->next;

	s->n_ended = s->n_reached = 0;
	s->end_ns = now;
	if (s->c.sync)
		sync_begin(s->c.sync, now);
	for (uint32_t i = 0; i < s->c.nodes; i++) {
		struct sim_node *n = &s->nodes[i];

		n->account = n->observed.account = &accounts[i];
		observers_begin(&n->observers, s->epoch, now);
		sim_step_begin(n, samples, now);
		/* the mount has its future before the loader begins */
		if (reads)
			sim_load_ahead(n, now);
		if (reads)
			sim_load_begin(n, samples, now);
	}
	for (uint32_t i = 0; i < s->c.nodes; i++)
		sim_step_look(&s->nodes[i], now);
}

static void happen(struct sim *s, const struct sim_event *e)
{
	struct sim_node *n = &s->nodes[e->node];
	uint32_t which = e->what & ((1u << SIM_WHAT_SHIFT) - 1);

	switch ((enum sim_what)(e->what >> SIM_WHAT_SHIFT)) {
	case SIM_READ: sim_load_read(n, which, e->at); break;
	case SIM_BATCH: sim_load_batch(n, which, e->at); break;
	case SIM_RELEASE: sim_step_release(n, which, e->at); break;
	case SIM_AHEAD: sim_load_fetch(n, which, e->at); break;
	case SIM_REDUCED: sim_reduce_wait(n, e->at); break;
	case SIM_LOOK: break;
	}
	sim_step_look(n, e->at);
	sim_reduce_look(n, e->at);
}

/* End the steps that all nodes have computed. */
static void settle(struct sim *s, uint64_t now)
{
	struct gpus_reach all;
	uint64_t reduced;

	do {
		if (s->n_reached == s->c.nodes)
			sim_reduce_begin(s, now);
		if (!sim_reduce_end(s, &all, &reduced))
			return;
		sim_step_settle(s, &all, reduced, now);
	} while (true);
}

uint64_t sim_card_ns(const struct sim *s, uint32_t node)
{
	return s->nodes[node].card.delay_ns;
}

/* Samples of this rank that no other visits; the order may wrap around. */
static uint64_t distinct(const struct sim *s, uint32_t rank, uint64_t samples)
{
	const struct schedule_config *c = &s->c.schedule->c;
	uint64_t last = rank + (samples - 1) * c->world;

	return samples - (last >= c->in.n);
}

static void end(struct sim *s, uint64_t samples)
{
	for (uint32_t i = 0; i < s->c.nodes; i++) {
		struct sim_node *n = &s->nodes[i];

		observers_end(&n->observers, n->train.end_ns);
		n->account->distinct_samples = distinct(s, i, samples);
	}
}

/* Fetches ahead that end after the epoch are left to the next one. */
static bool next(struct sim *s, struct sim_event *e)
{
	const struct sim_events *all = &s->events;

	if (s->n_ended == s->c.nodes && all->n && all->heap[0].at > s->end_ns)
		return false;
	return sim_events_next(&s->events, e);
}

int sim_epoch(struct sim *s, uint64_t epoch, uint64_t samples, uint64_t now,
	      struct account *accounts, uint64_t *ret_end, struct err *err)
{
	struct sim_event e = { .at = now, .what = NOTHING };

	s->epoch = epoch;
	s->order = s->c.schedule->order;
	begin(s, samples, now, accounts);
	do {
		if (e.what != NOTHING)
			happen(s, &e);
		settle(s, e.at);
	} while (next(s, &e));
	if (s->events.failed)
		s->failed = -ENOMEM;
	if (s->failed)
		return err_set(err, s->failed, "%s", strerror(-s->failed));
	if (s->n_ended < s->c.nodes)
		return err_set(err, -EDEADLK,
			       "the simulation stands still at %.9f s",
			       (double)e.at / 1e9);
	end(s, samples);
	*ret_end = s->end_ns;
	return 0;
}

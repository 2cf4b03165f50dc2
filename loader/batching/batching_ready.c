/* SPDX-License-Identifier: MIT */
/*
 * Batches of the samples that are ready: fast samples first, slow ones aside
 * until they are done. Source: Nouaji et al., "MinatoLoader: Accelerating
 * Machine Learning Training Through Efficient Data Preprocessing", EuroSys
 * 2026 (arXiv 2509.10712).
 *
 * MinatoLoader puts a sample aside when it takes longer than a timeout, so that
 * its worker goes on with the next, and batches whatever is in the queues of
 * fast and slow samples. Here no timeout decides: a sample that is not ready is
 * slow. Two differences follow from what a loader needs that trains each
 * sample once in an epoch:
 *
 *   - Samples leave in the order in which they become ready, so none that is
 *     ready waits while others pass it.
 *   - A sample is in one of the `bound` batches after its own at the latest. A
 *     batch waits for those samples whose last chance it is. With a bound of 0
 *     each batch has exactly its own samples.
 *
 * The bound can always be kept: a batch is the last chance of the samples of
 * one batch of the order, the one `bound` before it, and has room for as many.
 *
 * Positions that matter lie between the first of that batch and the furthest
 * that can be added, so a ring of bound * batch + ahead slots holds them:
 *
 *	      due, due + batch            taken               taken + ahead
 *	 ------|=======|--------------------|------------------------|------
 *	 taken   last      ready, not ready,       ready, not ready
 *	         chance    taken
 */
#include "loader/batching/batching.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/conf/conf.h"
#include "common/util.h"

#define NOWHERE UINT32_MAX

struct options {
	uint64_t bound;
};

static const struct conf_field fields[] = {
	{ CONF_KEY(bound, CONF_UINT, struct options), .max = 4096, .arg = "N",
	  .help = "batches after its own in which a sample may be" },
	{ 0 },
};

/* arbitrary: longer than a slow sample takes, in steps, and few of the steps of
 * an epoch */
static const struct options defaults = { .bound = 64 };

enum sample { AWAITED, READY, TAKEN };

struct slot {
	void *item;
	enum sample sample;
	uint32_t next, prev; /* of those READY, in the order of readiness */
};

struct ready {
	uint32_t batch;
	uint64_t lag; /* bound * batch */
	uint64_t n_slots;
	struct slot *slot; /* by position modulo n_slots */
	uint32_t first, last;
	uint64_t n;	  /* samples of the epoch */
	uint64_t taken;	  /* samples */
	uint64_t n_ready; /* READY */
	uint32_t missing; /* AWAITED, and the next batch is their last chance */
};

static struct slot *at(const struct ready *s, uint64_t position)
{
	return &s->slot[position % s->n_slots];
}

/* The positions whose last chance is the next batch: from *ret_end less the
 * returned number on. */
static uint64_t due(const struct ready *s, uint64_t *ret_end)
{
	uint64_t first = s->taken - MIN(s->lag, s->taken);

	*ret_end = MIN(first + s->batch, s->n);
	return s->taken < s->lag || first >= s->n ? 0 : *ret_end - first;
}

static void count_missing(struct ready *s)
{
	uint64_t end, n = due(s, &end);

	s->missing = 0;
	for (uint64_t i = end - n; i < end; i++)
		s->missing += at(s, i)->sample == AWAITED;
}

static void unlink_slot(struct ready *s, struct slot *x)
{
	if (x->prev == NOWHERE)
		s->first = x->next;
	else
		s->slot[x->prev].next = x->next;
	if (x->next == NOWHERE)
		s->last = x->prev;
	else
		s->slot[x->next].prev = x->prev;
	x->sample = TAKEN;
	s->n_ready--;
}

static int init_ready(void *state, const struct batching_config *c)
{
	const struct options *o = c->options ? c->options : &defaults;
	struct ready *s = state;

	s->batch = c->batch;
	s->lag = o->bound * c->batch;
	s->n_slots = s->lag + c->ahead;
	if (s->n_slots >= NOWHERE)
		return -ENOMEM;
	s->slot = calloc(s->n_slots, sizeof(*s->slot));
	return s->slot ? 0 : -ENOMEM;
}

static void fini(void *state)
{
	struct ready *s = state;

	free(s->slot);
}

static void begin_ready(void *state, uint64_t n)
{
	struct ready *s = state;

	memset(s->slot, 0, s->n_slots * sizeof(*s->slot));
	s->first = s->last = NOWHERE;
	s->n = n;
	s->taken = s->n_ready = 0;
	count_missing(s);
}

static void add_item(void *state, uint64_t position, void *item)
{
	struct ready *s = state;
	uint32_t i = (uint32_t)(position % s->n_slots);
	uint64_t end, n = due(s, &end);

	s->slot[i] = (struct slot){
		.item = item, .sample = READY, .next = NOWHERE, .prev = s->last
	};
	if (s->last == NOWHERE)
		s->first = i;
	else
		s->slot[s->last].next = i;
	s->last = i;
	s->n_ready++;
	s->missing -= position >= end - n && position < end;
}

static bool full(const void *state)
{
	const struct ready *s = state;
	uint64_t left = s->n - s->taken;

	return left && !s->missing && s->n_ready >= MIN(s->batch, left);
}

static uint32_t take_batch(void *state, void **ret)
{
	struct ready *s = state;
	uint32_t want = (uint32_t)MIN(s->batch, s->n - s->taken), n = 0;
	uint64_t end, n_due = due(s, &end);

	for (uint64_t i = end - n_due; i < end; i++) {
		struct slot *x = at(s, i);

		if (x->sample == READY) {
			unlink_slot(s, x);
			ret[n++] = x->item;
		}
		/* the position is past; the slot is for a later one */
		x->sample = AWAITED;
	}
	while (n < want) {
		struct slot *x = &s->slot[s->first];

		unlink_slot(s, x);
		ret[n++] = x->item;
	}
	s->taken += n;
	count_missing(s);
	return n;
}

const struct batching_ops batching_ready = {
	.plugin = { .name = "ready",
		    .summary = "samples make batches as they become ready, as "
			       "in MinatoLoader",
		    .state_size = sizeof(struct ready),
		    PLUGIN_OPTIONS(fields, defaults) },
	.any_order = true,
	.init = init_ready,
	.fini = fini,
	.begin = begin_ready,
	.add = add_item,
	.full = full,
	.take = take_batch,
};

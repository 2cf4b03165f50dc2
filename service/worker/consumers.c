/* SPDX-License-Identifier: MIT */
#include "service/worker/consumers.h"

#include <errno.h>
#include <string.h>

#include "common/util.h"

_Static_assert((int)PREPD_CONSUMERS == (int)ROUNDS_CONSUMERS,
	       "a message names the consumers that a gate has");

/* arbitrary: the most that `outstanding` of a trainer may be */
enum { MOST_AHEAD = 4096 };

void consumers_init(struct consumers *c, const struct share *share)
{
	c->rounds = share->how == SHARE_ROUNDS;
	c->n = c->rounds ? share->consumers : 1;
	consumers_reset(c);
}

void consumers_reset(struct consumers *c)
{
	/* it hands out the rounds of this worker alone */
	c->gate = (struct rounds_gate){ .consumers = c->n, .workers = 1 };
	memset(c->upto, 0, sizeof(c->upto));
	memset(c->acked, 0, sizeof(c->acked));
}

/* Request the gate's round for all that have room for it; does it open? */
static bool opens(struct consumers *c)
{
	uint64_t round = c->gate.round;

	for (uint32_t i = 0; i < c->n && c->gate.round == round; i++)
		if (c->upto[i] > round)
			rounds_request(&c->gate, i, round);
	return c->gate.round > round;
}

bool consumers_request(struct consumers *c, uint32_t i, uint64_t upto)
{
	uint64_t before = c->gate.round;

	if (!c->rounds)
		return false;
	upto = MIN(upto, before + MOST_AHEAD);
	c->upto[i] = MAX(c->upto[i], upto);
	while (opens(c))
		;
	return c->gate.round > before;
}

bool consumers_may(const struct consumers *c, uint64_t k)
{
	return !c->rounds || k < c->gate.round;
}

int consumers_ack(struct consumers *c, uint32_t i, uint64_t k, uint64_t n_made)
{
	if (k > n_made || (k && (k - 1) * c->n + i >= n_made))
		return -EPROTO;
	c->acked[i] = MAX(c->acked[i], k);
	return 0;
}

uint64_t consumers_acked(const struct consumers *c)
{
	uint64_t first = c->acked[0] * c->n;

	for (uint32_t i = 1; i < c->n; i++)
		first = MIN(first, c->acked[i] * c->n + i);
	return first;
}

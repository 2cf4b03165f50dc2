/* SPDX-License-Identifier: MIT */
/*
 * What the consumers of a task have of its batches: batch k * n + i is number k
 * of consumer i. A job that has no rounds has one consumer. With rounds
 * (service/decide/rounds.h) number k of each leaves when all have room for it.
 *
 * Pure; the owner locks.
 */
#ifndef GPEMU_SERVICE_WORKER_CONSUMERS_H
#define GPEMU_SERVICE_WORKER_CONSUMERS_H

#include <stdbool.h>

#include "service/decide/rounds.h"
#include "service/proto/msg.h"

struct consumers {
	uint32_t n;
	bool rounds;
	struct rounds_gate gate;
	uint64_t upto[PREPD_CONSUMERS]; /* of rounds: it has room below that */
	uint64_t acked[PREPD_CONSUMERS];
};

void consumers_init(struct consumers *c, const struct share *share);
/* No batch is there. */
void consumers_reset(struct consumers *c);
/* Consumer i has room for its batches below number `upto`, of which the next
 * few thousand count. May more leave now? */
bool consumers_request(struct consumers *c, uint32_t i, uint64_t upto);
/* May batch number k leave, to any of them? */
bool consumers_may(const struct consumers *c, uint64_t k);
/* Consumer i has its batches below number k. -EPROTO: of `n_made` in all it
 * cannot. */
int consumers_ack(struct consumers *c, uint32_t i, uint64_t k, uint64_t n_made);
/* All batches below this one are with their consumers. */
uint64_t consumers_acked(const struct consumers *c);

#endif

/* SPDX-License-Identifier: MIT */
/*
 * Coordinated reads: in every round all consumers of a synchronous training get
 * batches of the same length bucket, so that none computes longer than the
 * others and keeps them waiting in the all-reduce.
 *
 *	samples --> buckets by length --> m batches of a bucket --> a round
 *
 * Round r is made by worker r mod W. It hands the round out when all m
 * consumers have requested it; consumer i gets batch i of it.
 *
 * Without this a step takes as long as the longest of m batches. With a time
 * proportional to the length, and buckets that are narrow, the speed-up is
 * E[max of m lengths] / E[length].
 *
 * Source: tf.data service, "coordinated reads", RoundRobinTaskRunner in
 * tensorflow/core/data/service/task_runner.cc; Audibert et al., SoCC 2023.
 *
 * Pure bookkeeping: no lock (the caller's), no clock, no I/O.
 */
#ifndef GPEMU_SERVICE_DECIDE_ROUNDS_H
#define GPEMU_SERVICE_DECIDE_ROUNDS_H

#include <stddef.h>
#include <stdint.h>

/* --- making rounds -------------------------------------------------------- */

struct rounds_config {
	/* n_boundaries lengths, ascending: bucket i has lengths below
	 * boundary[i], the last bucket all others. In use until rounds_free. */
	const uint64_t *boundary;
	uint32_t n_boundaries;
	uint32_t batch;	    /* samples of a consumer's batch, >= 1 */
	uint32_t consumers; /* >= 1 */
};

struct rounds;

/* -EINVAL: boundaries that do not ascend, or a 0; -ENOMEM. */
int rounds_new(const struct rounds_config *c, struct rounds **ret);
/* The samples that it holds are the caller's. NULL is allowed. */
void rounds_free(struct rounds *r);

/* Put a sample into its bucket; returns it. The bucket may be full by that,
 * which rounds_take empties before the next sample is added. */
uint32_t rounds_add(struct rounds *r, uint64_t length, void *sample);
/*
 * If the bucket is full, its samples, `batch` * `consumers` of them, those of
 * consumer i from i * batch on, and their number; else 0.
 */
uint32_t rounds_take(struct rounds *r, uint32_t bucket, void **ret);

/* --- handing rounds out --------------------------------------------------- */

/* The rounds of one of `workers` workers, for up to 64 consumers. */
struct rounds_gate {
	uint32_t consumers, workers;
	uint64_t round;	    /* the next one of this worker */
	uint64_t requested; /* a bit for each consumer that wants it */
};

enum { ROUNDS_CONSUMERS = 64 };

/*
 * Consumer `i` requests `round`. 1: all have, the round is handed out and the
 * gate stands at the worker's next one; 0: the others have yet to. -EINVAL: not
 * the worker's next round, or no such consumer. A repeated request counts once.
 */
int rounds_request(struct rounds_gate *g, uint32_t i, uint64_t round);

#endif

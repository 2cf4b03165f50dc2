/* SPDX-License-Identifier: MIT */
/*
 * The order of a job with coordinated reads: samples of a worker's own order,
 * in rounds of the same length (service/decide/rounds.h). A length is that of
 * the inputs of a language model in tokens, or else bytes. What is left in
 * incomplete buckets at the end of a pass stays there for the next one.
 */
#ifndef GPEMU_SERVICE_WORKER_BUCKETS_H
#define GPEMU_SERVICE_WORKER_BUCKETS_H

#include "loader/dataset/dataset.h"
#include "service/proto/msg.h"

struct buckets;

/* `most`: batches whose samples are in use at once. `data` stays in use.
 * -EINVAL: too many buckets, -ENOMEM; with a text. */
int buckets_new(const struct share *share, uint32_t batch, uint32_t most,
		const struct dataset *data, struct buckets **ret,
		struct err *err);
/* NULL is allowed. */
void buckets_free(struct buckets *b);
/* The samples of the next pass, which stay in use until the one after. */
void buckets_begin(struct buckets *b, const uint32_t *order, uint64_t n);
/*
 * The samples of the next round, consumers * batch of them, those of consumer i
 * from i * batch on. *ret_spread: by how much the longest samples of these
 * batches differ. NULL: the pass is over.
 */
const uint32_t *buckets_next(struct buckets *b, uint64_t *ret_spread);

#endif

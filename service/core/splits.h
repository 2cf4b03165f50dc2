/* SPDX-License-Identifier: MIT */
/*
 * Who prepares which part of an epoch. A split is `per_split` consecutive
 * batches of the epoch's order, the last one maybe fewer.
 *
 *	free --take--> assigned --done--> done
 *	  \-(static)------\------lose---> lost
 *
 * A split is assigned once: it is prepared exactly once, and if its worker is
 * lost, at most once.
 *
 *	off	there are no splits: each worker prepares the whole dataset,
 *		over and over, in an order of its own
 *	dynamic	a worker takes the next split that is free
 *	static	split i is for worker i modulo W of the W that were there when
 *		the epoch began; what a lost one has not taken is lost, too
 *
 * Pure. Source: A. Audibert et al., "tf.data service: A Case for Disaggregating
 * ML Input Data Processing", SoCC 2023.
 */
#ifndef GPEMU_SERVICE_CORE_SPLITS_H
#define GPEMU_SERVICE_CORE_SPLITS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum split_mode { SPLIT_OFF, SPLIT_DYNAMIC, SPLIT_STATIC, SPLIT_MODES };
extern const char *const split_modes[SPLIT_MODES];

/* arbitrary: ImageNet-1k in splits of 40 samples; a message about each is less
 * than OUTBOX_MOST (service/proto/outbox.h) */
enum { SPLITS_MOST = 1 << 15 };

enum split_state { SPLIT_FREE, SPLIT_ASSIGNED, SPLIT_DONE, SPLIT_LOST };

struct splits {
	enum split_mode mode;
	uint64_t samples;
	uint32_t batch, per_split;
	uint32_t n;
	uint8_t *state;	 /* n: enum split_state */
	uint64_t *owner; /* n: the worker it was assigned to */
	uint64_t *slot;	 /* n_slots: the workers of static ones, or of rounds */
	uint32_t *next;	 /* n_slots, or 1: none below it is free */
	uint32_t n_slots;
	uint32_t n_done, n_lost;
};

/* `slot`: the workers of SPLIT_STATIC, or of rounds, copied. -EINVAL:
 * SPLIT_OFF, a parameter is 0, or more than SPLITS_MOST; -ENOMEM. Free with
 * splits_fini, failed or not. */
int splits_init(struct splits *s, enum split_mode mode, uint64_t samples,
		uint32_t batch, uint32_t per_split, const uint64_t *slot,
		uint32_t n_slots);
void splits_fini(struct splits *s);

/* The split that the worker would get next; splits_assign follows. -ENODATA:
 * none, for good. */
int splits_next(struct splits *s, uint64_t worker, uint32_t *ret);
/* -EINVAL: there is no such split, or it was assigned before. */
int splits_assign(struct splits *s, uint32_t split, uint64_t worker);
/* Its batches were received. -EINVAL: there is no such split. */
int splits_done(struct splits *s, uint32_t split);
/* The worker is gone, and what it has not finished. Returns the number of
 * splits that are newly lost. */
uint32_t splits_lose(struct splits *s, uint64_t worker);

/* Has the worker splits, given to it or its share, that are not finished? */
bool splits_has(const struct splits *s, uint64_t worker);

/* Range of a split in the order of the epoch, in samples. */
uint64_t splits_first(const struct splits *s, uint32_t split);
uint64_t splits_samples(const struct splits *s, uint32_t split);

#endif

/* SPDX-License-Identifier: MIT */
/*
 * What a trainer has received of an epoch. It knows the order itself, so a
 * batch that does not hold the samples of its position is detected, and one
 * that comes twice is dropped.
 *
 * Pure; the owner locks.
 */
#ifndef GPEMU_SERVICE_CLIENT_SWEEP_H
#define GPEMU_SERVICE_CLIENT_SWEEP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "service/core/splits.h"
#include "service/proto/msg.h"

struct sweep {
	uint64_t epoch;
	const uint32_t *order; /* borrowed */
	struct splits splits;  /* DONE: received; LOST; the rest FREE */
	uint64_t n_samples;    /* of the dataset */
	uint8_t *got;	       /* of each batch */
	uint32_t *n_got;       /* batches of each split */
	uint32_t *done;	       /* n_done splits, as they were completed */
	uint32_t *sorted;      /* scratch: samples of two batches */
	uint32_t n_done;
	uint32_t n_wanted; /* splits: the others were cut off */
	uint64_t left;	   /* samples that are neither received nor lost */
	uint64_t n_lost;
};

/* An epoch of `n` samples of a dataset of `n_samples`. -EINVAL: as splits_init;
 * -ENOMEM. Free with sweep_fini, failed or not. */
int sweep_init(struct sweep *s, enum split_mode mode, uint64_t epoch,
	       const uint32_t *order, uint64_t n, uint64_t n_samples,
	       uint32_t batch, uint32_t per_split);
void sweep_fini(struct sweep *s);
/*
 * A BATCH of this epoch: 0: it is new. -EEXIST: it came before. -ESTALE: its
 * split is lost or was cut off, or the epoch is complete. -EPROTO: it is no
 * batch of this epoch: not the samples of its position, each one, or one that
 * the dataset does not have.
 */
int sweep_batch(struct sweep *s, const struct msg *m);
/* A split is lost, unless it was received. Returns the samples that are lost;
 * 0: none, or it is known. */
uint64_t sweep_lose(struct sweep *s, uint32_t split);
/*
 * From now on the epoch has only the first `n` samples of its order, and those
 * up to the end of the last split of which a batch came or that was lost. The
 * splits behind them count as done: the dispatcher gives them to nobody.
 * Returns the samples of the epoch: whole splits, or all. Not of SPLIT_OFF,
 * which has no splits.
 */
uint64_t sweep_cut(struct sweep *s, uint64_t n);

#endif

/* SPDX-License-Identifier: MIT */
/* --pin auto: fits the pinned pool to the limit of locked memory. */
#ifndef GPEMU_LOADER_TRAIN_SESSION_PIN_H
#define GPEMU_LOADER_TRAIN_SESSION_PIN_H

#include "loader/train/session_state.h"

/*
 * Call after the dataset is open. If the limit is below `pin_budget`, sets it
 * to the limit; if not even one batch fits, clears `pin` and reports why to the
 * user and in the record. Does nothing with any other --pin. -ENOMEM.
 */
int session_fit_pin(struct session *s, struct err *err);
/* After session_open: are the batches' bytes their own, and is there memory for
 * the next batch while one is on loan? -ENOMEM. */
int session_can_lend(const struct session *s, bool *ret, struct err *err);
/* Bytes of the largest possible batch of the pipeline. -ENOMEM. */
int session_largest_batch(const struct session *s, uint64_t *ret,
			  struct err *err);
/* The same if a sample has so many bytes; 0: as many as in the dataset. */
int session_batch_bytes(const struct session *s, size_t sample_bytes,
			uint64_t *ret, struct err *err);

#endif

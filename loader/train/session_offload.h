/* SPDX-License-Identifier: MIT */
/* --offload of a training run. */
#ifndef GPEMU_LOADER_TRAIN_SESSION_OFFLOAD_H
#define GPEMU_LOADER_TRAIN_SESSION_OFFLOAD_H

#include "loader/train/session_state.h"

/* In session_start, after the ceiling; `n`: samples of the first epoch.
 * -EINVAL: they are too few to measure; -ENOMEM. */
int session_open_offload(struct session *s, uint64_t n, struct err *err);
void session_close_offload(struct session *s);
/* As intake_new. */
int session_open_intake(struct session *s, const struct pipeline_config *c,
			struct intake **ret, struct err *err);
/* A batch was taken for the next step. */
void session_offload_taken(struct session *s, const struct delivery *d);

#endif

/* SPDX-License-Identifier: MIT */
/* Shared by the files of a session. */
#ifndef GPEMU_LOADER_TRAIN_SESSION_OPEN_H
#define GPEMU_LOADER_TRAIN_SESSION_OPEN_H

#include "loader/train/session_state.h"

/* After session_open: are the batches' bytes their own, and is there memory for
 * the next batch while one is on loan? -ENOMEM. */
int session_can_lend(const struct session *s, bool *ret, struct err *err);

/* Notice for the user (s->tell). */
__attribute__((format(printf, 3, 4))) void
session_tell(struct session *s, enum log_level level, const char *fmt, ...);
/* Number of steps in an epoch of so many samples. */
uint64_t session_steps(const struct session *s, uint64_t samples);
/* Join the other jobs of --coordinate and wait for them; sets `staging`, and
 * the fields of `config` about it. */
int session_join_jobs(struct session *s, struct err *err);

/* Opens the profiles, the dataset, the checkpoints, the logs. Afterwards
 * `options` have the effective values. */
int session_open(struct session *s, struct err *err);
/* Batches of the pipeline in a whole epoch, without a limit of steps. */
uint64_t session_epoch_batches(const struct session *s);
/* After the last write to the timeline and the log of steps. */
int session_close_logs(struct session *s, struct err *err);

#endif

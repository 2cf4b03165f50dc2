/* SPDX-License-Identifier: MIT */
/* --loader service of a training run: what its workers need. */
#ifndef GPEMU_LOADER_TRAIN_SESSION_SERVICE_H
#define GPEMU_LOADER_TRAIN_SESSION_SERVICE_H

#include "loader/train/session.h"

/* In session_open, when the dataset is known: the ways in which they may make
 * batches. -ENOMEM. */
int session_open_service(struct session *s, struct err *err);

#endif

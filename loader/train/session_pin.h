/* SPDX-License-Identifier: MIT */
/* --pin auto: the pinned pool fits itself into what may be locked. */
#ifndef GPEMU_LOADER_TRAIN_SESSION_PIN_H
#define GPEMU_LOADER_TRAIN_SESSION_PIN_H

#include "loader/train/session.h"

/*
 * Once the dataset is open. Where the limit is below `pin_budget` that becomes
 * the limit; where not even one batch fits, `pin` becomes false, and the report
 * and the user learn why. Nothing changes with any other --pin. -ENOMEM.
 */
int session_fit_pin(struct session *s, struct err *err);

#endif

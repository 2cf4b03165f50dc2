/* SPDX-License-Identifier: MIT */
/* The training loop's observer that tracks progress (resume.h) and saves it: a
 * checkpoint is written while the GPUs stand still. */
#ifndef GPEMU_LOADER_TRAIN_SESSION_SAVE_H
#define GPEMU_LOADER_TRAIN_SESSION_SAVE_H

#include "loader/account/observer.h"

/* Its ctx is the struct session. */
extern const struct observer observe_resume;

#endif

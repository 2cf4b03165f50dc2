/* SPDX-License-Identifier: MIT */
/* The emulated stages of a step, beside that of the GPU; in turns with other
 * jobs, or one after the other. Without --stages nothing happens here. */
#ifndef GPEMU_LOADER_TRAIN_SESSION_STAGES_H
#define GPEMU_LOADER_TRAIN_SESSION_STAGES_H

#include "loader/train/session_state.h"

/* -EINVAL with a text. */
int session_open_stages(struct session *s, struct err *err);
/* Before a batch is taken, and after it was given to the GPUs. -ECANCELED:
 * interrupted; -errno with a text. */
int session_load_stage(struct session *s, struct err *err);
int session_network_stage(struct session *s, struct err *err);

#endif

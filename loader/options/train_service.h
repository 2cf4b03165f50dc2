/* SPDX-License-Identifier: MIT */
/* gpemu-train's options about the preparation service. */
#ifndef GPEMU_LOADER_OPTIONS_TRAIN_SERVICE_H
#define GPEMU_LOADER_OPTIONS_TRAIN_SERVICE_H

#include "loader/options/train_options.h"

/* --offload, of the batches: 0..1; < 0: auto. -EINVAL with a text. */
int train_offload_parse(const char *text, double *ret, struct err *err);
/* --last-step. -EINVAL with a text. */
int train_last_step_parse(const char *text, enum last_step *ret,
			  struct err *err);
/*
 * After the plug-ins are chosen: which part of the batches is received, and
 * whether the other options go with that. Where not all are, `engine` becomes
 * the one that reads here. -EINVAL with a text.
 */
int train_service_resolve(const struct train_options *o,
			  struct train_choice *ret, struct err *err);
/* After the GPUs are known: can --offload auto measure them? -EINVAL with a
 * text. */
int train_offload_check(const struct train_options *o,
			const struct train_choice *c, struct err *err);

#endif

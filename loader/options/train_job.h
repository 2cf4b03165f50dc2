/* SPDX-License-Identifier: MIT */
/*
 * A training run's options about its samples, as workers of the preparation
 * service (service/) need them: dataset, order, batches, transforms. Text of
 * one process, read by another, so only these keys are taken.
 */
#ifndef GPEMU_LOADER_OPTIONS_TRAIN_JOB_H
#define GPEMU_LOADER_OPTIONS_TRAIN_JOB_H

#include <jansson.h>

#include "loader/options/train_options.h"
#include "loader/prep/prep.h"

/* {"options": {...}, "samples": N, "fingerprint": TEXT}; the last two are of
 * the dataset as this process has listed it. `all`: of the samples of all
 * ranks. `without`: this transform runs elsewhere; NULL: none does. NULL: no
 * memory. */
json_t *train_job_json(const struct train_options *o, const struct dataset *d,
		       bool all, const struct prep_last *without);
/* Into options that hold the defaults. -EINVAL with a text, -ENOMEM. */
int train_job_read(const char *text, struct train_options *o, struct err *err);
/* Is the dataset the one of the text? -ESTALE with a text. */
int train_job_check(const char *text, const struct dataset *d, struct err *err);

#endif

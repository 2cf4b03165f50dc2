/* SPDX-License-Identifier: MIT */
/* The copies to the GPUs: each has an engine that makes one after the other. */
#ifndef GPEMU_SHARE_COPIES_H
#define GPEMU_SHARE_COPIES_H

#include "share/share.h"

/* To all GPUs of a mask, which the job has, at once, for `ns`. Returns the end.
 * Nothing is copied in no time, once the model is there. */
uint64_t copies_add(struct share *s, struct share_job *job, uint64_t gpus,
		    uint64_t ns, uint64_t *ret_start);
/* When the job has all that was copied to it for its next iteration. */
uint64_t copies_there(const struct share_job *job);
/* When all copies to the GPU that were accepted end. */
uint64_t copies_end(const struct share *s, uint32_t gpu);

#endif

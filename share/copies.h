/* SPDX-License-Identifier: MIT */
/* The copies to the GPUs: each has an engine that makes one after the other. */
#ifndef GPEMU_SHARE_COPIES_H
#define GPEMU_SHARE_COPIES_H

#include "share/state.h"

/* To all GPUs of a mask, which the job has, at once, for `ns`. Returns the end.
 * Nothing is copied in no time, once the model is there. */
uint64_t copies_add(struct share *s, struct share_job *job, uint64_t gpus,
		    uint64_t ns, uint64_t *ret_start);
/* When the job has all that was copied to it for its next iteration. */
uint64_t copies_there(const struct share_job *job);
/* When all copies to the GPU that were accepted end. */
uint64_t copies_end(const struct share *s, uint32_t gpu);

/*
 * Copy the batch of the next iteration to the nth GPU of a resident job, from
 * 0, before the others'. -EINVAL: there is no such GPU, or it has a batch;
 * others as share_submit.
 */
int share_copy(struct share *s, struct share_job *job, uint32_t nth,
	       uint64_t copy_ns, uint64_t *ret_start, uint64_t *ret_end);

#endif

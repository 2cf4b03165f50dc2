/* SPDX-License-Identifier: MIT */
/* Shared GPUs on an event clock, and clients that always have an iteration
 * waiting, like those with a fast loader. A failed check ends the test. */
#ifndef GPEMU_TESTS_SHARE_RIG_H
#define GPEMU_TESTS_SHARE_RIG_H

#include "tests/unit/test.h"

#include "share/share.h"

extern const struct scheduler_ops scheduler_fifo, scheduler_fair,
	scheduler_srtf, scheduler_pack, scheduler_rr;

enum { MAX_JOBS = 256 };

struct client {
	struct share_job *job;
	uint64_t work_ns, left, submitted;
	uint64_t joined, end, last_start;
	uint64_t done; /* iterations */
};

/* config.done: its owner is a client. */
void share_rig_done(void *ctx, struct share_job *job,
		    const struct share_iteration *it);
struct share *share_rig_new(enum share_mode mode,
			    const struct scheduler_ops *scheduler,
			    uint32_t n_gpus, uint64_t memory);
void share_rig_join(struct share *s, struct client *c, uint64_t persistent,
		    uint64_t peak, uint32_t n_gpus);
/* Two in flight, as in a device that holds two batches. */
void share_rig_feed(struct share *s, struct client *c);
/* Until `until`, or with SHARE_NEVER until all are done. */
void share_rig_play(struct share *s, struct client *c, size_t n,
		    uint64_t until);

#endif

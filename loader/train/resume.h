/* SPDX-License-Identifier: MIT */
/*
 * Where a run stands, its checkpoints, and how another process continues from
 * the newest one.
 *
 * A checkpoint records the number of steps done, the epoch, and the samples
 * visited in it. A run that resumes makes the epoch's order again, skips the
 * visited samples, and continues. It must be a part of the same run: the same
 * dataset, model, batch, seed, order and rank. How samples are read and
 * transformed, the GPU, and the number of epochs may differ.
 */
#ifndef GPEMU_LOADER_TRAIN_RESUME_H
#define GPEMU_LOADER_TRAIN_RESUME_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "emu/profile/profile_gpu.h"
#include "loader/account/account.h"
#include "loader/checkpoint/checkpoint.h"
#include "loader/checkpoint/ranks.h"
#include "loader/order/schedule.h"
#include "loader/options/train_options.h"
#include "loader/checkpoint/visited.h"

/* What a simulation has written. */
struct resume_simulated {
	struct checkpoint_stats stats;
	struct hist times; /* as checkpoint_times */
};

struct resume {
	const struct train_options *o;
	int dirfd;		       /* folder of the checkpoints; -1: none */
	struct ranks ranks;	       /* ranks that share its parent */
	struct checkpoint_point point; /* the current one */
	uint64_t steps;		       /* steps of a whole epoch */
	struct visited visited;
	struct checkpoint *checkpoint; /* NULL: none written */
	/* instead; NULL: no simulation */
	const struct resume_simulated *simulated;
	uint64_t state_bytes;
	struct hist stalls; /* emulated: of the GPU, for each checkpoint */
	uint64_t tail_ns;   /* emulated: wait for the last, at the end */
	uint64_t last_step; /* step of the last checkpoint; 0: none */
	bool taken;	    /* a batch whose step is not done */
	bool unsaved;	    /* steps since the last checkpoint */
	json_t *from;	    /* for the record; NULL: from the start */
	/* For the user: what was not used or not found; or empty. */
	struct err notice;
};

/* Initialise; nothing is open. */
void resume_init(struct resume *r);
/*
 * Open what the options name, and find where the run stands: sets `point`.
 * `steps`: of a whole epoch. -EINVAL: the checkpoint is of another run;
 * -EEXIST: the folder has checkpoints and --resume was not given; -EBADMSG: all
 * are damaged; -ENOENT: the requested step, or one that all ranks have, is
 * missing; -EBUSY: another run writes there, or a rank of the previous run.
 * Close with resume_close, failed or not.
 */
int resume_open(struct resume *r, const struct train_options *o,
		const struct order_schedule *schedule, uint64_t steps,
		struct err *err);
void resume_close(struct resume *r);

/* The options that decide which samples are in which batch, by name; NULL: no
 * memory. */
json_t *resume_samples(const struct train_options *o,
		       const struct order_schedule *s);
/* Those, and the ones that decide what a checkpoint holds: all parts of a run
 * must share them. */
json_t *resume_identity(const struct train_options *o,
			const struct order_schedule *s);

/* Is the size of a checkpoint known, if any are requested? -ENODATA. */
int resume_check(const struct train_options *o, const struct gpu_profile *gpu,
		 const struct gpu_model *model, struct err *err);

/* What the options say of checkpoints; sets `state_bytes`. The tick and the log
 * are the caller's. */
struct checkpoint_config resume_config(struct resume *r,
				       const struct gpu_profile *gpu,
				       const struct gpu_model *model);
/* Prepare to write checkpoints, if requested. -ENOMEM. */
int resume_start(struct resume *r, struct tick *tick,
		 const struct gpu_profile *gpu, const struct gpu_model *model,
		 struct err *err);

/* The next step trains on this batch; adds the batch's samples to `a`. */
void resume_take(struct resume *r, const struct delivery *d,
		 struct train_account *a);
/* That step is done. True: a checkpoint is due. */
bool resume_step(struct resume *r);
/* Skip the rest of the epoch. */
void resume_next_epoch(struct resume *r);
/* Write a checkpoint. -errno with a text. */
int resume_save(struct resume *r, struct err *err);
/*
 * The run was interrupted, and its GPUs have computed all steps: write a
 * checkpoint, unless there is one of this step, checkpoints are not requested,
 * or other ranks would have none of it. -errno with a text.
 */
int resume_save_rest(struct resume *r, struct err *err);
/* The run has ended: wait until the last checkpoint is written, flush the
 * log. */
int resume_end(struct resume *r, struct tick *tick, struct err *err);

/* Checkpoints written so far. */
struct checkpoint_stats resume_stats(const struct resume *r);
/* One line of the report; none without checkpoints. */
void resume_print(const struct resume *r, FILE *f);
/* The record's `checkpoints`; null if none are requested. */
json_t *resume_json(const struct resume *r);

#endif

/* SPDX-License-Identifier: MIT */
/*
 * Where a run stands, its checkpoints, and how another process goes on from
 * the newest of them.
 *
 * A checkpoint says how many steps were done, in which epoch, and which of
 * its samples they visited. A run that resumes makes the epoch's order again,
 * leaves those out, and goes on. It must be a part of the same run: the same
 * dataset, model, batch, seed, order and rank. How samples are read and
 * prepared, on what GPU, and for how many epochs, may be different.
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
#include "loader/train/train_options.h"
#include "loader/checkpoint/visited.h"

struct resume {
	const struct train_options *o;
	int dirfd;		       /* of the checkpoints; -1: none */
	struct ranks ranks;	       /* who shares the folder above it */
	struct checkpoint_point point; /* now */
	uint64_t steps;		       /* of a whole epoch */
	struct visited visited;
	struct checkpoint *checkpoint; /* NULL: none are written */
	uint64_t state_bytes;
	uint64_t tail_ns;   /* emulated: waited for the last, at the end */
	uint64_t last_step; /* of the last checkpoint; 0: none */
	json_t *from;	    /* for the record; NULL: from the beginning */
	/* For the user to know: what was not used, or not found; or empty. */
	struct err notice;
};

/* One that is not open. */
void resume_init(struct resume *r);
/*
 * Open what the options name, and find out where the run stands: in `point`.
 * `steps`: of a whole epoch. -EINVAL: the checkpoint is of another run;
 * -EEXIST: the folder has checkpoints and --resume was not given; -EBADMSG:
 * all are damaged; -ENOENT: the one that is wanted, or one that all ranks have,
 * is not there; -EBUSY: another run writes there, or a rank of the one before.
 * Close with resume_close, failed or not.
 */
int resume_open(struct resume *r, const struct train_options *o,
		const struct schedule *schedule, uint64_t steps,
		struct err *err);
void resume_close(struct resume *r);

/* Is it known how large a checkpoint is, if any are asked for? -ENODATA. */
int resume_check(const struct train_options *o, const struct gpu_profile *gpu,
		 const struct gpu_model *model, struct err *err);

/* Be ready to write checkpoints, if they are asked for. -ENOMEM. */
int resume_start(struct resume *r, struct tick *tick,
		 const struct gpu_profile *gpu, const struct gpu_model *model,
		 struct err *err);

/* The next step trains on this batch, and what is in it goes to `a`. */
void resume_take(struct resume *r, const struct delivery *d, struct account *a);
/* That step is done. True: a checkpoint is due. */
bool resume_step(struct resume *r);
/* What is left of the epoch is left out. */
void resume_next_epoch(struct resume *r);
/* Write it. -errno with a text. */
int resume_save(struct resume *r, struct err *err);
/* The run has ended: wait until the last is written, write out the log. */
int resume_end(struct resume *r, struct tick *tick, struct err *err);

/* Written until now. */
struct checkpoint_stats resume_stats(const struct resume *r);
/* For the record: `checkpoints`, null when none are asked for. */
json_t *resume_json(const struct resume *r);

#endif

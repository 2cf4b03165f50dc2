/* SPDX-License-Identifier: MIT */
/* What becomes of a batch with samples that cannot be used. */
#ifndef GPEMU_LOADER_PIPELINE_SIFT_H
#define GPEMU_LOADER_PIPELINE_SIFT_H

#include "loader/pipeline/delivery.h"

enum sift {
	SIFT_DROP, /* they are left out */
	/* In the place of each is the sample of the batch that follows it in
	 * the dataset, the last one followed by the first. */
	SIFT_REPLACE,
	SIFT_ZEROS, /* they stay, for a training loop that sees to it */
};

/*
 * Of a delivery with n_failed. A batch without a sample that can be used keeps
 * one of them, as zeros: every rank has to make its step. The failed ones are
 * place[n..n + n_failed). The new `place` is d->own, of the caller. -ENOMEM.
 */
int sift(struct delivery *d, const struct dataset *data, enum sift how);

#endif

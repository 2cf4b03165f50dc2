/* SPDX-License-Identifier: MIT */
/*
 * Samples that cannot be used, of a read or of their content. The intake leaves
 * them out of their batches; here they are counted, the first of them named,
 * and the run ended when there are more than --bad-samples permits.
 */
#ifndef GPEMU_LOADER_TRAIN_BAD_SAMPLES_H
#define GPEMU_LOADER_TRAIN_BAD_SAMPLES_H

#include <jansson.h>

#include "loader/dataset/dataset.h"
#include "loader/options/train_options.h"
#include "loader/pipeline/delivery.h"

/* arbitrary: enough to see what they have in common */
enum { BAD_NAMED = 10 };

struct bad_samples {
	const struct dataset *data;
	const struct train_bad *allowed;
	const char *option; /* as it was given */
	uint64_t of;	    /* samples of an epoch */
	uint64_t n;	    /* bad ones of this epoch */
	uint32_t n_named;
	struct {
		uint32_t sample;
		int error;
	} named[BAD_NAMED]; /* of the run, each once */
};

/* An epoch of `n` samples begins. */
void bad_samples_begin(struct bad_samples *b, uint64_t n);
/* Count those of a batch. -EBADMSG: more than permitted; with a text that names
 * the first. */
int bad_samples_add(struct bad_samples *b, const struct delivery *d,
		    struct err *err);
/* [{"sample": name, "reason": text}] of the first ones; NULL: there are none.
 */
json_t *bad_samples_json(const struct bad_samples *b);

#endif

/* SPDX-License-Identifier: MIT */
/* A batch as the consumer gets it. All times are emulated ns. */
#ifndef GPEMU_LOADER_PIPELINE_DELIVERY_H
#define GPEMU_LOADER_PIPELINE_DELIVERY_H

#include <stdint.h>

#include "emu/gpu/pinned.h"
#include "loader/pipeline/flow.h"

struct delivery {
	uint32_t n;
	uint32_t n_failed;
	uint64_t bytes;	      /* of the files, without those that failed */
	uint64_t batch_bytes; /* that the device copies */
	uint32_t queued;      /* batches ready when this one was asked for */
	struct place *place;  /* n; NULL from the engine `null` */
	uint64_t complete_ns; /* the workers were done with it */
	uint64_t ready_ns;    /* it can be copied to the device */
	uint64_t pin_ns;      /* what the pin stage took */
	/* Of the workers' time between the moment the GPU fell idle and
	 * complete_ns, how much was reading, the rest being preparation:
	 * 0..1. Where nothing is prepared: 1. */
	double read_share;

	/* the pipeline's */
	unsigned owner;
	uint64_t read_ns, prep_ns; /* as struct batch */
	struct batch *batch;
	struct pinned_buffer *pinned;
};

static inline struct delivery delivery_of(const struct batch *b)
{
	return (struct delivery){
		.n = b->n,
		.place = b->place,
		.complete_ns = b->complete_ns,
		.ready_ns = b->complete_ns,
		.owner = b->owner,
		.read_ns = b->read_ns,
		.prep_ns = b->prep_ns,
	};
}

#endif

/* SPDX-License-Identifier: MIT */
/* A batch as delivered to the consumer. All times are emulated ns. */
#ifndef GPEMU_LOADER_PIPELINE_DELIVERY_H
#define GPEMU_LOADER_PIPELINE_DELIVERY_H

#include <stdbool.h>
#include <stdint.h>

#include "common/util.h"
#include "emu/gpu/pinned.h"
#include "loader/pipeline/flow.h"

struct delivery {
	uint32_t n;
	/* that cannot be used: of these n, until the intake leaves them out
	 * (sift.h), as which they are counted here */
	uint32_t n_failed;
	uint32_t left_out; /* of them, not replaced */
	uint32_t n_zeros;  /* of n: zeros for want of another sample */
	/* read past the mount by a worker of the service; those of our own
	 * workers are in their struct work */
	uint32_t n_bypassed;
	uint64_t bytes;	      /* of the files, without failed samples */
	uint64_t batch_bytes; /* bytes that the device copies */
	uint64_t longest;     /* bytes of the largest file among them */
	uint32_t queued;      /* batches ready at the time of the request */
	/* n, and those left out behind them; NULL from the engine `null` */
	const struct place *place;
	uint64_t complete_ns; /* the workers completed it */
	uint64_t ready_ns;    /* ready for the copy to the device */
	uint64_t pin_ns;      /* time in the pin stage */
	/* The share of reads in the workers' time from the moment the GPU fell
	 * idle to complete_ns, 0..1; the rest is transforms. 1 without
	 * transforms. */
	double read_share;

	/* for the pipeline only */
	unsigned owner;
	struct activity spent; /* as struct batch */
	struct batch *batch;
	struct pinned_buffer *pinned;
	struct place *own; /* `place`, to be freed; NULL: it is not */
	void *received;	   /* struct remote_batch.own */
	struct loan *loan; /* NULL: none has been made */
};

/* Count the bytes and the failures of its samples, find the longest. */
static inline void delivery_count(struct delivery *d,
				  const struct dataset *data)
{
	for (uint32_t i = 0; i < d->n; i++) {
		uint64_t size = dataset_size(data, d->place[i].sample);

		d->batch_bytes += d->place[i].n;
		d->longest = MAX(d->longest, size);
		if (d->place[i].error < 0)
			d->n_failed++;
		else
			d->bytes += size;
	}
}

static inline struct delivery delivery_of(const struct batch *b)
{
	return (struct delivery){
		.n = b->n,
		.place = b->place,
		.complete_ns = b->complete_ns,
		.ready_ns = b->complete_ns,
		.owner = b->owner,
		.spent = b->spent,
		.read_share = b->read_share,
	};
}

#endif

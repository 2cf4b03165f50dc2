/* SPDX-License-Identifier: MIT */
/*
 * The last of the transforms (struct prep_last), of batches that others make
 * without it, in threads of this process:
 *
 *	others --next--> threads --run--> buffers --finish_ops.next--> consumer
 *
 * To the consumer it looks like that which it receives from. Batches keep their
 * order.
 */
#ifndef GPEMU_LOADER_PIPELINE_FINISH_H
#define GPEMU_LOADER_PIPELINE_FINISH_H

#include "loader/engine/remote.h"
#include "loader/prep/prep.h"

struct finish_config {
	const struct prep_ops *prep; /* with `last` */
	const struct prep_config *prep_config;
	size_t sample_bytes; /* as prep_ops.sample_bytes */
	struct tick *tick;
	uint32_t threads, batch;
	/* n_buffers of finish_buffer_bytes each, 64-aligned; borrowed */
	unsigned char **buffer;
	uint32_t n_buffers;
};

struct finish;

/* As remote_ops. The state of each is a struct finish; there is no `open`. */
extern const struct remote_ops finish_ops;

/* Bytes of a buffer for a batch of `n` samples. */
size_t finish_buffer_bytes(uint32_t n, size_t sample_bytes);
/*
 * Takes over what `from` has opened as `state`, also if this fails; it is
 * closed with this. -ENOMEM, -EAGAIN (no thread), those of prep_ops.init; with
 * a text.
 */
int finish_new(const struct finish_config *c, const struct remote_ops *from,
	       void *state, struct finish **ret, struct err *err);

#endif

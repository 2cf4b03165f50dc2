/* SPDX-License-Identifier: MIT */
/*
 * Plug-in kind `prep`: what the CPU does to one sample between the bytes read
 * and the batch. One instance belongs to one worker thread.
 */
#ifndef GPEMU_LOADER_PREP_H
#define GPEMU_LOADER_PREP_H

#include <stddef.h>
#include <stdint.h>

#include "common/err.h"
#include "common/plugin.h"
#include "common/rng.h"

struct prep_ops {
	struct plugin plugin; /* state_size: per instance, zeroed by the host */
	/* NULL: nothing to set up. -ENOMEM. */
	int (*init)(void *state, struct err *err);
	/* After init, also a failed one. NULL: nothing to release. */
	void (*fini)(void *state);
	/*
	 * Bytes of every sample in the batch. NULL: as many as were read; run
	 * is then not called, and the batch holds the raw bytes.
	 */
	size_t (*sample_bytes)(const void *state);
	/*
	 * Turn `n` raw bytes into sample_bytes() at `out` (64-byte aligned).
	 * `rng` is this sample's own stream (seed, epoch, sample), so that
	 * augmentation does not depend on which worker ran it.
	 * -EBADMSG: the sample is broken (truncated, not an image); `out` is
	 * then to be zeroed by the callee.
	 */
	int (*run)(void *state, const void *raw, size_t n, struct rng *rng,
		   void *out);
};

extern const struct plugin *const prep_table[];

#endif

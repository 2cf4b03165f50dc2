/* SPDX-License-Identifier: MIT */
/*
 * Plug-in kind `prep`: what the CPU does to one sample between the bytes read
 * and the batch. One instance belongs to one worker thread.
 */
#ifndef GPEMU_LOADER_PREP_PREP_H
#define GPEMU_LOADER_PREP_PREP_H

#include <stddef.h>
#include <stdint.h>

#include "common/err.h"
#include "common/plugin.h"
#include "common/rng.h"
#include "emu/profile/profile_prep.h"

/* What a stage makes, and out of what; the host's. */
struct prep_config {
	uint32_t side; /* of the square image, in pixels */
	enum prep_output output;
	const void *options; /* the stage's own; NULL: the defaults */
	/* of what is emulated; NULL for the others */
	const struct prep_profile *profile;
};

struct prep_ops {
	struct plugin plugin; /* state_size: per instance, zeroed by the host */
	/* `c` stays in use until fini. NULL: nothing to set up. -ENOMEM. */
	int (*init)(void *state, const struct prep_config *c, struct err *err);
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
	/*
	 * NULL: the time of a sample is what run takes. Otherwise the stage is
	 * emulated: the ns that a sample of `n` raw bytes takes of a virtual
	 * core. Run is not called; every sample is sample_bytes() zeros, which
	 * the host has once for all of them.
	 */
	uint64_t (*cost)(void *state, size_t n, struct rng *rng);
};

extern const struct plugin *const prep_table[];

#endif

/* SPDX-License-Identifier: MIT */
/*
 * Plug-in kind `prep`, the transforms: the CPU work on one sample between its
 * read and its batch. One instance belongs to one worker thread.
 */
#ifndef GPEMU_LOADER_PREP_PREP_H
#define GPEMU_LOADER_PREP_PREP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/err.h"
#include "common/plugin.h"
#include "common/rng.h"
#include "emu/profile/profile_prep.h"

/* The configuration of a stage; the host owns it. */
struct prep_config {
	uint32_t side; /* of the square image, in pixels */
	enum prep_output output;
	uint32_t token_bytes; /* of the dataset's tokens; 0: unknown */
	const void *options;  /* the stage's own; NULL: the defaults */
	/* the emulated stage's; NULL for the others */
	const struct prep_profile *profile;
};

/*
 * The last of a stage's transforms, if all that it does is to make a sample
 * larger: then others can make the rest (--last-step), and fewer bytes are
 * sent.
 */
struct prep_last {
	const char *name;
	/* the option of gpemu-train, and its value, that leave it out */
	const char *option, *value;
	/* Bytes of a sample before it; 0: as many as were read. False: with
	 * this configuration there is no such step. */
	bool (*bytes)(const struct prep_config *c, size_t *ret);
	/* `n` such bytes, at any address, to sample_bytes() at `out`. Any
	 * thread, as the state does not change. As prep_ops.run. */
	int (*run)(const void *state, const void *in, size_t n, void *out);
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
	/* A sample is so many rows of int64; 0: it is an image. */
	uint32_t int64_rows;
	/* run takes about as long as a copy of the sample, and draws nothing:
	 * its rng is NULL, and samples that were read together share a reading
	 * of the clock. */
	bool light;
	/*
	 * Transform `n` raw bytes into sample_bytes() at `out` (64-byte
	 * aligned). `rng` is this sample's own stream (seed, epoch, sample), so
	 * that augmentation does not depend on the worker. -EBADMSG, or the
	 * negative of an enum unusable (unusable.h): the sample is broken,
	 * truncated, not an image; the callee then zeroes `out`.
	 */
	int (*run)(void *state, const void *raw, size_t n, struct rng *rng,
		   void *out);
	/*
	 * NULL: a sample takes as long as run. Otherwise the stage is emulated:
	 * returns the ns that a sample of `n` raw bytes occupies a virtual
	 * core. Run is not called; every sample is sample_bytes() zeros, which
	 * the host allocates once for all of them.
	 */
	uint64_t (*cost)(void *state, size_t n, struct rng *rng);
	const struct prep_last *last; /* NULL: there is none */
};

extern const struct plugin *const prep_table[];

#endif

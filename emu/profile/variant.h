/* SPDX-License-Identifier: MIT */
/* The variants of a model in a profile: names with a sequence length and a
 * precision. */
#ifndef GPEMU_EMU_PROFILE_VARIANT_H
#define GPEMU_EMU_PROFILE_VARIANT_H

#include "emu/profile/profile_gpu.h"

/*
 * The table of a model in a sequence length (0: as named) and a precision
 * (NULL, "": as named). "bert" with 128 and bf16 is "bert:seq128:bf16", or
 * "bert:seq128" where the profile says that it is in bf16. NULL with a text:
 * the name has another sequence length, an unknown precision, one that was not
 * measured; or there is no such model: the GPUs of the database that have it,
 * and the models of this one.
 */
const struct gpu_model *variant_find(const struct gpu_profile *p,
				     const char *name, uint64_t sequence_length,
				     const char *precision, struct err *err);

/* The precision of a table, by its name or its profile; NULL: neither says. */
const char *variant_precision(const struct gpu_profile *p,
			      const struct gpu_model *m);

#endif

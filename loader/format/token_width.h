/* SPDX-License-Identifier: MIT */
/*
 * What a token file says of its tokens: a header, a vocabulary beside it, its
 * first bytes. Pure: safe on any input.
 */
#ifndef GPEMU_LOADER_FORMAT_TOKEN_WIDTH_H
#define GPEMU_LOADER_FORMAT_TOKEN_WIDTH_H

#include <stdbool.h>
#include <stdint.h>

#include "common/err.h"
#include "loader/dataset/peek.h"

/* Bytes before the tokens: 256 int32, of which three are used: magic, version,
 * number of tokens. Source: llm.c, dev/data/data_common.py (write_datafile) */
enum { TOKEN_HEADER = 1024 };

/*
 * The header of llm.c and modded-nanoGPT: 1, and the bytes of a token; 0: the
 * file has none. -EINVAL: an unknown version, no tokens (an evaluation set), or
 * a count that is not the file's; errors of pread(2).
 */
int token_header(struct peek *p, uint32_t *ret_bytes, struct err *err);
/*
 * The value of "vocab_size" in a pickled dictionary, as nanoGPT's meta.pkl has
 * it, protocols 2 to 5. 0: there is none.
 */
uint64_t token_pickled_vocabulary(const uint8_t *bytes, size_t n);
/*
 * Do tokens of `bytes` at `at` fit `vocabulary` (0: unknown)? Looks at the
 * first 64 KiB. `guessed`: nobody said that they have two bytes; -EINVAL if
 * they look like four. -EINVAL: an id outside; a vocabulary too large for
 * tokens of that size; errors of pread(2).
 */
int token_check(struct peek *p, uint64_t at, uint32_t bytes,
		uint64_t vocabulary, bool guessed, struct err *err);

#endif

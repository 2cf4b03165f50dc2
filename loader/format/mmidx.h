/* SPDX-License-Identifier: MIT */
/*
 * The index beside a token file of Megatron: NAME.idx of NAME.bin. Source:
 * Megatron-LM, megatron/core/datasets/indexed_dataset.py.
 *
 *	0	"MMIDIDX\0\0", u64 version 1, u8 type of a token
 *	18	u64 n, number of sequences; u64 of bounds, documents + 1
 *	34	n i32 tokens of each sequence
 *	...	n i64 byte offsets of the sequences in NAME.bin
 *	...	i64 bounds: first sequence of each document, and n
 *	...	n i8 modes, of multimodal data only; not read
 *
 * A document is one sequence or more: preprocess_data.py --split-sentences
 * makes one of each sentence. The bounds are 0 for no document, never
 * decrease, and end at n; Megatron's own reader asserts the last.
 *
 * Little-endian, as this machine.
 */
#ifndef GPEMU_LOADER_FORMAT_MMIDX_H
#define GPEMU_LOADER_FORMAT_MMIDX_H

#include <stdint.h>

#include "common/err.h"
#include "loader/dataset/peek.h"

struct mmidx {
	uint64_t n;	      /* sequences */
	uint64_t documents;   /* may be empty */
	uint32_t token_bytes; /* 1, 2, 4 or 8 */
	uint64_t lengths_at, pointers_at, bounds_at;
};

/* -EINVAL with "byte N: what": not such an index, truncated, or the bounds do
 * not begin at 0 and end at n; errors of pread(2). Safe on any input. */
int mmidx_parse(struct peek *p, struct mmidx *ret, struct err *err);

/* Sequences [first, first + n): their tokens and offsets, n <= MMIDX_MOST.
 * Errors as above. */
enum { MMIDX_MOST = 4096 };
int mmidx_read(struct peek *p, const struct mmidx *x, uint64_t first, size_t n,
	       int32_t *ret_tokens, int64_t *ret_offsets, struct err *err);

/* Bounds of the documents [first, first + n), n + 1 of them, n <= MMIDX_MOST:
 * document first + i is the sequences [ret[i], ret[i + 1]), which exist.
 * Errors as above. */
int mmidx_bounds(struct peek *p, const struct mmidx *x, uint64_t first,
		 size_t n, uint64_t *ret, struct err *err);

#endif

/* SPDX-License-Identifier: MIT */
/* Shared by the readers of trace files. */
#ifndef GPEMU_CACHESIM_CACHESIM_PRIVATE_H
#define GPEMU_CACHESIM_CACHESIM_PRIVATE_H

#include "common/text/rows.h"
#include "fs/cache/cache_index.h"
#include "cachesim/cachesim.h"

/* arbitrary: a larger size is a wrong column; keeps 2^13 such sums below 2^63
 */
#define SIM_MOST_BYTES (1ull << 50)

/* Room for one more item of `item` bytes in *(void **)pp. -ENOMEM, -E2BIG. */
int sim_grow(void *pp, size_t n, size_t *allocated, size_t item);

/* The number of an existing or new object; `index` has 4 bytes per key.
 * -ENOMEM, -E2BIG. */
int sim_trace_number(struct sim_trace *t, struct cache_index *index,
		     uint64_t key, uint64_t bytes, uint64_t file_bytes,
		     uint32_t *ret);

/* Parse bytes that begin with TRACE_MAGIC; safe on any input. */
int sim_trace_parse_mount(const char *bytes, size_t n, const char *name,
			  struct sim_trace *t, struct err *err);

#endif

/* SPDX-License-Identifier: MIT */
/*
 * A timeline of a run in the Trace Event Format (the JSON array form, which
 * need not be closed), as Perfetto and Chrome's about:tracing open it. Source:
 * "Trace Event Format", Google, 2016. Times are emulated.
 *
 * All functions but trace_open and trace_close may be called from any thread,
 * and do nothing for a NULL trace. What could not be written shows at
 * trace_close.
 */
#ifndef GPEMU_LOADER_PIPELINE_TRACE_H
#define GPEMU_LOADER_PIPELINE_TRACE_H

#include <stdint.h>

#include "common/err.h"

/* A line of the picture; TRACE_WORKER + i is that of worker i. */
enum { TRACE_COMPUTE = 1, TRACE_COPY, TRACE_IDLE, TRACE_PIN, TRACE_WORKER };

/* Those of GPU 0; others have theirs behind the workers', the first few. */
enum { TRACE_MAX_GPUS = 8, TRACE_GPUS = 1 << 16 };
static inline uint32_t trace_gpu(uint32_t gpu, uint32_t track)
{
	return gpu ? TRACE_GPUS + gpu * TRACE_PIN + track : track;
}

struct trace;

/* -errno with a text. */
int trace_open(const char *path, struct trace **ret, struct err *err);
/* The tracks of `n` GPUs, or of the first few, get names. */
void trace_name_gpus(struct trace *t, uint32_t n);
/* Also of NULL. -errno with a text that names the file. */
int trace_close(struct trace *t, struct err *err);

/*
 * Something took from `from` to `to`, emulated ns. `args`: what is shown
 * beside it, printf-like for the inside of a JSON object ("\"batch\":%u").
 */
void trace_slice(struct trace *t, uint32_t track, const char *name,
		 uint64_t from, uint64_t to, const char *args, ...)
	__attribute__((format(printf, 6, 7)));
/* The same for what overlaps with others of its track. */
void trace_overlap(struct trace *t, uint32_t track, const char *name,
		   uint64_t from, uint64_t to, const char *args, ...)
	__attribute__((format(printf, 6, 7)));
/* A quantity that is `value` from `at` on. */
void trace_counter(struct trace *t, const char *name, uint64_t at,
		   uint64_t value);

#endif

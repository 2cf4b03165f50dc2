/* SPDX-License-Identifier: MIT */
/*
 * A timeline of a run in the Trace Event Format (common/text/trace_events.h).
 * Times are emulated.
 *
 * All functions but trace_open and trace_close may be called from any thread,
 * and do nothing for a NULL trace. trace_close reports write errors.
 */
#ifndef GPEMU_LOADER_PIPELINE_TRACE_H
#define GPEMU_LOADER_PIPELINE_TRACE_H

#include <stdint.h>

#include "common/err.h"

/* A track of the timeline; TRACE_WORKER + i is worker i's. */
enum { TRACE_COMPUTE = 1, TRACE_COPY, TRACE_IDLE, TRACE_PIN, TRACE_WORKER };

/* Tracks of GPU 0; the first few other GPUs' are after the workers'. */
enum { TRACE_MAX_GPUS = 8, TRACE_GPUS = 1 << 16 };
static inline uint32_t trace_gpu(uint32_t gpu, uint32_t track)
{
	return gpu ? TRACE_GPUS + gpu * TRACE_PIN + track : track;
}

struct trace;

/* -errno with a text. */
int trace_open(const char *path, struct trace **ret, struct err *err);
/* Name the tracks of `n` GPUs, or of the first few. */
void trace_name_gpus(struct trace *t, uint32_t n);
/* NULL is allowed. -errno with a text that names the file. */
int trace_close(struct trace *t, struct err *err);

/*
 * An event from `from` to `to`, emulated ns. `args`: details to show,
 * printf-like for the inside of a JSON object ("\"batch\":%u").
 */
void trace_slice(struct trace *t, uint32_t track, const char *name,
		 uint64_t from, uint64_t to, const char *args, ...)
	__attribute__((format(printf, 6, 7)));
/* The same for events that overlap others on their track. */
void trace_overlap(struct trace *t, uint32_t track, const char *name,
		   uint64_t from, uint64_t to, const char *args, ...)
	__attribute__((format(printf, 6, 7)));
/* A counter has the value `value` from `at` on. */
void trace_counter(struct trace *t, const char *name, uint64_t at,
		   uint64_t value);

#endif

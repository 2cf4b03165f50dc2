/* SPDX-License-Identifier: MIT */
#include "loader/pipeline/trace.h"

#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/text/trace_events.h"
#include "common/util.h"

/* All is in one process. */
enum { PID = 1 };

struct trace {
	struct trace_events events; /* lock */
	pthread_mutex_t lock;
	uint64_t n_overlaps; /* lock; numbers overlapping events */
	uint32_t n_workers;  /* lock; workers whose tracks have names */
};

static const char *const track_names[] = {
	[TRACE_COMPUTE] = "GPU compute (emulated)",
	[TRACE_COPY] = "GPU copy (emulated)",
	[TRACE_IDLE] = "GPU idle, waiting for",
	[TRACE_PIN] = "pin stage (real copy, emulated rest)",
};

void trace_name_gpus(struct trace *t, uint32_t n)
{
	char name[64];

	for (uint32_t i = 1; t && i < n && i < TRACE_MAX_GPUS; i++)
		for (uint32_t j = TRACE_COMPUTE; j < TRACE_PIN; j++) {
			snprintf(name, sizeof(name), "GPU %" PRIu32 "%s", i,
				 track_names[j] + strlen("GPU"));
			trace_events_track(&t->events, PID, trace_gpu(i, j),
					   name);
		}
}

int trace_open(const char *path, struct trace **ret, struct err *err)
{
	_cleanup_free_ struct trace *t = calloc(1, sizeof(*t));
	int r;

	if (!t)
		return err_set(err, -ENOMEM, "out of memory");
	r = trace_events_open(&t->events, path, err);
	if (r < 0)
		return r;
	pthread_mutex_init(&t->lock, NULL);
	trace_events_process(&t->events, PID, "gpemu-train");
	for (uint32_t i = 1; i < ARRAY_SIZE(track_names); i++)
		trace_events_track(&t->events, PID, i, track_names[i]);
	*ret = TAKE_PTR(t);
	return 0;
}

int trace_close(struct trace *t, struct err *err)
{
	int r = t ? trace_events_close(&t->events, err) : 0;

	free(t);
	return r;
}

/* Under the lock: write the start of an event, up to its time. */
static void begin_event(struct trace *t, char phase, uint32_t track,
			const char *name, uint64_t at)
{
	char worker[24];

	while (track < TRACE_GPUS && track >= TRACE_WORKER + t->n_workers) {
		snprintf(worker, sizeof(worker), "worker %" PRIu32,
			 t->n_workers);
		trace_events_track(&t->events, PID,
				   TRACE_WORKER + t->n_workers++, worker);
	}
	fprintf(trace_events_next(&t->events),
		"{\"ph\":\"%c\",\"pid\":%d,\"tid\":%" PRIu32
		",\"name\":\"%s\",\"ts\":%.3f",
		phase, PID, track, name, (double)at / 1e3);
}

static void end(struct trace *t, const char *args, va_list ap)
{
	fputs(",\"args\":{", t->events.file);
	vfprintf(t->events.file, args, ap);
	fputs("}}", t->events.file);
}

void trace_slice(struct trace *t, uint32_t track, const char *name,
		 uint64_t from, uint64_t to, const char *args, ...)
{
	va_list ap;

	if (!t)
		return;
	pthread_mutex_lock(&t->lock);
	begin_event(t, 'X', track, name, from);
	fprintf(t->events.file, ",\"dur\":%.3f", (double)(to - from) / 1e3);
	va_start(ap, args);
	end(t, args, ap);
	va_end(ap);
	pthread_mutex_unlock(&t->lock);
}

void trace_overlap(struct trace *t, uint32_t track, const char *name,
		   uint64_t from, uint64_t to, const char *args, ...)
{
	va_list ap;

	if (!t)
		return;
	pthread_mutex_lock(&t->lock);
	begin_event(t, 'b', track, name, from);
	fprintf(t->events.file, ",\"cat\":\"%s\",\"id\":%" PRIu64, name,
		++t->n_overlaps);
	va_start(ap, args);
	end(t, args, ap);
	va_end(ap);
	begin_event(t, 'e', track, name, to);
	fprintf(t->events.file, ",\"cat\":\"%s\",\"id\":%" PRIu64 "}", name,
		t->n_overlaps);
	pthread_mutex_unlock(&t->lock);
}

void trace_counter(struct trace *t, const char *name, uint64_t at,
		   uint64_t value)
{
	if (!t)
		return;
	pthread_mutex_lock(&t->lock);
	begin_event(t, 'C', 0, name, at);
	fprintf(t->events.file, ",\"args\":{\"%s\":%" PRIu64 "}}", name, value);
	pthread_mutex_unlock(&t->lock);
}

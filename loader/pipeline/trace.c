/* SPDX-License-Identifier: MIT */
#include "loader/pipeline/trace.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/util.h"

/* arbitrary: some thousand events per system call */
enum { BUFFER_BYTES = 1 << 20 };

struct trace {
	FILE *file;
	char *path, *buffer;
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

static void name_track(struct trace *t, uint32_t track, const char *name)
{
	fprintf(t->file,
		",\n{\"ph\":\"M\",\"pid\":1,\"tid\":%" PRIu32
		",\"name\":\"thread_name\",\"args\":{\"name\":\"%s\"}},\n"
		"{\"ph\":\"M\",\"pid\":1,\"tid\":%" PRIu32
		",\"name\":\"thread_sort_index\",\"args\":{\"sort_index\":"
		"%" PRIu32 "}}",
		track, name, track, track);
}

void trace_name_gpus(struct trace *t, uint32_t n)
{
	char name[64];

	for (uint32_t i = 1; t && i < n && i < TRACE_MAX_GPUS; i++)
		for (uint32_t j = TRACE_COMPUTE; j < TRACE_PIN; j++) {
			snprintf(name, sizeof(name), "GPU %" PRIu32 "%s", i,
				 track_names[j] + strlen("GPU"));
			name_track(t, trace_gpu(i, j), name);
		}
}

int trace_open(const char *path, struct trace **ret, struct err *err)
{
	struct trace *t = calloc(1, sizeof(*t));
	int r;

	if (!t || !(t->path = strdup(path)) ||
	    !(t->buffer = malloc(BUFFER_BYTES))) {
		trace_close(t, NULL);
		return err_set(err, -ENOMEM, "out of memory");
	}
	pthread_mutex_init(&t->lock, NULL);
	r = util_output_stream(path, O_CREAT | O_TRUNC, &t->file);
	if (r < 0) {
		trace_close(t, NULL);
		return err_set(err, r, "%s: %s", path, strerror(-r));
	}
	setvbuf(t->file, t->buffer, _IOFBF, BUFFER_BYTES);
	fprintf(t->file, "[{\"ph\":\"M\",\"pid\":1,\"name\":\"process_name\","
			 "\"args\":{\"name\":\"gpemu-train\"}}");
	for (uint32_t i = 1; i < ARRAY_SIZE(track_names); i++)
		name_track(t, i, track_names[i]);
	*ret = t;
	return 0;
}

int trace_close(struct trace *t, struct err *err)
{
	int r = 0;

	if (!t)
		return 0;
	if (t->file) {
		fputs("]\n", t->file);
		if (ferror(t->file))
			r = -EIO;
		if (fclose(t->file))
			r = -errno;
	}
	if (r < 0)
		err_set(err, r, "%s: %s", t->path, strerror(-r));
	free(t->buffer);
	free(t->path);
	free(t);
	return r;
}

/* Under the lock: write the start of an event, up to its time. */
static void begin(struct trace *t, char phase, uint32_t track, const char *name,
		  uint64_t at)
{
	char worker[24];

	while (track < TRACE_GPUS && track >= TRACE_WORKER + t->n_workers) {
		snprintf(worker, sizeof(worker), "worker %" PRIu32,
			 t->n_workers);
		name_track(t, TRACE_WORKER + t->n_workers++, worker);
	}
	fprintf(t->file,
		",\n{\"ph\":\"%c\",\"pid\":1,\"tid\":%" PRIu32
		",\"name\":\"%s\",\"ts\":%.3f",
		phase, track, name, (double)at / 1e3);
}

static void end(struct trace *t, const char *args, va_list ap)
{
	fputs(",\"args\":{", t->file);
	vfprintf(t->file, args, ap);
	fputs("}}", t->file);
}

void trace_slice(struct trace *t, uint32_t track, const char *name,
		 uint64_t from, uint64_t to, const char *args, ...)
{
	va_list ap;

	if (!t)
		return;
	pthread_mutex_lock(&t->lock);
	begin(t, 'X', track, name, from);
	fprintf(t->file, ",\"dur\":%.3f", (double)(to - from) / 1e3);
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
	begin(t, 'b', track, name, from);
	fprintf(t->file, ",\"cat\":\"%s\",\"id\":%" PRIu64, name,
		++t->n_overlaps);
	va_start(ap, args);
	end(t, args, ap);
	va_end(ap);
	begin(t, 'e', track, name, to);
	fprintf(t->file, ",\"cat\":\"%s\",\"id\":%" PRIu64 "}", name,
		t->n_overlaps);
	pthread_mutex_unlock(&t->lock);
}

void trace_counter(struct trace *t, const char *name, uint64_t at,
		   uint64_t value)
{
	if (!t)
		return;
	pthread_mutex_lock(&t->lock);
	begin(t, 'C', 0, name, at);
	fprintf(t->file, ",\"args\":{\"%s\":%" PRIu64 "}}", name, value);
	pthread_mutex_unlock(&t->lock);
}

/* SPDX-License-Identifier: MIT */
/*
 * Files in the Trace Event Format (the JSON array form, which need not be
 * closed), for Perfetto and Chrome's about:tracing. Source: "Trace Event
 * Format", Google, 2016.
 *
 *	struct trace_events t;
 *	int r = trace_events_open(&t, path, err);
 *	if (r == 0) {
 *		trace_events_process(&t, 1, "a program");
 *		trace_events_track(&t, 1, 7, "a thread");
 *		fprintf(trace_events_next(&t), "{\"ph\":\"X\",...}");
 *		r = trace_events_close(&t, err);
 *	}
 */
#ifndef GPEMU_COMMON_TEXT_TRACE_EVENTS_H
#define GPEMU_COMMON_TEXT_TRACE_EVENTS_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "common/err.h"

struct trace_events {
	FILE *file;
	char *path, *buffer;
	bool any; /* events so far */
};

/* -errno with a text; nothing to close then. */
int trace_events_open(struct trace_events *t, const char *path,
		      struct err *err);
/* -errno with a text that names the file: also of what was not written. */
int trace_events_close(struct trace_events *t, struct err *err);
/* Where the next event is to be written: one JSON object. */
FILE *trace_events_next(struct trace_events *t);
/* A text in quotes, escaped; a byte that is not UTF-8 becomes '?'. */
void trace_events_text(FILE *f, const char *text);
/* The names of a process, and of one of its tracks, which have the places of
 * their numbers. */
void trace_events_process(struct trace_events *t, uint32_t pid,
			  const char *name);
void trace_events_track(struct trace_events *t, uint32_t pid, uint32_t tid,
			const char *name);

#endif

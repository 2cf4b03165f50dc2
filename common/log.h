/* SPDX-License-Identifier: MIT */
/*
 * Lines on stderr, "program: text", or in the system log or a file. Mains and
 * front ends call this, once per failure; modules return errors instead. Safe
 * from every thread: one line is one write(2). Bytes of the text that are no
 * UTF-8, or control a terminal, are written as \xHH.
 *
 * Errors, and no other lines, are also appended to the file $GPEMU_ERRORS, if
 * it exists: so a parent tells the error of a program from what else it
 * printed.
 */
#ifndef GPEMU_COMMON_LOG_H
#define GPEMU_COMMON_LOG_H

#include <stdbool.h>

#include "common/err.h"

enum log_level {
	LOG_LEVEL_ERROR,
	LOG_LEVEL_WARN,
	LOG_LEVEL_INFO,
	LOG_LEVEL_DEBUG
};

/*
 * Set the name in front of each line and the most verbose level shown
 * (before the first call: no name, LOG_LEVEL_WARN). Call before threads start.
 */
void log_init(const char *program, enum log_level level);
/* The most verbose level shown from now on; any thread. */
void log_set_level(enum log_level level);
/* "error", "warn", "info" or "debug"; -EINVAL. */
int log_level_parse(const char *s, enum log_level *ret, struct err *err);

/* Send the lines to syslog(3) from now on; stderr is no longer written. */
void log_to_syslog(void);
/*
 * Append the lines to a file from now on, prefixed with the time (UTC) and the
 * process id: "2026-11-21T09:00:00Z gpemu-fs[123]: text". Another call, from
 * any thread, switches to another file or reopens the same name. -errno: no
 * change.
 */
int log_to_file(const char *path);

void log_line(enum log_level level, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));

#define log_error(...) log_line(LOG_LEVEL_ERROR, __VA_ARGS__)
#define log_warn(...) log_line(LOG_LEVEL_WARN, __VA_ARGS__)
#define log_info(...) log_line(LOG_LEVEL_INFO, __VA_ARGS__)
#define log_debug(...) log_line(LOG_LEVEL_DEBUG, __VA_ARGS__)

#endif

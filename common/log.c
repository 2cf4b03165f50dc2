/* SPDX-License-Identifier: MIT */
#include "common/log.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <syslog.h>
#include <unistd.h>

/*
 * The one piece of state at file scope in the project: set by main before
 * threads start (log_to_syslog: by the daemon as it leaves the terminal).
 */
static struct {
	const char *program;
	enum log_level level;
	bool to_syslog; /* atomic: others may be logging */
} log_state = { .level = LOG_LEVEL_WARN };

void log_init(const char *program, enum log_level level)
{
	log_state.program = program;
	log_state.level = level;
}

void log_to_syslog(void)
{
	openlog(log_state.program, LOG_PID, LOG_DAEMON);
	__atomic_store_n(&log_state.to_syslog, true, __ATOMIC_RELEASE);
}

void log_line(enum log_level level, const char *fmt, ...)
{
	static const int priority[] = { LOG_ERR, LOG_WARNING, LOG_INFO,
					LOG_DEBUG };
	bool to_syslog =
		__atomic_load_n(&log_state.to_syslog, __ATOMIC_ACQUIRE);
	char line[1024];
	size_t n = 0;
	va_list ap;

	if (level > log_state.level)
		return;
	if (!to_syslog && log_state.program)
		n = (size_t)snprintf(line, sizeof(line),
				     "%s: ", log_state.program);
	va_start(ap, fmt);
	vsnprintf(line + n, sizeof(line) - n - 1, fmt, ap);
	va_end(ap);
	if (to_syslog) {
		syslog(priority[level], "%s", line);
		return;
	}
	n = strlen(line);
	line[n++] = '\n';
	/* nowhere to report a failure to report */
	if (write(STDERR_FILENO, line, n) < 0)
		return;
}

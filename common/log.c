/* SPDX-License-Identifier: MIT */
#include "common/log.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <syslog.h>
#include <unistd.h>

#include "common/tick.h"
#include "common/util.h"
#include "common/word.h"

enum target { TO_STDERR, TO_SYSLOG, TO_FILE };

/*
 * The only mutable file-scope state in the project: main sets the name before
 * threads start, the rest is atomic.
 */
static struct {
	const char *program;
	int level;  /* enum log_level */
	int target; /* enum target */
	int file;   /* the descriptor number never changes */
	int errors; /* $GPEMU_ERRORS */
} log_state = { .level = LOG_LEVEL_WARN, .file = -1, .errors = -1 };

void log_init(const char *program, enum log_level level)
{
	const char *errors = secure_getenv("GPEMU_ERRORS");

	log_state.program = program;
	log_set_level(level);
	if (errors && errors[0] && log_state.errors < 0)
		log_state.errors = util_open_output(errors, O_APPEND);
}

void log_set_level(enum log_level level)
{
	__atomic_store_n(&log_state.level, level, __ATOMIC_RELAXED);
}

int log_level_parse(const char *s, enum log_level *ret, struct err *err)
{
	static const char *const names[] = { "error", "warn", "info", "debug" };

	return WORD_INTO(names, "--log-level", s, ret, err);
}

void log_to_syslog(void)
{
	openlog(log_state.program, LOG_PID, LOG_DAEMON);
	__atomic_store_n(&log_state.target, TO_SYSLOG, __ATOMIC_RELEASE);
}

int log_to_file(const char *path)
{
	int fd = util_open_output(path, O_CREAT | O_APPEND);
	int r = 0;

	if (fd < 0)
		return fd;
	if (log_state.file < 0) {
		log_state.file = fd;
		__atomic_store_n(&log_state.target, TO_FILE, __ATOMIC_RELEASE);
		return 0;
	}
	/* keep the number: other threads may be writing to it */
	if (dup3(fd, log_state.file, O_CLOEXEC) < 0)
		r = -errno;
	close(fd);
	return r;
}

/* The prefix of a line. */
static size_t prefix(int target, char *line, size_t n)
{
	char now[32];

	if (!log_state.program || target == TO_SYSLOG)
		return 0;
	if (target == TO_STDERR)
		return (size_t)snprintf(line, n, "%s: ", log_state.program);
	tick_utc(now);
	return (size_t)snprintf(line, n, "%s %s[%d]: ", now, log_state.program,
				(int)getpid());
}

/* Of the character at `s`; U+0080 to U+009F do what ESC and a letter do. */
static bool controls(const char *s)
{
	unsigned char c = (unsigned char)s[0], next = (unsigned char)s[1];

	return c < ' ' || c == 0x7f || (c == 0xc2 && next < 0xa0);
}

/* Names of files are in the text, and may be any bytes: those that are no
 * character, or control a terminal, become \xHH. */
static void escape(const char *text, char *to, const char *end)
{
	while (*text && end - to > 4) {
		size_t n = controls(text) ? 0 : util_utf8(text);

		if (n == 0)
			to += sprintf(to, "\\x%02x", (unsigned char)*text++);
		for (; n; n--)
			*to++ = *text++;
	}
	*to = '\0';
}

void log_line(enum log_level level, const char *fmt, ...)
{
	static const int priority[] = { LOG_ERR, LOG_WARNING, LOG_INFO,
					LOG_DEBUG };
	int target = __atomic_load_n(&log_state.target, __ATOMIC_ACQUIRE);
	char text[1024], line[4 * sizeof(text)];
	size_t n;
	va_list ap;

	if ((int)level > __atomic_load_n(&log_state.level, __ATOMIC_RELAXED))
		return;
	n = prefix(target, line, sizeof(line));
	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	escape(text, line + n, line + sizeof(line) - 1);
	if (level == LOG_LEVEL_ERROR && log_state.errors >= 0)
		dprintf(log_state.errors, "%s: %s\n", log_state.program,
			line + n);
	if (target == TO_SYSLOG) {
		syslog(priority[level], "%s", line);
		return;
	}
	n = strlen(line);
	line[n++] = '\n';
	/* a failure to log cannot be logged */
	if (write(target == TO_FILE ? log_state.file : STDERR_FILENO, line, n) <
	    0)
		return;
}

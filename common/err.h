/* SPDX-License-Identifier: MIT */
/*
 * An error: a negative errno for the program and one line for the user. Modules
 * fill it in, only mains and front ends print it.
 */
#ifndef GPEMU_COMMON_ERR_H
#define GPEMU_COMMON_ERR_H

#include <stdio.h>

/* Exit statuses common to all programs. */
enum exit_status {
	EXIT_STATUS_DONE = 0,
	EXIT_STATUS_FAILED = 1,
	EXIT_STATUS_USAGE = 2,
	/* neither: what was measured does not decide it */
	EXIT_STATUS_UNDECIDED = 3,
	/* a resource is temporarily unavailable (sysexits.h: EX_TEMPFAIL) */
	EXIT_STATUS_NOT_NOW = 75,
};

struct err {
	char text[1024]; /* one line, no newline; empty without an error */
	/* Not NULL: whoever can go on after an error does, and each text is
	 * written here, a line each (err_also). */
	FILE *all;
};

/*
 * Format the line and return `code`, a negative errno. `err` may be NULL.
 * An existing text is kept: the first cause is reported.
 */
int err_set(struct err *err, int code, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

/* An error after which the caller can go on: 0 if `err` collects all of them,
 * and the text is there now; else `code`. */
int err_also(struct err *err, int code);

/* Prepend "prefix: " to the text. */
void err_prefix(struct err *err, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));

/*
 * Append a word to the list of known words at the end of a message about an
 * unknown one. `list` has ERR_LIST bytes, initially ""; words that do not fit
 * become "...".
 */
enum { ERR_LIST = 800 };
void err_list(char list[ERR_LIST], const char *word);

#endif

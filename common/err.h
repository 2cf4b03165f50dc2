/* SPDX-License-Identifier: MIT */
/*
 * An error that can be told: a negative errno for the program and one line
 * for the person. Modules fill it in, only the mains and front ends print it.
 */
#ifndef GPEMU_COMMON_ERR_H
#define GPEMU_COMMON_ERR_H

/* Exit statuses common to all programs. */
enum exit_status {
	EXIT_STATUS_DONE = 0,
	EXIT_STATUS_FAILED = 1,
	EXIT_STATUS_USAGE = 2,
	/* the resource is not there now (sysexits.h: EX_TEMPFAIL) */
	EXIT_STATUS_NOT_NOW = 75,
};

struct err {
	char text[1024]; /* one line, no newline; empty while nothing failed */
};

/*
 * Format the line and return `code`, a negative errno. `err` may be NULL.
 * A text already there is kept: the first cause is the one that is told.
 */
int err_set(struct err *err, int code, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

/* Put "prefix: " before the text that is there. */
void err_prefix(struct err *err, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));

/*
 * Append a word to the list of known words that ends a text about an unknown
 * one. `list` is ERR_LIST bytes, "" to begin with; what does not fit shows
 * as "...".
 */
enum { ERR_LIST = 800 };
void err_list(char list[ERR_LIST], const char *word);

#endif

/* SPDX-License-Identifier: MIT */
/*
 * A file that is there whole or not at all: written beside its place, under a
 * hidden name that nobody can guess, and renamed.
 *
 *	fd = replace_begin(&r, AT_FDCWD, path);
 *	if (fd >= 0)
 *		code = replace_end(&r, write to fd, fsync where it matters);
 */
#ifndef GPEMU_COMMON_REPLACE_H
#define GPEMU_COMMON_REPLACE_H

#include <stdio.h>

struct replace {
	int dirfd;	  /* borrowed, as path; AT_FDCWD: the current folder */
	const char *path; /* of the file, relative to dirfd */
	char *beside;	  /* under which it is written */
};

/* A new file, readable and writable, with the mode that the umask leaves of
 * 0666; the caller's to close, at any time. -errno: there is nothing to end. */
int replace_begin(struct replace *r, int dirfd, const char *path);
/* The same as a stream. 0 or -errno. */
int replace_begin_stream(struct replace *r, const char *path, FILE **ret);
/* `code` 0: it takes the place of what is there. < 0: it is removed. Returns
 * `code`, or what rename(2) failed with. */
int replace_end(struct replace *r, int code);
/* The same of the stream, which is closed: also what writing to it failed
 * with. */
int replace_end_stream(struct replace *r, FILE *f);

#endif

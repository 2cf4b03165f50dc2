/* SPDX-License-Identifier: MIT */
/*
 * Atomic replacement of a file: written under a hidden, unpredictable name in
 * the same folder, then renamed.
 *
 *	fd = replace_begin(&r, AT_FDCWD, path, 0666);
 *	if (fd >= 0)
 *		code = replace_end(&r, write to fd, fsync where it matters);
 */
#ifndef GPEMU_COMMON_REPLACE_H
#define GPEMU_COMMON_REPLACE_H

#include <stdio.h>
#include <sys/types.h>

#include "common/err.h"

struct replace {
	int dirfd;	  /* borrowed, as path; AT_FDCWD: the current folder */
	const char *path; /* of the file, relative to dirfd */
	char *beside;	  /* the temporary name */
	char *joined;	  /* of replace_open: its path */
};

/* A new file for reading and writing, with the mode, less the umask, whichever
 * the old one has; the caller closes it, at any time. -errno: do not call
 * replace_end. */
int replace_begin(struct replace *r, int dirfd, const char *path, mode_t mode);
/* The same as a stream for writing alone, mode 0666. 0 or -errno. */
int replace_begin_stream(struct replace *r, const char *path, FILE **ret);
/* `code` 0: rename it. < 0: remove it. Returns `code`, or the error of
 * rename(2). */
int replace_end(struct replace *r, int code);
/* The same for the stream, which is closed; also returns its write errors. */
int replace_end_stream(struct replace *r, FILE *f);

/* A stream as above, of a file in a folder (NULL: `name` is its path). -errno
 * with a text; else call replace_close. */
int replace_open(struct replace *r, const char *folder, const char *name,
		 FILE **ret, struct err *err);
/* As replace_end_stream, or with `code` < 0 as replace_end; with a text, unless
 * there is one. */
int replace_close(struct replace *r, FILE *f, int code, struct err *err);

/* Remove what a process that was killed left beside the file: call it while
 * nobody replaces that. */
void replace_sweep(const char *path);

#endif

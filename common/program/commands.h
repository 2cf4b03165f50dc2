/* SPDX-License-Identifier: MIT */
/*
 * Commands to a program, a line each, from a FIFO that it reads on a thread of
 * its own. Any number of writers may come and go.
 */
#ifndef GPEMU_COMMON_PROGRAM_COMMANDS_H
#define GPEMU_COMMON_PROGRAM_COMMANDS_H

#include "common/err.h"

struct commands_config {
	const char *path; /* of the FIFO, made if missing; used until the end */
	/* On the thread: a line without its end, which may be changed; -errno
	 * with a text. */
	int (*run)(void *ctx, char *line, struct err *err);
	/* On the thread: that failed; the text begins with the path. */
	void (*failed)(void *ctx, const struct err *err);
	void *ctx;
};

struct commands;

/*
 * Open the FIFO for reading and writing, so that it does not end when a writer
 * leaves, and without blocking. It is made for this user alone if missing: who
 * may read it can take commands away. A descriptor; -EEXIST: the file is no
 * FIFO; -EACCES: it is of another user, who is not root; -errno; with a text.
 */
int commands_open(const char *path, struct err *err);

/* Start the thread. As commands_open; with a text. */
int commands_new(const struct commands_config *c, struct commands **ret,
		 struct err *err);
/* Joins the thread. NULL is allowed. */
void commands_free(struct commands *c);

#endif

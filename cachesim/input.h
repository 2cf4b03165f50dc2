/* SPDX-License-Identifier: MIT */
/*
 * The bytes of a trace, front to back: a file, a pipe or bytes in memory, as
 * they are or compressed by zstd, which the first bytes tell. A regular file is
 * mapped; of all others a window of 1 MiB is in memory, or the longest line.
 */
#ifndef GPEMU_CACHESIM_INPUT_H
#define GPEMU_CACHESIM_INPUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/err.h"

struct sim_input {
	const char *name;     /* for messages; borrowed */
	const char *at, *end; /* the window: bytes to be taken */
	bool last;	      /* nothing is behind it */
	bool compressed;      /* by zstd */
	struct err *err;      /* borrowed */
	/* private */
	int fd;	      /* -1: nothing to read */
	size_t grain; /* bytes of a read */
	char *buffer;
	size_t size;
	char *raw; /* as read, or mapped: not yet unpacked */
	size_t raw_at, raw_n;
	size_t mapped; /* bytes to unmap; 0: raw is malloc'ed or borrowed */
	bool own_raw;
	void *unpacker;
	bool inside; /* a frame has begun and not ended */
};

/* "-": standard input. Errors of open(2), -EISDIR, -EINVAL (empty; compressed
 * in another way), -ENOMEM, with a text. Close it, failed or not. */
int sim_input_open(struct sim_input *in, const char *path, struct err *err);
/* A descriptor, which it closes, read `grain` bytes at a time. */
int sim_input_open_fd(struct sim_input *in, int fd, size_t grain,
		      const char *name, struct err *err);
/* Bytes in memory, borrowed. */
int sim_input_open_memory(struct sim_input *in, const void *bytes, size_t n,
			  const char *name, struct err *err);
void sim_input_close(struct sim_input *in);

/* At least `need` bytes in the window, or all that are left; moves it. Errors
 * of read(2), -EINVAL (damaged or truncated), -ENOMEM, with a text. */
int sim_input_fill(struct sim_input *in, size_t need);
/* The next line, without its newline: 1; 0 behind the last. Valid until the
 * next call. Errors as above; -E2BIG: longer than 16 MiB. */
int sim_input_line(struct sim_input *in, const char **ret,
		   const char **ret_end);

#endif

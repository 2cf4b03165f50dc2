/* SPDX-License-Identifier: MIT */
/*
 * The bytes of a file, looked at here and there: what the readers of shards
 * need, who hop from header to header. Also over bytes in memory.
 */
#ifndef GPEMU_LOADER_DATASET_PEEK_H
#define GPEMU_LOADER_DATASET_PEEK_H

#include <stddef.h>
#include <stdint.h>

/* The most that one look can show. Source: twice what numpy writes at most
 * into the header of an array without being asked (numpy/lib/format.py) */
enum { PEEK_MOST = 64 * 1024 };

struct peek {
	int fd;		      /* borrowed; -1: `bytes` */
	uint64_t size;	      /* of the file */
	const uint8_t *bytes; /* borrowed: all of them */
	uint8_t *window;      /* PEEK_MOST, of the file */
	uint64_t at;	      /* where in the file the window is */
	size_t n;	      /* bytes of it that are valid */
	uint64_t bytes_read;  /* from the file until now */
};

/* `size` as fstat(2) says. -ENOMEM. */
int peek_init(struct peek *p, int fd, uint64_t size);
/* Over `n` bytes in memory; needs no peek_fini. */
void peek_init_memory(struct peek *p, const void *bytes, size_t n);
void peek_fini(struct peek *p);

/*
 * `n` <= PEEK_MOST bytes at `at`, valid until the next call. -ENODATA: they
 * are not all there; errors of pread(2).
 */
int peek_get(struct peek *p, uint64_t at, size_t n, const uint8_t **ret);
/* Copy any number of bytes. -ENODATA, errors of pread(2). */
int peek_copy(struct peek *p, uint64_t at, size_t n, void *ret);

#endif

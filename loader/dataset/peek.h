/* SPDX-License-Identifier: MIT */
/*
 * Random access to the bytes of a file, for readers of shards, which hop from
 * header to header. Also works on bytes in memory.
 */
#ifndef GPEMU_LOADER_DATASET_PEEK_H
#define GPEMU_LOADER_DATASET_PEEK_H

#include <stddef.h>
#include <stdint.h>

/* The most that one call returns. Source: twice the array header size that
 * numpy writes without a special option (numpy/lib/format.py) */
enum { PEEK_MOST = 64 * 1024 };

struct peek {
	int fd;		      /* borrowed; -1: reads `bytes` */
	uint64_t size;	      /* of the file */
	const uint8_t *bytes; /* borrowed: the whole input */
	uint8_t *window;      /* PEEK_MOST bytes of the file */
	uint64_t at;	      /* the window's offset in the file */
	size_t n;	      /* valid bytes in it */
	uint64_t bytes_read;  /* from the file so far */
	/* borrowed: where the file is, for those beside it; NULL: unknown */
	const char *path;
	int dirfd;
};

/* `size` as fstat(2) says. -ENOMEM. */
int peek_init(struct peek *p, int fd, uint64_t size);
/* On `n` bytes in memory; needs no peek_fini. */
void peek_init_memory(struct peek *p, const void *bytes, size_t n);
void peek_fini(struct peek *p);

/*
 * `n` <= PEEK_MOST bytes at `at`, valid until the next call. -ENODATA: the file
 * ends before; errors of pread(2).
 */
int peek_get(struct peek *p, uint64_t at, size_t n, const uint8_t **ret);
/* Copy any number of bytes. -ENODATA, errors of pread(2). */
int peek_copy(struct peek *p, uint64_t at, size_t n, void *ret);

#endif

/* SPDX-License-Identifier: MIT */
/* The members of a tar file, as Python's tarfile reads them. */
#ifndef GPEMU_LOADER_FORMAT_TAR_H
#define GPEMU_LOADER_FORMAT_TAR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/err.h"
#include "loader/dataset/peek.h"

enum { TAR_BLOCK = 512 };

struct tar_reader {
	struct peek *p;
	struct err *err;
	uint64_t at; /* of the next header */
};

struct tar_member {
	char *name; /* owned by the caller of tar_next */
	size_t name_n;
	uint64_t offset, size;
	bool is_file, is_folder; /* neither: a link, a device */
};

/*
 * The next member. 1: none left; -EINVAL: damaged, truncated or not supported,
 * -ENOMEM, errors of read(2); with a text that begins with the position.
 */
int tar_next(struct tar_reader *t, struct tar_member *m);

/* Report an error of what was read: -EINVAL; of peek_get or peek_copy. */
int tar_bad(struct tar_reader *t, const char *what);
int tar_failed(struct tar_reader *t, int r);
int tar_no_memory(struct tar_reader *t);

/* A number in decimal, of `n` digits and nothing else; -EINVAL. */
int tar_decimal(const char *v, size_t n, uint64_t *ret);
/* Does a file that begins with this block begin with a member? */
bool tar_looks(const uint8_t block[TAR_BLOCK]);

#endif

/* SPDX-License-Identifier: MIT */
/* Files with secrets. */
#ifndef GPEMU_NET_KEY_FILE_H
#define GPEMU_NET_KEY_FILE_H

#include <sys/types.h>

#include "common/err.h"

/*
 * Read up to `n` bytes of a file that only its owner may access: this user, or
 * root. Returns their number; -EACCES (others know it), and the errors of
 * open(2) and read(2); with a text.
 */
ssize_t key_file_read(const char *path, void *buf, size_t n, struct err *err);

#endif

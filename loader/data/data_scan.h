/* SPDX-License-Identifier: MIT */
/* The files of a dataset folder, as a loader of image folders sees them. */
#ifndef GPEMU_LOADER_DATA_DATA_SCAN_H
#define GPEMU_LOADER_DATA_DATA_SCAN_H

#include <stddef.h>
#include <stdint.h>

#include "common/err.h"

struct data_scan_file {
	char *path; /* below the folder */
	uint64_t bytes;
};

struct data_scan {
	struct data_scan_file *files; /* sorted by path */
	size_t n, capacity;
	uint64_t folders; /* folders below it that hold files; 1 without any,
			   * but with files in it */
};

/*
 * All files below `dir`, by the rules of common/system/walk.h: links are
 * followed; a dangling link is a file of 0 bytes. Free with data_scan_fini,
 * failed or not. -errno naming the path.
 */
int data_scan_read(const char *dir, struct data_scan *ret, struct err *err);
/* How many of them are samples to a loader that does not decode: those in
 * folders, if there is one; of these only images, if they are the majority. */
size_t data_scan_samples(const struct data_scan *s);
void data_scan_fini(struct data_scan *s);

/* A whole file, malloc'ed. -errno naming the path. */
int data_scan_file_read(const char *path, uint8_t **ret, size_t *ret_n,
			struct err *err);

#endif

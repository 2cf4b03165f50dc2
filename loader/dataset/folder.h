/* SPDX-License-Identifier: MIT */
/* The names in a folder, as a dataset sees them: hidden ones left out. */
#ifndef GPEMU_LOADER_DATASET_FOLDER_H
#define GPEMU_LOADER_DATASET_FOLDER_H

#include <dirent.h>
#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>

#include "common/err.h"

/* Folders in folders. Deep enough for any dataset, shallow enough to stop at a
 * link to a parent. arbitrary: no known dataset nests classes this deep */
enum { FOLDER_DEPTH = 16 };

struct folder {
	DIR *dir;
	int fd;		    /* of it, for statx(2) of its names */
	const char *path;   /* as it was opened, for messages */
	const char *name;   /* of the current entry */
	unsigned char type; /* DT_... */
};

/* Open `path` below `dirfd`; "" is dirfd itself. Errors of open(2), with a
 * text. */
int folder_open(struct folder *f, int dirfd, const char *path, struct err *err);
/* The next name. 1: one; 0: the end; -errno with a text. */
int folder_next(struct folder *f, struct err *err);
/* Is the current entry a folder, or a link to one? No call where the kind
 * of the entry is known. */
bool folder_is_folder(const struct folder *f);
void folder_close(struct folder *f);

/* "a" and "b" to "a/b", "" and "b" to "b". -ENAMETOOLONG with a text. */
int folder_join(char ret[PATH_MAX], const char *path, const char *name,
		struct err *err);

/* Kind, size, time of change and inode, links followed. -errno */
int folder_look(int dirfd, const char *path, struct statx *ret);
int64_t folder_mtime_ns(const struct statx *st);

#endif

/* SPDX-License-Identifier: MIT */
/*
 * The folders of objects: made for the first object below them, removed with
 * the last, and synced, so that the names in them are on the disk. A folder is
 * a name as well, in the one above it: those that were made and are not yet on
 * the disk are kept in a list, as any object below them needs them, not only
 * that for which they were made.
 */
#ifndef GPEMU_S3_STORE_FOLDERS_H
#define GPEMU_S3_STORE_FOLDERS_H

#include <pthread.h>
#include <stdint.h>

#include "fs/source/beneath.h"

struct folder;

struct folders {
	const struct beneath *dir; /* above all of them */
	pthread_mutex_t lock;	   /* guards the list; never held in a call of
				    * the file system */
	struct folder *unsynced;   /* utlist; those of requests under way */
	uint64_t n_made;
};

void folders_init(struct folders *f, const struct beneath *dir);
void folders_fini(struct folders *f);

/* open(2) of a folder, which is no link. */
int folders_open(int at, const char *name);

/* The folder of the file `path`, which is made, and its last name in `path`.
 * Not while another makes or removes one. A descriptor or -errno. */
int folders_make(struct folders *f, const char *path, const char **ret_name);
/* Remove the folders above `path` that have become empty, but not our own. Not
 * while another makes or removes one. */
void folders_remove(struct folders *f, const char *path);
/* What has become of the name `path` in its folder is on the disk, and so are
 * the names of the folders above it, if they are there. Any thread. */
int folders_sync(struct folders *f, const char *path);

#endif

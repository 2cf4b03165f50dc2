/* SPDX-License-Identifier: MIT */
/*
 * The file of a staging area: where it is, whose it is, and locks on it.
 *
 * It lies in $XDG_RUNTIME_DIR, or else in /dev/shm/gpemu-UID; both have to be
 * this user's, and writable by nobody else, so that no other user can put a
 * file there. Locks are those of the open file (F_OFD_SETLK): the kernel
 * releases them when a process ends, however it ends, and nothing that is
 * written to the area can break them.
 */
#ifndef GPEMU_LOADER_STAGING_AREA_FILE_H
#define GPEMU_LOADER_STAGING_AREA_FILE_H

#include <stdbool.h>
#include <stdint.h>

#include "common/err.h"

enum { AREA_NAME = 64 }; /* longest name of an area */

struct area_file {
	int dirfd, fd;
	char file[AREA_NAME + 16]; /* in dirfd */
};

/* -EINVAL with a text. */
int area_name_check(const char *name, struct err *err);
/*
 * Open the file of the area `name`, or create an empty one, and lock it.
 * -EINVAL: not a name; -EACCES: the folder or the file belongs to another user,
 * or others may write to it; -EAGAIN: another process has held the lock for
 * `wait_ns` (wall time; 0: no limit). Close with area_file_close, failed or
 * not.
 */
int area_file_open(const char *name, uint64_t wait_ns, struct area_file *ret,
		   struct err *err);
void area_file_close(struct area_file *f);
/* Removes the name; the file stays until its last user has closed it. */
void area_file_unlink(const struct area_file *f);

/* Between processes. -EAGAIN: another one holds it; -errno. */
int area_file_lock(const struct area_file *f);
void area_file_unlock(const struct area_file *f);
/* Mark this process as member `i`, as long as it has the file open. */
int area_file_live(const struct area_file *f, uint32_t i);
/* Is there another process that is member `i`? */
bool area_file_lives(const struct area_file *f, uint32_t i);

#endif

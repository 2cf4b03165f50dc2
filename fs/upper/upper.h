/* SPDX-License-Identifier: MIT */
/*
 * The writable folder of a mount (--writable): the names in it. What is made
 * through the mount lies there at the path that it has in the mount, as
 * ordinary files:
 *
 *	SOURCE  a/1  a/2  b/3	   the mount  a/1  a/2  a/new  b/3  c/new
 *	DIR	a/new  c/new
 *
 * The dataset is never changed. A name of the dataset hides the same name in
 * DIR, and cannot be removed, renamed or replaced; but a folder of the dataset
 * also has the names of its counterpart, the folder of the same path in DIR,
 * which is made when it is needed.
 *
 * No link in DIR is followed (fs/source/beneath.h): its target is read by the
 * client, in whose tree of files it then counts. Nobody else may change DIR
 * while it is mounted.
 *
 * All calls may wait for the file system of DIR. They return 0 or -errno;
 * -ENOSPC, too: a limit (upper_space.h).
 */
#ifndef GPEMU_FS_UPPER_UPPER_H
#define GPEMU_FS_UPPER_UPPER_H

#include "fs/upper/upper_file.h"

/*
 * Use `dir`, which must exist; one mount at a time. `tree` is borrowed; in one
 * for all users (`shared`) others must not reach `dir`: -EACCES. -errno with a
 * text; -EWOULDBLOCK: another mount uses it.
 */
int upper_new(const char *dir, const struct tree *tree, struct upper **ret,
	      struct err *err);
/*
 * Before the calls below: the device holds so many bytes, of which the dataset
 * and what is in the folder have their parts; a byte of a file here is 1 /
 * `scale` bytes there. -ENOSPC: these are more; others as open(2).
 */
int upper_limit(struct upper *u, uint64_t bytes, double scale, struct err *err);
/* Closes the files and folders that are still open. NULL is allowed. */
void upper_free(struct upper *u);

/* What the kernel gets to know of a name; it counts as one lookup. */
struct upper_entry {
	uint64_t ino; /* still 0 after an error */
	struct stat st;
};

/* What is made belongs to this user; `set` false: to this process. */
struct upper_owner {
	bool set;
	uid_t uid;
	gid_t gid;
};

int upper_lookup(struct upper *u, const struct upper_at *at,
		 struct upper_entry *ret);
/* An empty file, opened with the flags of open(2); without O_EXCL also one that
 * is there. */
int upper_create(struct upper *u, const struct upper_at *at, mode_t mode,
		 int flags, const struct upper_owner *owner,
		 struct upper_entry *ret, struct upper_file **ret_file);
int upper_mkdir(struct upper *u, const struct upper_at *at, mode_t mode,
		const struct upper_owner *owner, struct upper_entry *ret);
int upper_symlink(struct upper *u, const struct upper_at *at,
		  const char *target, const struct upper_owner *owner,
		  struct upper_entry *ret);
/* A FIFO, a socket or a device, by the type in `mode`. */
int upper_mknod(struct upper *u, const struct upper_at *at, mode_t mode,
		dev_t dev, const struct upper_owner *owner,
		struct upper_entry *ret);
/* A further name of a file. */
int upper_link(struct upper *u, uint64_t ino, const struct upper_at *at,
	       struct upper_entry *ret);
/* A folder, which must be empty, or (not `folder`) anything else. */
int upper_remove(struct upper *u, const struct upper_at *at, bool folder);
/* As renameat2(2); of the flags RENAME_NOREPLACE or RENAME_EXCHANGE. */
int upper_rename(struct upper *u, const struct upper_at *from,
		 const struct upper_at *to, unsigned flags);

/* The names in a folder that are not of the dataset: those of an open one. */
struct upper_list {
	struct upper_listed {
		char *name;
		uint64_t ino; /* as that of a status */
		mode_t type;  /* S_IFMT */
	} * v;
	size_t n, allocated;
	bool other;
	size_t bytes;			/* charged */
	struct upper_list *prev, *next; /* utlist, under the lock of `upper` */
};

/* Empty. `other`: of another user than the mount's; their lists together have a
 * bound. NULL: no memory. */
struct upper_list *upper_list_new(struct upper *u, bool other);
void upper_list_free(struct upper *u, struct upper_list *l);

/* Replaces what is in the list. -ENFILE: other users list too much at once. */
int upper_list(struct upper *u, uint64_t folder, struct upper_list *ret);

#endif

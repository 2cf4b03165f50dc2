/* SPDX-License-Identifier: MIT */
/*
 * Open files of the writable folder, and attributes of what is in it. All calls
 * may wait for its file system.
 */
#ifndef GPEMU_FS_UPPER_UPPER_FILE_H
#define GPEMU_FS_UPPER_UPPER_FILE_H

#include <sys/statvfs.h>

#include "fs/upper/upper_nodes.h"

struct upper_file {
	int fd;
	bool syncs;   /* each write is a sync, too: O_SYNC or O_DSYNC */
	bool cleared; /* its O_TRUNC ended set-user-ID or set-group-ID */
	struct upper_node *node;
	struct upper_space *space;	/* NULL: no limit */
	struct upper_file *prev, *next; /* utlist, under the lock of `upper` */
};

/* Open with these flags of open(2), of which O_ACCMODE, O_TRUNC, O_SYNC,
 * O_DSYNC and O_NOATIME count. */
int upper_open(struct upper *u, uint64_t ino, int flags,
	       struct upper_file **ret);
/* A file that was just opened by `fd`, which it takes, also without success.
 * -ENOMEM, -ESTALE. */
int upper_adopt(struct upper *u, uint64_t ino, int fd, int flags,
		struct upper_file **ret);
void upper_close(struct upper *u, struct upper_file *f);
/* The bytes between `offset` and the end, `n` at most; 0: an error of fstat(2),
 * which a read reports. */
size_t upper_left(const struct upper_file *f, size_t n, uint64_t offset);
/* Bytes moved, fewer only at the end of the file or after an error. */
ssize_t upper_read(const struct upper_file *f, void *buf, size_t n,
		   uint64_t offset);
/* Before a write or a change of space: ends set-user-ID and set-group-ID, that
 * without the group's execute only for an outsider of the group.
 * 1: the file had some, so its mode is another now. */
int upper_drop_set_id(const struct upper_file *f, bool outsider);
/* 0 or -errno. */
int upper_file_group(const struct upper_file *f, gid_t *ret);
/* Room for a write: for how many of the `n` bytes there is some; -ENOSPC: for
 * none. So many, or none (`buf` NULL), must be written with upper_write. */
ssize_t upper_reserve(const struct upper_file *f, size_t n, uint64_t offset);
ssize_t upper_write(const struct upper_file *f, const void *buf, size_t n,
		    uint64_t offset);
/* fsync(2), and that of the folders, if the name is newer than the last. With
 * `data` fdatasync(2) for the file. */
int upper_sync(struct upper *u, struct upper_file *f, bool data);
int upper_sync_folder(struct upper *u, uint64_t ino);

/* As stat(2), with an inode number that is none of the dataset. Of a folder of
 * the dataset, that of its counterpart; -ENOENT: it has none. */
int upper_stat(struct upper *u, uint64_t ino, struct stat *ret);
/* The number that a status has instead. */
uint64_t upper_number(uint64_t real);
/* As access(2), for this process. */
int upper_access(struct upper *u, uint64_t ino, int mask);
/* chmod(2) of a descriptor, also an O_PATH one. */
int upper_chmod(int fd, mode_t mode);
/* "/proc/self/fd/N" */
struct upper_fd_path {
	char text[32];
};
struct upper_fd_path upper_fd_path(int fd);
/* The target of a link, with its NUL. */
int upper_readlink(struct upper *u, uint64_t ino, char *buf, size_t n);

struct upper_change {
	int64_t bytes; /* < 0: as it is */
	bool has_mode;
	mode_t mode;
	uid_t uid; /* -1: as it is */
	gid_t gid;
	struct timespec times[2]; /* as utimensat(2) takes them */
};
/* `f`: the open file; NULL: by its number. */
int upper_change(struct upper *u, uint64_t ino, const struct upper_file *f,
		 const struct upper_change *c);
/* As statvfs(2); with a limit, that of the device. */
int upper_statvfs(struct upper *u, struct statvfs *ret);

/* As fallocate(2). -EOPNOTSUPP, too: with a limit, beyond the end of the file
 * alone. */
int upper_allocate(const struct upper_file *f, int mode, uint64_t offset,
		   uint64_t bytes);
/* As lseek(2) with SEEK_DATA or SEEK_HOLE. */
int64_t upper_seek(const struct upper_file *f, uint64_t offset, int whence);

/* Extended attributes, as getxattr(2) and the like. */
ssize_t upper_get_xattr(struct upper *u, uint64_t ino, const char *name,
			void *value, size_t n);
ssize_t upper_list_xattr(struct upper *u, uint64_t ino, char *list, size_t n);
/* `value` NULL: remove it. */
int upper_set_xattr(struct upper *u, uint64_t ino, const char *name,
		    const void *value, size_t n, int flags);

#endif

/* SPDX-License-Identifier: MIT */
/*
 * Operations on the writable folder (fs/upper/upper.h), and the refusal of all
 * others that would change something: EROFS.
 *
 *	request -> change_new -> change_start -> server -> faults -> device
 *	                                                               |
 *	        answer <- deadline and `act` are both over <- `act`, on a reader
 *	                                                      thread (fetch.h)
 *
 * A fault comes before `act`: an operation that fails by it has changed
 * nothing. Only a write for whose bytes there is no memory is done at once; it
 * still takes its time.
 */
#ifndef GPEMU_FS_FRONT_FRONT_CHANGE_H
#define GPEMU_FS_FRONT_FRONT_CHANGE_H

#include <fuse_lowlevel.h>

#include "fs/front/front_private.h"
#include "fs/upper/upper.h"

struct change;
/* The real operation: 0 or -errno. */
typedef int change_act(struct change *c);
/* After success. */
typedef void change_answer(struct change *c);

struct change {
	struct fetch fetch;
	struct front *front;
	fuse_req_t req;
	change_act *act;
	change_answer *answer;
	char *path;		   /* of fetch; owned, as the next two */
	char *name, *other;	   /* a further name, a link's target */
	fuse_ino_t ino, other_ino; /* the file, or the folder of a name */
	struct upper_owner owner;
	mode_t mode;
	dev_t dev; /* which nobody can open here: nodev */
	int flags;
	struct upper_file *file;
	char *buf; /* owned; NULL: there is no memory for it */
	struct budget_wait room;
	size_t size;
	off_t offset;
	struct upper_change attr;
	struct upper_list *list;
	bool plus, then_sync, reserved; /* the last: of a write */
	/* results; after an error they are given back */
	struct upper_entry entry;
	struct upper_file *opened;
	size_t n_moved;
};

/* An operation on `ino`, or on a name in it. NULL: ENOMEM was answered. */
struct change *change_new(fuse_req_t req, fuse_ino_t ino, const char *name);
/* The same of a name that may be changed. NULL: ENOMEM was answered, or EROFS:
 * the name is of the dataset or of the mount, or there is no writable folder.
 */
struct change *change_name(fuse_req_t req, fuse_ino_t folder, const char *name);
/* Answers a positive errno, and frees it. */
void change_fail(struct change *c, int error);
/* The same of an operation that never comes to the device. */
void change_refuse(struct change *c, enum storage_op op, int error);
/* Takes it. */
void change_start(struct change *c, enum storage_op op, change_act *act,
		  change_answer *answer);
void change_answer_done(struct change *c);

/* Does another user than the mount's ask? Root is none. */
bool change_of_other(const struct front *f, fuse_req_t req);
/* For an `act` that takes a descriptor: 0 or -EMFILE. */
int change_room(const struct change *c);

/* A name that the dataset lacks, in a mount with a writable folder. */
void front_change_lookup(fuse_req_t req, fuse_ino_t folder, const char *name);

/* Handlers of libfuse, for all inodes but those of control files. */
void front_change_mknod(fuse_req_t req, fuse_ino_t folder, const char *name,
			mode_t mode, dev_t dev);
void front_change_mkdir(fuse_req_t req, fuse_ino_t folder, const char *name,
			mode_t mode);
void front_change_symlink(fuse_req_t req, const char *target, fuse_ino_t folder,
			  const char *name);
void front_change_unlink(fuse_req_t req, fuse_ino_t folder, const char *name);
void front_change_rmdir(fuse_req_t req, fuse_ino_t folder, const char *name);
void front_change_rename(fuse_req_t req, fuse_ino_t folder, const char *name,
			 fuse_ino_t to, const char *to_name,
			 unsigned int flags);
void front_change_link(fuse_req_t req, fuse_ino_t ino, fuse_ino_t folder,
		       const char *name);
void front_change_setattr(fuse_req_t req, fuse_ino_t ino, struct stat *attr,
			  int to_set, struct fuse_file_info *fi);
void front_change_forget(fuse_req_t req, fuse_ino_t ino, uint64_t n);
void front_change_forget_multi(fuse_req_t req, size_t n,
			       struct fuse_forget_data *v);

#endif

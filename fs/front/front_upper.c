/* SPDX-License-Identifier: MIT */
#include "fs/front/front_upper.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/util.h"
#include "fs/front/front_change.h"
#include "fs/front/front_dir.h"
#include "fs/front/front_file.h"

static struct upper_file *file_of(const struct fuse_file_info *fi)
{
	return (struct upper_file *)(uintptr_t)fi->fh;
}

/* The kernel knows the modes of files, for a day, and leaves it to us to end
 * set-user-ID (upper_drop_set_id): it has to look again. */
static void forget_mode(const struct front *f, fuse_ino_t ino)
{
	fuse_lowlevel_notify_inval_inode(f->session, ino, -1, 0);
}

/* --- open and create ------------------------------------------------------ */

static int act_open(struct change *c)
{
	int r = change_room(c);

	if (r == 0)
		r = upper_open(c->front->c.upper, c->ino, c->flags, &c->opened);
	if (r == 0 && c->opened->cleared)
		forget_mode(c->front, c->ino);
	return r;
}

static void answer_open(struct change *c)
{
	if (front_file_reply_open(c->req, (uintptr_t)c->opened) == -ENOENT)
		upper_close(c->front->c.upper, c->opened);
}

void front_upper_open(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi)
{
	struct change *c = change_new(req, ino, NULL);

	if (!c)
		return;
	c->flags = fi->flags | c->front->open_flags;
	change_start(c, STORAGE_OPEN, act_open, answer_open);
}

static int act_create(struct change *c)
{
	const struct upper_at at = { c->ino, c->name };
	int r = change_room(c);

	if (r < 0)
		return r;
	return upper_create(c->front->c.upper, &at, c->mode, c->flags,
			    &c->owner, &c->entry, &c->opened);
}

static void answer_create(struct change *c)
{
	struct upper *u = c->front->c.upper;
	struct fuse_entry_param e = { .ino = c->entry.ino,
				      .attr = c->entry.st,
				      .attr_timeout = FRONT_TIMEOUT_S,
				      .entry_timeout = FRONT_TIMEOUT_S };
	struct fuse_file_info fi = { .fh = (uintptr_t)c->opened,
				     .direct_io = 1,
				     .noflush = 1 };

	if (fuse_reply_create(c->req, &e, &fi) == -ENOENT) {
		upper_close(u, c->opened);
		upper_forget(u, c->entry.ino, 1);
	}
}

void front_upper_create(fuse_req_t req, fuse_ino_t folder, const char *name,
			mode_t mode, struct fuse_file_info *fi)
{
	struct change *c = change_name(req, folder, name);

	if (!c)
		return;
	c->mode = mode;
	c->flags = fi->flags | c->front->open_flags;
	change_start(c, STORAGE_CREATE, act_create, answer_create);
}

void front_upper_release(fuse_req_t req, fuse_ino_t ino,
			 struct fuse_file_info *fi)
{
	struct front *f = fuse_req_userdata(req);

	(void)ino;
	upper_close(f->c.upper, file_of(fi));
	fuse_reply_err(req, 0);
}

/* --- bytes ---------------------------------------------------------------- */

/* A change of an open file, with a buffer of `size` bytes if the mount has
 * memory for it: any number of clients may move a megabyte at a time. NULL:
 * answered. */
static struct change *new_move(fuse_req_t req, fuse_ino_t ino, size_t size,
			       off_t offset, const struct fuse_file_info *fi)
{
	struct change *c = change_new(req, ino, NULL);

	if (!c)
		return NULL;
	c->size = c->room.bytes = size;
	c->offset = offset;
	c->file = file_of(fi);
	if (server_borrow(c->front->c.server, &c->room))
		c->buf = malloc(size ? size : 1);
	return c;
}

/* Without memory: into the page cache. */
static ssize_t read_away(const struct change *c)
{
	char piece[16 << 10]; /* arbitrary: fits a stack */
	size_t at = 0;
	ssize_t n = 1;

	for (; n > 0 && at < c->size; at += (size_t)n)
		n = upper_read(c->file, piece, MIN(sizeof(piece), c->size - at),
			       (uint64_t)c->offset + at);
	return n < 0 ? n : 0;
}

static int act_read(struct change *c)
{
	ssize_t n = c->buf ? upper_read(c->file, c->buf, c->size,
					(uint64_t)c->offset)
			   : read_away(c);

	c->n_moved = n < 0 ? 0 : (size_t)n;
	return n < 0 ? (int)n : 0;
}

static void answer_read(struct change *c)
{
	ssize_t n = (ssize_t)c->n_moved;

	if (!c->buf) {
		c->buf = malloc(c->size);
		n = c->buf ? upper_read(c->file, c->buf, c->size,
					(uint64_t)c->offset)
			   : -ENOMEM;
	}
	if (n < 0)
		fuse_reply_err(c->req, (int)-n);
	else
		fuse_reply_buf(c->req, c->buf, (size_t)n);
}

void front_upper_read(fuse_req_t req, fuse_ino_t ino, size_t size, off_t offset,
		      struct fuse_file_info *fi)
{
	struct change *c;

	/* an end of file costs nothing */
	size = upper_left(file_of(fi), size, (uint64_t)offset);
	if (!size) {
		fuse_reply_buf(req, NULL, 0);
		return;
	}
	c = new_move(req, ino, size, offset, fi);
	if (!c)
		return;
	change_start(c, STORAGE_READ, act_read, answer_read);
}

/* 0 or -errno. */
static int drop_set_id(const struct change *c, bool outsider)
{
	int r = upper_drop_set_id(c->file, outsider);

	if (r > 0)
		forget_mode(c->front, c->ino);
	return MIN(r, 0);
}

static int write_from(struct change *c, const char *buf)
{
	ssize_t n = drop_set_id(c, false);

	if (n < 0)
		return (int)n;
	n = upper_write(c->file, buf, c->size, (uint64_t)c->offset);
	c->reserved = false;
	c->n_moved = n < 0 ? 0 : (size_t)n;
	return n < 0 ? (int)n : 0;
}

static int act_write(struct change *c)
{
	return c->buf ? write_from(c, c->buf) : 0;
}

static void answer_write(struct change *c)
{
	fuse_reply_write(c->req, c->n_moved);
}

/* The device takes the time of what has room on it. */
static int reserve(struct change *c)
{
	ssize_t n = upper_reserve(c->file, c->size, (uint64_t)c->offset);

	if (n < 0)
		return (int)n;
	c->reserved = true;
	c->size = (size_t)n;
	return 0;
}

void front_upper_write(fuse_req_t req, fuse_ino_t ino, const char *buf,
		       size_t size, off_t offset, struct fuse_file_info *fi)
{
	struct change *c = new_move(req, ino, size, offset, fi);
	int r;

	if (!c)
		return;
	r = reserve(c);
	/* libfuse reuses its buffer when this returns */
	if (r == 0 && c->buf)
		memcpy(c->buf, buf, c->size);
	else if (r == 0)
		r = write_from(c, buf);
	if (r < 0) {
		change_refuse(c, STORAGE_WRITE, -r);
		return;
	}
	c->then_sync = c->file->syncs;
	change_start(c, STORAGE_WRITE, act_write, answer_write);
}

/* Is the client outside of the file's group? It waits for its answer, so /proc
 * still has its groups. */
static bool outside_group(const struct change *c)
{
	gid_t group, groups[1024]; /* arbitrary: with more it is outside */
	int n;

	if (upper_file_group(c->file, &group) < 0)
		return true;
	if (c->owner.gid == group)
		return false;
	n = fuse_req_getgroups(c->req, ARRAY_SIZE(groups), groups);
	if (n > (int)ARRAY_SIZE(groups))
		return true;
	for (int i = 0; i < n; i++)
		if (groups[i] == group)
			return false;
	return true;
}

/* Unlike a write, whose client the kernel need not know (mmap), it ends
 * set-user-ID and set-group-ID for whom Linux does: never for root. */
static int act_fallocate(struct change *c)
{
	int r = c->owner.uid == 0 ? 0 : drop_set_id(c, outside_group(c));

	return r < 0 ? r
		     : upper_allocate(c->file, c->flags, (uint64_t)c->offset,
				      c->size);
}

void front_upper_fallocate(fuse_req_t req, fuse_ino_t ino, int mode,
			   off_t offset, off_t bytes, struct fuse_file_info *fi)
{
	struct change *c;

	if (!upper_has(ino)) { /* of .gpemu/control */
		fuse_reply_err(req, EOPNOTSUPP);
		return;
	}
	c = change_new(req, ino, NULL);
	if (!c)
		return;
	c->file = file_of(fi);
	c->flags = mode;
	c->offset = offset;
	c->size = (size_t)bytes;
	change_start(c, STORAGE_CREATE, act_fallocate, change_answer_done);
}

/* SEEK_DATA and SEEK_HOLE, which are free, as an end of file is. What is of the
 * dataset has no holes. */
void front_upper_lseek(fuse_req_t req, fuse_ino_t ino, off_t offset, int whence,
		       struct fuse_file_info *fi)
{
	const struct front *f = fuse_req_userdata(req);
	struct stat st;
	int64_t at;

	if (!f->c.upper) { /* then the kernel asks no more, and does the same */
		fuse_reply_err(req, ENOSYS);
		return;
	}
	if (upper_has(ino)) {
		at = upper_seek(file_of(fi), (uint64_t)offset, whence);
	} else {
		front_stat(f, ino, &st);
		at = whence == SEEK_DATA ? offset : st.st_size;
		if (offset >= st.st_size)
			at = -ENXIO;
	}
	if (at < 0)
		fuse_reply_err(req, (int)-at);
	else
		fuse_reply_lseek(req, at);
}

/* --- syncs ---------------------------------------------------------------- */

static int act_fsync(struct change *c)
{
	return upper_sync(c->front->c.upper, c->file, c->flags);
}

static int act_fsyncdir(struct change *c)
{
	return upper_sync_folder(c->front->c.upper, c->ino);
}

void front_upper_fsync(fuse_req_t req, fuse_ino_t ino, int data,
		       struct fuse_file_info *fi)
{
	const struct front *f = fuse_req_userdata(req);
	struct change *c;

	if (!f->c.upper || !upper_has(ino)) {
		fuse_reply_err(req, f->c.upper ? 0 : ENOSYS);
		return;
	}
	c = change_new(req, ino, NULL);
	if (!c)
		return;
	c->file = file_of(fi);
	c->flags = data;
	change_start(c, STORAGE_SYNC, act_fsync, change_answer_done);
}

void front_upper_fsyncdir(fuse_req_t req, fuse_ino_t ino, int data,
			  struct fuse_file_info *fi)
{
	const struct front *f = fuse_req_userdata(req);
	struct change *c;

	(void)data;
	(void)fi;
	if (!f->c.upper || front_is_ctl(ino)) {
		fuse_reply_err(req, f->c.upper ? 0 : ENOSYS);
		return;
	}
	c = change_new(req, ino, NULL);
	if (!c)
		return;
	change_start(c, STORAGE_SYNC, act_fsyncdir, change_answer_done);
}

/* --- folders -------------------------------------------------------------- */

void front_upper_opendir(fuse_req_t req, fuse_ino_t ino,
			 struct fuse_file_info *fi)
{
	struct front *f = fuse_req_userdata(req);
	struct upper_list *list = NULL;

	if (f->c.upper && !front_is_ctl(ino)) {
		list = upper_list_new(f->c.upper, change_of_other(f, req));
		if (!list) {
			fuse_reply_err(req, ENOMEM);
			return;
		}
	}
	fi->fh = (uintptr_t)list;
	if (fuse_reply_open(req, fi) == -ENOENT && list)
		upper_list_free(f->c.upper, list);
}

void front_upper_releasedir(fuse_req_t req, fuse_ino_t ino,
			    struct fuse_file_info *fi)
{
	struct front *f = fuse_req_userdata(req);

	(void)ino;
	if (fi->fh)
		upper_list_free(f->c.upper,
				(struct upper_list *)(uintptr_t)fi->fh);
	fuse_reply_err(req, 0);
}

static int act_list(struct change *c)
{
	return upper_list(c->front->c.upper, c->ino, c->list);
}

static void answer_list(struct change *c)
{
	front_readdir(c->front, c->req, c->ino, c->size, 0, c->plus, c->list);
}

void front_upper_list(fuse_req_t req, fuse_ino_t ino, size_t size, bool plus,
		      struct fuse_file_info *fi)
{
	struct change *c = change_new(req, ino, NULL);

	if (!c)
		return;
	c->list = (struct upper_list *)(uintptr_t)fi->fh;
	c->size = size;
	c->plus = plus;
	change_start(c, STORAGE_READDIR, act_list, answer_list);
}

/* --- attributes ----------------------------------------------------------- */

/* A folder of the dataset may be written by whom its counterpart lets write,
 * and has changed when that did; who may see its names is as in the dataset. */
int front_upper_stat(const struct front *f, fuse_ino_t ino, struct stat *ret)
{
	struct stat st;

	if (upper_has(ino))
		return upper_stat(f->c.upper, ino, ret);
	front_stat(f, ino, ret);
	if (!f->c.upper || !S_ISDIR(ret->st_mode) ||
	    upper_stat(f->c.upper, ino, &st) < 0)
		return 0;
	ret->st_mode |= st.st_mode & (S_IWOTH | S_ISVTX);
	if (st.st_gid == ret->st_gid)
		ret->st_mode |= st.st_mode & S_IWGRP;
	if (st.st_mtim.tv_sec >= ret->st_mtim.tv_sec)
		ret->st_mtim = ret->st_ctim = st.st_mtim;
	return 0;
}

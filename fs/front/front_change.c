/* SPDX-License-Identifier: MIT */
#include "fs/front/front_change.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "common/tick.h"
#include "common/util.h"
#include "fs/front/front_dir.h"

/* --- a change ------------------------------------------------------------- */

static void change_free(struct change *c)
{
	free(c->path);
	free(c->name);
	free(c->other);
	free(c->buf);
	server_return(c->front->c.server, &c->room);
	free(c);
}

struct change *change_new(fuse_req_t req, fuse_ino_t ino, const char *name)
{
	struct front *f = fuse_req_userdata(req);
	const struct fuse_ctx *ctx = fuse_req_ctx(req);
	struct change *c = calloc(1, sizeof(*c));

	if (c) {
		c->front = f;
		c->req = req;
		c->ino = ino;
		c->owner =
			(struct upper_owner){ f->shared, ctx->uid, ctx->gid };
		c->path = upper_path(f->c.upper, ino, name);
		c->name = name ? strdup(name) : NULL;
		if (c->path && (c->name || !name))
			return c;
		change_free(c);
	}
	fuse_reply_err(req, ENOMEM);
	return NULL;
}

static void reply_error(struct change *c, int error)
{
	/* before the answer: after it the client may close the file */
	if (c->reserved)
		upper_write(c->file, NULL, 0, 0);
	c->reserved = false;
	fuse_reply_err(c->req, error);
}

void change_fail(struct change *c, int error)
{
	reply_error(c, error);
	change_free(c);
}

bool change_of_other(const struct front *f, fuse_req_t req)
{
	uid_t uid = fuse_req_ctx(req)->uid;

	return uid != 0 && uid != f->uid;
}

int change_room(const struct change *c)
{
	return upper_has_room(c->front->c.upper,
			      change_of_other(c->front, c->req));
}

static void give_back(struct change *c)
{
	if (c->opened)
		upper_close(c->front->c.upper, c->opened);
	if (c->entry.ino)
		upper_forget(c->front->c.upper, c->entry.ino, 1);
}

static void done(struct fetch *fetch, bool stopping)
{
	struct change *c = container_of(fetch, struct change, fetch);
	struct server *s = c->front->c.server;
	int error = stopping ? -ECONNABORTED : fetch->error;

	server_metadata_answered(s, fetch, error);
	if (!error && c->then_sync) {
		/* a write with O_SYNC: the real one has done both */
		c->then_sync = false;
		fetch->op = STORAGE_SYNC;
		fetch->arrival = MAX(fetch->deadline, fetch->arrival);
		fetch->bytes = 0;
		fetch->work = NULL;
		server_operate(s, fetch);
		return;
	}
	if (error) {
		give_back(c);
		reply_error(c, -error);
	} else {
		c->answer(c);
	}
	change_free(c);
}

static int work(struct fetch *fetch)
{
	struct change *c = container_of(fetch, struct change, fetch);

	return c->act(c);
}

static void set_fetch(struct change *c, enum storage_op op)
{
	struct front *f = c->front;
	bool moves = op == STORAGE_READ || op == STORAGE_WRITE;
	struct server *s = f->c.server;

	c->fetch = (struct fetch){
		.op = op,
		.node = upper_object(f->c.upper, c->ino),
		.path = c->path,
		.offset = moves ? server_device_bytes(s, (uint64_t)c->offset)
				: 0,
		.bytes = moves ? server_device_bytes(s, c->size) : 0,
		.answered = op == STORAGE_READ ? c->size : 0,
		.client = front_client(f, c->req),
		.arrival = tick_now(server_tick(s)),
		.work = work,
		/* a queue of io_uring has no other thread */
		.here = moves && !c->file->syncs && !f->transport.over_uring,
		.done = done
	};
}

void change_start(struct change *c, enum storage_op op, change_act *act,
		  change_answer *answer)
{
	c->act = act;
	c->answer = answer;
	set_fetch(c, op);
	server_operate(c->front->c.server, &c->fetch);
}

void change_refuse(struct change *c, enum storage_op op, int error)
{
	set_fetch(c, op);
	c->fetch.bytes = 0;
	c->fetch.deadline = c->fetch.arrival;
	server_metadata_answered(c->front->c.server, &c->fetch, -error);
	change_fail(c, error);
}

void change_answer_done(struct change *c)
{
	fuse_reply_err(c->req, 0);
}

/* The entry that was made or looked up. */
static void change_answer_entry(struct change *c)
{
	struct fuse_entry_param e = { .ino = c->entry.ino,
				      .attr = c->entry.st,
				      .attr_timeout = FRONT_TIMEOUT_S,
				      .entry_timeout = FRONT_TIMEOUT_S };

	/* the lookup was interrupted */
	if (fuse_reply_entry(c->req, &e) == -ENOENT)
		give_back(c);
}

/* --- names ---------------------------------------------------------------- */

static struct upper_at at(const struct change *c)
{
	return (struct upper_at){ c->ino, c->name };
}

static int act_lookup(struct change *c)
{
	const struct upper_at name = at(c);

	return upper_lookup(c->front->c.upper, &name, &c->entry);
}

void front_change_lookup(fuse_req_t req, fuse_ino_t folder, const char *name)
{
	struct change *c = change_new(req, folder, name);

	if (!c)
		return;
	change_start(c, STORAGE_LOOKUP, act_lookup, change_answer_entry);
}

/* Is the name of the dataset or of the mount, or is there no writable folder?
 * Then nothing can be changed there. */
static bool change_refused(const struct front *f, fuse_ino_t folder,
			   const char *name)
{
	return !f->c.upper || front_is_ctl(folder) ||
	       upper_is_taken(f->c.upper, &(struct upper_at){ folder, name });
}

struct change *change_name(fuse_req_t req, fuse_ino_t folder, const char *name)
{
	if (!change_refused(fuse_req_userdata(req), folder, name))
		return change_new(req, folder, name);
	fuse_reply_err(req, EROFS);
	return NULL;
}

static int act_mknod(struct change *c)
{
	struct upper *u = c->front->c.upper;
	const struct upper_at name = at(c);
	struct upper_file *file;
	int r;

	if (!S_ISREG(c->mode))
		return upper_mknod(u, &name, c->mode, c->dev, &c->owner,
				   &c->entry);
	r = upper_create(u, &name, c->mode, O_WRONLY | O_EXCL, &c->owner,
			 &c->entry, &file);
	if (r == 0)
		upper_close(u, file);
	return r;
}

void front_change_mknod(fuse_req_t req, fuse_ino_t folder, const char *name,
			mode_t mode, dev_t dev)
{
	struct change *c = change_name(req, folder, name);

	if (!c)
		return;
	c->mode = mode;
	c->dev = dev;
	change_start(c, STORAGE_CREATE, act_mknod, change_answer_entry);
}

static int act_mkdir(struct change *c)
{
	const struct upper_at name = at(c);

	return upper_mkdir(c->front->c.upper, &name, c->mode, &c->owner,
			   &c->entry);
}

void front_change_mkdir(fuse_req_t req, fuse_ino_t folder, const char *name,
			mode_t mode)
{
	struct change *c = change_name(req, folder, name);

	if (!c)
		return;
	c->mode = mode;
	change_start(c, STORAGE_CREATE, act_mkdir, change_answer_entry);
}

/* The further name or the target of a change. false: ENOMEM was answered. */
static bool add_text(struct change *c, const char *text)
{
	c->other = strdup(text);
	if (c->other)
		return true;
	change_fail(c, ENOMEM);
	return false;
}

static int act_symlink(struct change *c)
{
	const struct upper_at name = at(c);

	return upper_symlink(c->front->c.upper, &name, c->other, &c->owner,
			     &c->entry);
}

void front_change_symlink(fuse_req_t req, const char *target, fuse_ino_t folder,
			  const char *name)
{
	struct change *c = change_name(req, folder, name);

	if (!c || !add_text(c, target))
		return;
	change_start(c, STORAGE_CREATE, act_symlink, change_answer_entry);
}

static int act_remove(struct change *c)
{
	const struct upper_at name = at(c);
	int r = change_room(c);

	return r < 0 ? r
		     : upper_remove(c->front->c.upper, &name, S_ISDIR(c->mode));
}

static void start_remove(fuse_req_t req, fuse_ino_t folder, const char *name,
			 mode_t kind)
{
	struct change *c = change_name(req, folder, name);

	if (!c)
		return;
	c->mode = kind;
	change_start(c, STORAGE_REMOVE, act_remove, change_answer_done);
}

void front_change_unlink(fuse_req_t req, fuse_ino_t folder, const char *name)
{
	start_remove(req, folder, name, S_IFREG);
}

void front_change_rmdir(fuse_req_t req, fuse_ino_t folder, const char *name)
{
	start_remove(req, folder, name, S_IFDIR);
}

static int act_rename(struct change *c)
{
	const struct upper_at from = at(c), to = { c->other_ino, c->other };
	int r = change_room(c);

	return r < 0 ? r
		     : upper_rename(c->front->c.upper, &from, &to,
				    (unsigned)c->flags);
}

void front_change_rename(fuse_req_t req, fuse_ino_t folder, const char *name,
			 fuse_ino_t to, const char *to_name, unsigned int flags)
{
	struct change *c;

	if (change_refused(fuse_req_userdata(req), to, to_name)) {
		fuse_reply_err(req, EROFS);
		return;
	}
	c = change_name(req, folder, name);
	if (!c || !add_text(c, to_name))
		return;
	c->other_ino = to;
	c->flags = (int)flags;
	change_start(c, STORAGE_RENAME, act_rename, change_answer_done);
}

static int act_link(struct change *c)
{
	const struct upper_at name = at(c);

	return upper_link(c->front->c.upper, c->other_ino, &name, &c->entry);
}

/* EXDEV: as if the dataset were another file system. */
void front_change_link(fuse_req_t req, fuse_ino_t ino, fuse_ino_t folder,
		       const char *name)
{
	struct change *c = change_name(req, folder, name);

	if (!c)
		return;
	if (!upper_has(ino)) {
		change_fail(c, EXDEV);
		return;
	}
	c->other_ino = ino;
	change_start(c, STORAGE_CREATE, act_link, change_answer_entry);
}

/* --- attributes ----------------------------------------------------------- */

static struct timespec time_of(int to_set, int bit, int now_bit,
			       struct timespec given)
{
	if (to_set & now_bit)
		given.tv_nsec = UTIME_NOW;
	else if (!(to_set & bit))
		given.tv_nsec = UTIME_OMIT;
	return given;
}

static int act_setattr(struct change *c)
{
	struct upper *u = c->front->c.upper;
	int r = upper_change(u, c->ino, c->file, &c->attr);

	return r < 0 ? r : upper_stat(u, c->ino, &c->entry.st);
}

static void answer_attr(struct change *c)
{
	fuse_reply_attr(c->req, &c->entry.st, FRONT_TIMEOUT_S);
}

void front_change_setattr(fuse_req_t req, fuse_ino_t ino, struct stat *attr,
			  int to_set, struct fuse_file_info *fi)
{
	struct change *c;

	if (!upper_has(ino)) {
		fuse_reply_err(req, EROFS);
		return;
	}
	c = change_new(req, ino, NULL);
	if (!c)
		return;
	c->file = fi ? (struct upper_file *)(uintptr_t)fi->fh : NULL;
	c->attr = (struct upper_change){
		.bytes = to_set & FUSE_SET_ATTR_SIZE ? attr->st_size : -1,
		.has_mode = to_set & FUSE_SET_ATTR_MODE,
		.mode = attr->st_mode,
		.uid = to_set & FUSE_SET_ATTR_UID ? attr->st_uid : (uid_t)-1,
		.gid = to_set & FUSE_SET_ATTR_GID ? attr->st_gid : (gid_t)-1,
		.times = { time_of(to_set, FUSE_SET_ATTR_ATIME,
				   FUSE_SET_ATTR_ATIME_NOW, attr->st_atim),
			   time_of(to_set, FUSE_SET_ATTR_MTIME,
				   FUSE_SET_ATTR_MTIME_NOW, attr->st_mtim) }
	};
	change_start(c, STORAGE_CREATE, act_setattr, answer_attr);
}

/* --- the kernel forgets --------------------------------------------------- */

static void forget(const struct front *f, fuse_ino_t ino, uint64_t n)
{
	if (upper_has(ino))
		upper_forget(f->c.upper, ino, n);
}

void front_change_forget(fuse_req_t req, fuse_ino_t ino, uint64_t n)
{
	forget(fuse_req_userdata(req), ino, n);
	fuse_reply_none(req);
}

void front_change_forget_multi(fuse_req_t req, size_t n,
			       struct fuse_forget_data *v)
{
	const struct front *f = fuse_req_userdata(req);

	for (size_t i = 0; i < n; i++)
		forget(f, v[i].ino, v[i].nlookup);
	fuse_reply_none(req);
}

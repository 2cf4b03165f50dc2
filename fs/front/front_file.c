/* SPDX-License-Identifier: MIT */
#include "fs/front/front_file.h"

#include <errno.h>
#include <fcntl.h>
#include <fuse_lowlevel.h>
#include <stdlib.h>
#include <string.h>
#include <utlist.h>

#include "common/log.h"
#include "common/thread.h"
#include "common/tick.h"
#include "common/util.h"
#include "fs/control/jobs.h"
#include "fs/front/front_dir.h"
#include "fs/front/front_private.h"

/* Writes to control files. */

/* A write; without a request, the end of the writes. */
struct command {
	struct job job;
	fuse_req_t req;
	struct ctl *ctl;
	enum ctl_file file;
	const void *writer;
	uint64_t offset;
	size_t n;
	const char *text;
	char copy[];
};

static int run_command(const struct command *c)
{
	struct err err = { 0 };
	int r = c->req ? ctl_write(c->ctl, c->file, c->writer, c->offset,
				   c->text, c->n, &err)
		       : ctl_end(c->ctl, c->writer, &err);

	if (r < 0)
		log_error(CTL_DIR_NAME "/%s: %s", ctl_name(c->file), err.text);
	return r;
}

static void answer(const struct command *c, int r)
{
	if (r < 0)
		fuse_reply_err(c->req, -r);
	else
		fuse_reply_write(c->req, c->n);
}

static int command_work(struct job *job)
{
	return run_command(container_of(job, struct command, job));
}

static void command_done(struct job *job, int r)
{
	const struct command *c = container_of(job, struct command, job);

	if (c->req)
		answer(c, r);
}

static void command_free(struct job *job)
{
	free(container_of(job, struct command, job));
}

/* -ENOMEM. */
static int run_later(struct front *f, const struct command *what)
{
	struct command *c = malloc(sizeof(*c) + what->n);

	if (!c)
		return -ENOMEM;
	*c = *what;
	c->job = (struct job){ .work = command_work,
			       .done = command_done,
			       .free = command_free };
	c->text = memcpy(c->copy, what->text, what->n);
	jobs_add(f->c.jobs, &c->job);
	return 0;
}

/* Do what ctl_write does and answer, now or from another thread
 * (fs/control/jobs.h). */
static void front_ctl_write(struct front *f, fuse_req_t req, enum ctl_file file,
			    const void *writer, uint64_t offset,
			    const char *text, size_t n)
{
	const struct command c = { .req = req,
				   .ctl = f->c.ctl,
				   .file = file,
				   .writer = writer,
				   .offset = offset,
				   .n = n,
				   .text = text };

	if (!ctl_may_wait(file, text, n))
		answer(&c, run_command(&c));
	else if (run_later(f, &c) < 0)
		fuse_reply_err(req, ENOMEM);
}

/* The writer has closed the file; after its writes. Errors are logged: the
 * close is over. */
static void front_ctl_end(struct front *f, enum ctl_file file,
			  const void *writer)
{
	const struct command c = {
		.ctl = f->c.ctl, .file = file, .writer = writer, .text = ""
	};

	if (ctl_ends(file))
		run_later(f, &c);
}

/* Of linux/fuse.h; libfuse 3.14 does not know all of them. */
#define OPEN_DIRECT_IO (1u << 0)
#define OPEN_NOFLUSH (1u << 5)
#define OPEN_PARALLEL_WRITES (1u << 6)	/* since 6.0 */
#define OPEN_PASSTHROUGH_FILE (1u << 7) /* since 6.9 */
#define OPEN_FLAGS_PLAIN (OPEN_DIRECT_IO | OPEN_NOFLUSH)
/* the kernel accepts only NOFLUSH beside it */
#define OPEN_FLAGS_PASSTHROUGH (OPEN_PASSTHROUGH_FILE | OPEN_NOFLUSH)

/* struct fuse_open_out, with the field that libfuse 3.14 calls padding. */
struct open_out {
	uint64_t fh;
	uint32_t open_flags;
	int32_t backing_id;
};

/* An open file: fi->fh points to it. */
struct front_file {
	struct handle *handle; /* of a dataset file, else NULL */
	bool counted;	       /* in passthrough's table, under `node` */
	uint32_t node;
	enum ctl_file which; /* of a control file */
	char *text;	     /* of a control file; NULL: read in pieces */
	size_t n_text;
	bool written; /* atomic: a control file was */
	bool open;
	struct front_file *next, *next_spare; /* under the front's files_lock */
};

static struct front_file *file_new(struct front *f)
{
	struct front_file *file, *fresh = NULL;

	pthread_mutex_lock(&f->files_lock);
	file = f->spare;
	if (file)
		LL_DELETE2(f->spare, file, next_spare);
	pthread_mutex_unlock(&f->files_lock);
	if (!file)
		file = fresh = malloc(sizeof(*file));
	if (!file)
		return NULL;
	*file = (struct front_file){ .open = true,
				     .next = fresh ? NULL : file->next };
	if (!fresh)
		return file;
	pthread_mutex_lock(&f->files_lock);
	LL_PREPEND(f->files, file);
	pthread_mutex_unlock(&f->files_lock);
	return file;
}

static void close_file(struct front *f, struct front_file *file)
{
	if (file->handle)
		server_close(f->c.server, file->handle);
	if (file->counted)
		passthrough_close(&f->passthrough, file->node);
	ctl_free(f->c.ctl, file->text, file->n_text);
	file->open = false;
}

static void file_free(struct front *f, struct front_file *file)
{
	if (!file)
		return;
	close_file(f, file);
	LOCK_SCOPE(&f->files_lock);
	LL_PREPEND2(f->spare, file, next_spare);
}

void front_file_free_all(struct front *f)
{
	struct front_file *file, *next;

	LL_FOREACH_SAFE(f->files, file, next)
	{
		if (file->open)
			close_file(f, file);
		free(file);
	}
	f->files = f->spare = NULL;
}

/* --- open --------------------------------------------------------------- */

/* -ENOENT: the open was interrupted, so the kernel sends no release. */
static void reply_open(struct front *f, fuse_req_t req, struct front_file *file,
		       uint32_t flags, int backing_id)
{
	struct open_out out = { .fh = (uintptr_t)file,
				.open_flags = flags,
				.backing_id = backing_id };

	if (fuse_reply_buf(req, (char *)&out, sizeof(out)) == -ENOENT)
		file_free(f, file);
}

int front_file_reply_open(fuse_req_t req, uint64_t fh)
{
	struct open_out out = {
		.fh = fh, .open_flags = OPEN_FLAGS_PLAIN | OPEN_PARALLEL_WRITES
	};

	return fuse_reply_buf(req, (char *)&out, sizeof(out));
}

/* An open that first reads the whole file, so that the device charges it. */
struct late {
	struct read_request request;
	struct front *front;
	fuse_req_t req;
	struct front_file *file;
	int backing_id;
};

static void answer_late(struct read_request *request, int error,
			const struct iovec *iov, int n_iov)
{
	struct late *l = container_of(request, struct late, request);

	(void)iov;
	(void)n_iov;
	if (error < 0) {
		fuse_reply_err(l->req, -error);
		file_free(l->front, l->file);
	} else {
		reply_open(l->front, l->req, l->file, OPEN_FLAGS_PASSTHROUGH,
			   l->backing_id);
	}
	free(l);
}

static void open_late(struct front *f, fuse_req_t req, struct front_file *file,
		      int backing_id)
{
	struct late *l = malloc(sizeof(*l));

	if (!l) {
		fuse_reply_err(req, ENOMEM);
		file_free(f, file);
		return;
	}
	l->front = f;
	l->req = req;
	l->file = file;
	l->backing_id = backing_id;
	l->request.handle = file->handle;
	l->request.client = front_client(f, req);
	l->request.offset = 0;
	l->request.bytes = OBJECT_EXTENT;
	l->request.before = 0;
	l->request.arrival = tick_now(server_tick(f->c.server));
	l->request.reply = answer_late;
	server_read(f->c.server, &l->request);
}

/* The mode in which the file is now open, or -ENOMEM. */
static int prepare(struct front *f, uint32_t node, struct front_file *file,
		   bool may_wait, int *ret_backing_id)
{
	int mode = passthrough_open(&f->passthrough, node, may_wait,
				    ret_backing_id);

	if (mode < 0)
		return mode;
	file->counted = true;
	file->node = node;
	if (mode != OPEN_PASSTHROUGH) {
		file->handle = server_open(f->c.server, node);
		if (!file->handle)
			return -ENOMEM;
	}
	return mode;
}

void front_file_open(struct front *f, fuse_req_t req, fuse_ino_t ino,
		     bool may_wait)
{
	struct front_file *file = file_new(f);
	int mode = -ENOMEM, id = 0;

	if (file)
		mode = prepare(f, (uint32_t)(ino - 1), file, may_wait, &id);
	switch (mode) {
	case OPEN_PLAIN: reply_open(f, req, file, OPEN_FLAGS_PLAIN, 0); break;
	case OPEN_PASSTHROUGH:
		reply_open(f, req, file, OPEN_FLAGS_PASSTHROUGH, id);
		break;
	case OPEN_MISS: open_late(f, req, file, id); break;
	default: file_free(f, file); fuse_reply_err(req, ENOMEM);
	}
}

void front_file_open_ctl(struct front *f, fuse_req_t req, fuse_ino_t ino,
			 struct fuse_file_info *fi)
{
	enum ctl_file which = front_ctl_file(ino);
	bool writes = (fi->flags & O_ACCMODE) != O_RDONLY;
	struct front_file *file;
	int r;

	if (writes && !ctl_writable(which)) {
		fuse_reply_err(req, EROFS);
		return;
	}
	file = file_new(f);
	r = file ? 0 : -ENOMEM;
	if (file)
		file->which = which;
	if (file && !ctl_is_long(which))
		r = ctl_read(f->c.ctl, which, &file->text, &file->n_text);
	if (r < 0) {
		file_free(f, file);
		fuse_reply_err(req, -r);
		return;
	}
	reply_open(f, req, file, OPEN_FLAGS_PLAIN, 0);
}

void front_file_write_ctl(fuse_req_t req, const char *buf, size_t size,
			  off_t offset, struct fuse_file_info *fi)
{
	struct front_file *file = (struct front_file *)(uintptr_t)fi->fh;

	__atomic_store_n(&file->written, true, __ATOMIC_RELAXED);
	front_ctl_write(fuse_req_userdata(req), req, file->which, file,
			(uint64_t)offset, buf, size);
}

void front_file_release(fuse_req_t req, fuse_ino_t ino,
			struct fuse_file_info *fi)
{
	struct front_file *file = (struct front_file *)(uintptr_t)fi->fh;
	struct front *f = fuse_req_userdata(req);

	(void)ino;
	/* before the file may be another one's */
	if (__atomic_load_n(&file->written, __ATOMIC_RELAXED))
		front_ctl_end(f, file->which, file);
	file_free(f, file);
	fuse_reply_err(req, 0);
}

/* --- read --------------------------------------------------------------- */

struct read {
	struct read_request request;
	fuse_req_t req;
};

static void answer_read(struct read_request *request, int error,
			const struct iovec *iov, int n_iov)
{
	struct read *r = container_of(request, struct read, request);

	if (error < 0)
		fuse_reply_err(r->req, -error);
	else
		fuse_reply_iov(r->req, iov, n_iov);
	free(r);
}

static void reply_long(struct front *f, fuse_req_t req,
		       const struct front_file *file, size_t size,
		       uint64_t offset)
{
	_cleanup_free_ char *text = NULL;
	size_t n;
	int r = ctl_read_at(f->c.ctl, file->which, offset, size, &text, &n);

	if (r < 0)
		fuse_reply_err(req, -r);
	else
		fuse_reply_buf(req, text, n);
}

/*
 * Replies from a copy: the reader may get the reply and close the file, and
 * the file may be released, before the call that replies returns.
 */
static void reply_text(fuse_req_t req, const struct front_file *file,
		       size_t size, size_t offset)
{
	size_t at = MIN(offset, file->n_text);
	size_t n = MIN(size, file->n_text - at);
	_cleanup_free_ char *copy = malloc(n + 1);

	if (!copy) {
		fuse_reply_err(req, ENOMEM);
		return;
	}
	memcpy(copy, file->text + at, n);
	fuse_reply_buf(req, copy, n);
}

void front_file_read(fuse_req_t req, fuse_ino_t ino, size_t size, off_t offset,
		     struct fuse_file_info *fi)
{
	struct front *f = fuse_req_userdata(req);
	struct front_file *file = (struct front_file *)(uintptr_t)fi->fh;
	struct read *r;

	(void)ino;
	/* In passthrough mode only readahead hints (readahead(2),
	 * POSIX_FADV_WILLNEED) come here; no reader uses these pages.
	 * An end of file would make the kernel shrink the file's size. */
	if (!file->handle && file->counted) {
		fuse_reply_err(req, EIO);
		return;
	}
	if (!file->handle && !file->text) {
		reply_long(f, req, file, size, (uint64_t)offset);
		return;
	}
	if (!file->handle) {
		reply_text(req, file, size, (size_t)offset);
		return;
	}
	r = malloc(sizeof(*r));
	if (!r) {
		fuse_reply_err(req, ENOMEM);
		return;
	}
	r->req = req;
	r->request.handle = file->handle;
	r->request.client = front_client(f, req);
	r->request.offset = (uint64_t)offset;
	r->request.bytes = size;
	r->request.before = 0;
	r->request.arrival = tick_now(server_tick(f->c.server));
	r->request.reply = answer_read;
	server_read(f->c.server, &r->request);
}

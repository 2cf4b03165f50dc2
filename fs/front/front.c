/* SPDX-License-Identifier: MIT */
#include "fs/front/front.h"

#include <errno.h>
#include <fcntl.h>
#include <fuse_lowlevel.h>
#include <inttypes.h>
#include <limits.h>
#include <linux/limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/log.h"
#include "common/tick.h"
#include "common/util.h"
#include "fs/control/ctl.h"
#include "fs/device/calibrate.h"
#include "fs/front/front_change.h"
#include "fs/front/front_dir.h"
#include "fs/front/front_file.h"
#include "fs/front/front_private.h"
#include "fs/front/front_upper.h"
#include "fs/server/server.h"

/*
 * --- extended attributes --------------------------------------------------
 *
 * Extended attributes of the mount's files, for loaders: the file's position on
 * the emulated device, to sort reads (gpemu-train --sort-extents; on a real
 * device FIEMAP gives it, which the kernel passes to no FUSE server); and the
 * node whose cache owns it, to read it there (--order locality).
 */

/* A decimal number below 2^64 (fs/device/device.h: device_place). */
#define FRONT_XATTR_PLACE "user.gpemu.place"

/* With --peers: a decimal number, from 0. */
#define FRONT_XATTR_OWNER "user.gpemu.owner"

/* Size 0: the caller asks for the length of the value. */
static void xattr_answer(fuse_req_t req, const char *value, size_t n,
			 size_t size)
{
	if (size == 0)
		fuse_reply_xattr(req, n);
	else if (size < n)
		fuse_reply_err(req, ERANGE);
	else
		fuse_reply_buf(req, value, n);
}

/* The value of an attribute of a file; false: it has none of that name. */
static bool xattr_find(fuse_req_t req, fuse_ino_t ino, const char *name,
		       uint64_t *ret)
{
	const struct front *f = fuse_req_userdata(req);
	uint32_t file = (uint32_t)(ino - 1), owner;

	if (front_is_ctl(ino))
		return false;
	if (!strcmp(name, FRONT_XATTR_PLACE))
		return server_place(f->c.server, file, ret);
	if (strcmp(name, FRONT_XATTR_OWNER) ||
	    !server_owner(f->c.server, file, &owner))
		return false;
	*ret = owner;
	return true;
}

/* --- of the writable folder ----------------------------------------------- */

/* Others would be checked against this process (security.*, trusted.*), or not
 * be respected (system.posix_acl_*). */
static bool is_kept(const char *name)
{
	return !strncmp(name, "user.", strlen("user."));
}

/* Of what *xattr(2) returned for a buffer of `size`. */
static void xattr_answer_got(fuse_req_t req, const char *value, ssize_t got,
			     size_t size)
{
	if (got < 0)
		fuse_reply_err(req, (int)-got);
	else
		xattr_answer(req, value, (size_t)got, size);
}

static void xattr_get_upper(fuse_req_t req, fuse_ino_t ino, const char *name,
			    size_t size)
{
	const struct front *f = fuse_req_userdata(req);
	_cleanup_free_ char *value = malloc(size + 1);

	if (!is_kept(name))
		fuse_reply_err(req, ENODATA);
	else if (!value)
		fuse_reply_err(req, ENOMEM);
	else
		xattr_answer_got(req, value,
				 upper_get_xattr(f->c.upper, ino, name, value,
						 size),
				 size);
}

/* The names of attributes, less those that are not shown. */
static ssize_t list_kept(struct upper *u, fuse_ino_t ino, char *list, size_t n)
{
	ssize_t got = upper_list_xattr(u, ino, list, n), kept = 0;

	for (ssize_t at = 0; at < got;) {
		size_t len = strlen(list + at) + 1;

		if (is_kept(list + at)) {
			memmove(list + kept, list + at, len);
			kept += (ssize_t)len;
		}
		at += (ssize_t)len;
	}
	return got < 0 ? got : kept;
}

static void xattr_list_upper(fuse_req_t req, fuse_ino_t ino, size_t size)
{
	const struct front *f = fuse_req_userdata(req);
	_cleanup_free_ char *list = malloc(XATTR_LIST_MAX);

	if (!list)
		fuse_reply_err(req, ENOMEM);
	else
		xattr_answer_got(
			req, list,
			list_kept(f->c.upper, ino, list, XATTR_LIST_MAX), size);
}

static int act_set(struct change *c)
{
	return upper_set_xattr(c->front->c.upper, c->ino, c->other, c->buf,
			       c->size, c->flags);
}

/* `value` NULL: remove it. */
static void xattr_change(fuse_req_t req, fuse_ino_t ino, const char *name,
			 const char *value, size_t size, int flags)
{
	struct change *c;

	if (!upper_has(ino) || !is_kept(name)) {
		fuse_reply_err(req, upper_has(ino) ? EOPNOTSUPP : EROFS);
		return;
	}
	c = change_new(req, ino, NULL);
	if (!c)
		return;
	c->other = strdup(name);
	c->buf = value ? malloc(size + 1) : NULL;
	if (!c->other || (value && !c->buf)) {
		change_fail(c, ENOMEM);
		return;
	}
	if (value)
		memcpy(c->buf, value, size);
	c->size = size;
	c->flags = flags;
	change_start(c, STORAGE_CREATE, act_set, change_answer_done);
}

/* "user." ones of the writable folder; else EOPNOTSUPP, or EROFS. */
static void front_xattr_set(fuse_req_t req, fuse_ino_t ino, const char *name,
			    const char *value, size_t size, int flags)
{
	xattr_change(req, ino, name, value, size, flags);
}

static void front_xattr_remove(fuse_req_t req, fuse_ino_t ino, const char *name)
{
	xattr_change(req, ino, name, NULL, 0, 0);
}

/* --- of the dataset ------------------------------------------------------- */

/* Of the dataset: ENODATA: another name, a control file, a device without
 * positions, no node that owns the file. */
static void front_xattr_get(fuse_req_t req, fuse_ino_t ino, const char *name,
			    size_t size)
{
	char text[24];
	uint64_t value;
	int n;

	if (upper_has(ino)) {
		xattr_get_upper(req, ino, name, size);
		return;
	}
	if (!xattr_find(req, ino, name, &value)) {
		fuse_reply_err(req, ENODATA);
		return;
	}
	n = snprintf(text, sizeof(text), "%" PRIu64, value);
	xattr_answer(req, text, (size_t)n, size);
}

static void front_xattr_list(fuse_req_t req, fuse_ino_t ino, size_t size)
{
	static const char *const names[] = { FRONT_XATTR_PLACE,
					     FRONT_XATTR_OWNER };
	char list[sizeof(FRONT_XATTR_PLACE) + sizeof(FRONT_XATTR_OWNER)];
	uint64_t value;
	size_t n = 0;

	if (upper_has(ino)) {
		xattr_list_upper(req, ino, size);
		return;
	}
	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		size_t len = strlen(names[i]) + 1;

		if (!xattr_find(req, ino, names[i], &value))
			continue;
		memcpy(list + n, names[i], len);
		n += len;
	}
	xattr_answer(req, list, n, size);
}

/*
 * --- calibration ----------------------------------------------------------
 *
 * The round trip of a mount (fs/device/calibrate.h), measured when it begins.
 */

static int measure(struct front *f, struct round_trip *ret)
{
	static const double probe_ns[CALIBRATE_N_STAGES] = {
		[CALIBRATE_ALONE] = CALIBRATE_ALONE_NS,
		[CALIBRATE_SLOW] = CALIBRATE_SLOW_NS,
	};
	double scale = tick_scale(server_tick(f->c.server));
	_cleanup_free_ char *dir = NULL;
	struct calibration c = { 0 };
	int r;

	dir = util_text("%s/" CTL_DIR_NAME, f->c.mountpoint);
	r = dir ? calibrate_begin(&c, dir, ctl_name(CTL_CONFIG)) : -ENOMEM;
	for (int i = 0; r == 0 && i < CALIBRATE_N_STAGES; i++) {
		__atomic_store_n(&f->probe_ns, (uint64_t)(probe_ns[i] / scale),
				 __ATOMIC_RELAXED);
		r = calibrate_run(&c, i, ret);
	}
	__atomic_store_n(&f->probe_ns, 0, __ATOMIC_RELAXED);
	calibrate_end(&c);
	return r;
}

/*
 * Did it fail because the mount ends? Requests dropped at the end fail before
 * front_loop's thread sees the end of the loop, and on an unmount the kernel
 * fails the callers before it notifies us. So the error decides: that of the
 * connection or, after a lazy unmount, that of a missing name.
 */
static bool is_end(const struct front *f, int r)
{
	return r == -ECONNABORTED || r == -ENOTCONN || r == -ENOENT ||
	       __atomic_load_n(&f->stopping, __ATOMIC_ACQUIRE);
}

/* Requests to ourselves, answered by the threads that serve the mount. */
static void *calibrate(void *arg)
{
	struct front *f = arg;
	struct round_trip trip;
	int r = measure(f, &trip);

	if (r == 0)
		server_set_round_trip(f->c.server, &trip);
	else if (!is_end(f, r))
		log_warn("cannot measure the round trip, which adds to the "
			 "emulated time: %s",
			 strerror(-r));
	if (f->c.ready)
		f->c.ready(f->c.ctx);
	return NULL;
}

/* Start it, once the mount is usable, on a thread of its own; that thread then
 * calls front_config.ready. */
static void front_calibrate(struct front *f)
{
	if (pthread_create(&f->calibrator, NULL, calibrate, f) == 0)
		f->calibrates = true;
	else if (f->c.ready)
		f->c.ready(f->c.ctx);
}

/* Join the thread; after the end of the connection to the kernel. */
static void front_calibrate_end(struct front *f)
{
	if (f->calibrates)
		pthread_join(f->calibrator, NULL);
	f->calibrates = false;
}

/* Sent only to the thread in front_loop. */
enum { WAKE_SIGNAL = SIGUSR2 };

/* --- interrupted requests ------------------------------------------------- */

static bool is_interrupted(void *client)
{
	return fuse_req_interrupted(client);
}

/* --- metadata operations -------------------------------------------------- */

/* A request that waits for the device before `answer` replies to it. */
struct wait {
	struct fetch fetch;
	fuse_req_t req;
	struct front *front;
	void (*answer)(struct wait *w);
	pthread_t taker; /* the thread that received the request */
	fuse_ino_t ino;
	size_t size; /* of a readdir or a probe's read */
	char *bytes; /* of a probe's read; owned */
	off_t offset;
	bool plus;
};

static void wait_done(struct fetch *f, bool stopping)
{
	struct wait *w = container_of(f, struct wait, fetch);

	if (!f->takes) /* not a calibration probe */
		server_metadata_answered(w->front->c.server, f,
					 stopping   ? -ECONNABORTED
					 : f->error ? f->error
					 : w->ino   ? 0
						    : -ENOENT);
	if (stopping)
		fuse_reply_err(w->req, ECONNABORTED);
	else if (f->error)
		fuse_reply_err(w->req, -f->error);
	else
		w->answer(w);
	free(w->bytes);
	free(w);
}

static void wait_for(struct front *front, enum storage_op op, uint32_t node,
		     const struct wait *template)
{
	struct wait *w = malloc(sizeof(*w));

	if (!w) {
		fuse_reply_err(template->req, ENOMEM);
		free(template->bytes);
		return;
	}
	*w = *template;
	w->front = front;
	w->taker = pthread_self();
	w->fetch = (struct fetch){
		.op = op,
		.node = node,
		.client = template->fetch.takes ? NULL
						: front_client(front, w->req),
		.arrival = tick_now(server_tick(front->c.server)),
		.takes = template->fetch.takes,
		.done = wait_done
	};
	server_metadata(front->c.server, &w->fetch);
}

static void answer_lookup(struct wait *w)
{
	struct fuse_entry_param e;

	front_entry(w->front, w->ino, &e);
	fuse_reply_entry(w->req, &e);
}

/* --- control files -------------------------------------------------------
 *
 * They cost no device time, except for the calibration probes. Probes are not
 * traced, and faults do not apply to them.
 */

static uint64_t probe_ns(struct front *f)
{
	return __atomic_load_n(&f->probe_ns, __ATOMIC_RELAXED);
}

static void lookup_ctl(struct front *f, fuse_req_t req, fuse_ino_t parent,
		       const char *name)
{
	struct wait w = { .req = req,
			  .front = f,
			  .ino = front_ctl_lookup(f, parent, name),
			  .answer = answer_lookup };

	if (!w.ino)
		w.fetch.takes = probe_ns(f);
	if (w.fetch.takes)
		wait_for(f, STORAGE_LOOKUP, TREE_ROOT, &w);
	else
		answer_lookup(&w);
}

static void op_lookup(fuse_req_t req, fuse_ino_t parent, const char *name)
{
	struct front *f = fuse_req_userdata(req);
	const struct tree *tree = server_tree(f->c.server);
	uint32_t node;

	if (front_is_ctl(parent) ||
	    (parent == FUSE_ROOT_ID && !strcmp(name, CTL_DIR_NAME))) {
		lookup_ctl(f, req, parent, name);
		return;
	}
	node = upper_has(parent)
		       ? TREE_NONE
		       : tree_lookup(tree, (uint32_t)(parent - 1), name);
	if (node == TREE_NONE && f->c.upper) {
		front_change_lookup(req, parent, name);
		return;
	}
	if (node != TREE_NONE)
		node = tree_file(tree, node);
	wait_for(f, STORAGE_LOOKUP, node == TREE_NONE ? TREE_ROOT : node,
		 &(struct wait){ .req = req,
				 .ino = node == TREE_NONE ? 0 : node + 1ull,
				 .answer = answer_lookup });
}

static void answer_attr(struct wait *w)
{
	struct fuse_entry_param e;

	front_entry(w->front, w->ino, &e);
	fuse_reply_attr(w->req, &e.attr, e.attr_timeout);
}

static void op_getattr(fuse_req_t req, fuse_ino_t ino,
		       struct fuse_file_info *fi)
{
	struct front *f = fuse_req_userdata(req);
	struct stat st;
	uint64_t kept_ns;
	int r = 0;

	(void)fi;
	/* what a FUSE mount of the device would be asked again, also after a
	 * read, which changes the time of access. The way to the control files
	 * costs nothing, whatever the faults */
	if (ino != FUSE_ROOT_ID && !front_is_ctl(ino) && !f->c.upper &&
	    server_keeps_names(f->c.server, &kept_ns)) {
		wait_for(f, STORAGE_LOOKUP, (uint32_t)(ino - 1),
			 &(struct wait){ .req = req,
					 .ino = ino,
					 .answer = answer_attr });
		return;
	}
	if (front_is_ctl(ino))
		front_stat(f, ino, &st);
	else
		r = front_upper_stat(f, ino, &st);
	if (r < 0)
		fuse_reply_err(req, -r);
	else
		fuse_reply_attr(req, &st, FRONT_TIMEOUT_S);
}

/* Of the owner, or of root: nobody else comes here, see front_mount_options. */
static bool may(const struct front *f, fuse_ino_t ino, int mask)
{
	struct stat st;
	uint32_t bits;

	front_stat(f, ino, &st);
	bits = st.st_mode >> 6 & 7;
	if (f->uid == 0)
		bits |= S_ISDIR(st.st_mode) || st.st_mode & 0111
				? R_OK | W_OK | X_OK
				: R_OK | W_OK;
	return !(mask & ~(int)bits);
}

static bool is_folder(const struct front *f, fuse_ino_t ino)
{
	return S_ISDIR(server_tree(f->c.server)->nodes[ino - 1].mode);
}

static void op_access(fuse_req_t req, fuse_ino_t ino, int mask)
{
	struct front *f = fuse_req_userdata(req);
	bool writes = front_is_ctl(ino) && ctl_writable(front_ctl_file(ino));

	if (upper_has(ino)) {
		fuse_reply_err(req, -upper_access(f->c.upper, ino, mask));
		return;
	}
	if (f->c.upper && !front_is_ctl(ino))
		writes = is_folder(f, ino);
	if ((mask & W_OK) && !writes)
		fuse_reply_err(req, EROFS);
	else
		fuse_reply_err(req, may(f, ino, mask) ? 0 : EACCES);
}

static void op_readlink(fuse_req_t req, fuse_ino_t ino)
{
	struct front *f = fuse_req_userdata(req);
	char target[PATH_MAX];
	int r = upper_has(ino)
			? upper_readlink(f->c.upper, ino, target,
					 sizeof(target))
			: server_readlink(f->c.server, (uint32_t)(ino - 1),
					  target, sizeof(target));

	if (r < 0)
		fuse_reply_err(req, -r);
	else
		fuse_reply_readlink(req, target);
}

static void answer_readdir(struct wait *w)
{
	front_readdir(w->front, w->req, w->ino, w->size, w->offset, w->plus,
		      NULL);
}

static void list(fuse_req_t req, fuse_ino_t ino, size_t size, off_t offset,
		 bool plus, struct fuse_file_info *fi)
{
	struct front *f = fuse_req_userdata(req);
	struct wait w = { .req = req,
			  .ino = ino,
			  .size = size,
			  .offset = offset,
			  .plus = plus,
			  .answer = answer_readdir };

	if (front_is_ctl(ino))
		w.fetch.takes = probe_ns(f);
	/* a listing is one operation, whatever its number of calls */
	if (offset || (front_is_ctl(ino) && !w.fetch.takes))
		front_readdir(f, req, ino, size, offset, plus,
			      (struct upper_list *)(uintptr_t)fi->fh);
	else if (fi->fh)
		front_upper_list(req, ino, size, plus, fi);
	else
		wait_for(f, STORAGE_READDIR,
			 w.fetch.takes ? TREE_ROOT : (uint32_t)(ino - 1), &w);
}

static void op_readdir(fuse_req_t req, fuse_ino_t ino, size_t size,
		       off_t offset, struct fuse_file_info *fi)
{
	list(req, ino, size, offset, false, fi);
}

static void op_readdirplus(fuse_req_t req, fuse_ino_t ino, size_t size,
			   off_t offset, struct fuse_file_info *fi)
{
	list(req, ino, size, offset, true, fi);
}

static void answer_open(struct wait *w)
{
	front_file_open(w->front, w->req, w->ino,
			pthread_equal(w->taker, pthread_self()));
}

static void op_open(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi)
{
	struct front *f = fuse_req_userdata(req);

	if (front_is_ctl(ino))
		front_file_open_ctl(f, req, ino, fi);
	else if (upper_has(ino))
		front_upper_open(req, ino, fi);
	else if ((fi->flags & O_ACCMODE) != O_RDONLY)
		fuse_reply_err(req, EROFS);
	else if (!f->shared && !may(f, ino, R_OK))
		fuse_reply_err(req, EACCES);
	else
		wait_for(f, STORAGE_OPEN, (uint32_t)(ino - 1),
			 &(struct wait){ .req = req,
					 .ino = ino,
					 .answer = answer_open });
}

static void answer_probe(struct wait *w)
{
	fuse_reply_buf(w->req, w->bytes, w->size);
}

static void op_read(fuse_req_t req, fuse_ino_t ino, size_t size, off_t offset,
		    struct fuse_file_info *fi)
{
	struct front *f = fuse_req_userdata(req);
	struct wait w = { .req = req, .size = size, .answer = answer_probe };

	if (upper_has(ino)) {
		front_upper_read(req, ino, size, offset, fi);
		return;
	}
	/* other clients may read control files during the calibration */
	if (front_is_ctl(ino) && offset == CALIBRATE_OFFSET)
		w.fetch.takes = probe_ns(f);
	if (!w.fetch.takes) {
		front_file_read(req, ino, size, offset, fi);
		return;
	}
	w.bytes = calibrate_answer(size);
	if (!w.bytes)
		w.size = 0;
	/* charged like an operation that reads no bytes */
	wait_for(f, STORAGE_OPEN, TREE_ROOT, &w);
}

static void op_statfs(fuse_req_t req, fuse_ino_t ino)
{
	struct front *f = fuse_req_userdata(req);
	const struct tree *t = server_tree(f->c.server);
	struct statvfs st = { .f_bsize = 4096,
			      .f_frsize = 4096,
			      .f_blocks = (t->file_bytes + 4095) / 4096,
			      .f_files = t->n_nodes - t->n_again,
			      .f_namemax = NAME_MAX,
			      .f_flag = ST_RDONLY };

	(void)ino;
	if (f->c.upper && upper_statvfs(f->c.upper, &st) == 0) {
		st.f_flag = 0;
		st.f_files += t->n_nodes - t->n_again;
	}
	fuse_reply_statfs(req, &st);
}

/* --- writes --------------------------------------------------------------- */

static void op_write(fuse_req_t req, fuse_ino_t ino, const char *buf,
		     size_t size, off_t offset, struct fuse_file_info *fi)
{
	if (front_is_ctl(ino))
		front_file_write_ctl(req, buf, size, offset, fi);
	else if (upper_has(ino))
		front_upper_write(req, ino, buf, size, offset, fi);
	else
		fuse_reply_err(req, EROFS);
}

/* A shell's `> control` truncates first: allowed, the file is empty. */
static void op_setattr(fuse_req_t req, fuse_ino_t ino, struct stat *attr,
		       int to_set, struct fuse_file_info *fi)
{
	if (front_is_ctl(ino) && ctl_writable(front_ctl_file(ino)) &&
	    !(to_set & ~(FUSE_SET_ATTR_SIZE | FUSE_SET_ATTR_MTIME |
			 FUSE_SET_ATTR_CTIME)))
		op_getattr(req, ino, fi);
	else
		front_change_setattr(req, ino, attr, to_set, fi);
}

static void op_release(fuse_req_t req, fuse_ino_t ino,
		       struct fuse_file_info *fi)
{
	if (upper_has(ino))
		front_upper_release(req, ino, fi);
	else
		front_file_release(req, ino, fi);
}

/* --- start and stop ------------------------------------------------------- */

static void op_init(void *userdata, struct fuse_conn_info *conn)
{
	(void)userdata;
	/* attributes never change, so the kernel's cache stays valid */
	conn->want &= ~(unsigned)FUSE_CAP_AUTO_INVAL_DATA;
	conn->want |= conn->capable & FUSE_CAP_CACHE_SYMLINKS;
	/* the kernel's default limit of background reads (12) would cap the
	 * queue depth that the device sees */
	conn->max_background = 1024;
	conn->congestion_threshold = 768;
}

static void note_transport(struct front *f)
{
	const struct transport *t = &f->transport;

	ctl_set_transport(f->c.ctl, t->over_uring ? "uring" : "dev");
	if (t->over_uring || f->c.transport != TRANSPORT_URING)
		return;
	if (t->uring_error)
		log_warn("FUSE over io_uring: %s; using /dev/fuse",
			 strerror(-t->uring_error));
	else
		log_warn("FUSE over io_uring is off in this kernel (it needs "
			 "Linux 6.14 and "
			 "/sys/module/fuse/parameters/enable_uring); using "
			 "/dev/fuse");
}

static void note_reply(struct front *f)
{
	if (f->c.hit_path == HIT_PATH_REPLY) {
		server_set_hit_path(f->c.server, "--hit-path reply");
		return;
	}
	server_set_hit_path(f->c.server, "this kernel has no FUSE passthrough");
	if (f->c.hit_path == HIT_PATH_PASSTHROUGH)
		log_warn("this kernel has no FUSE passthrough (it needs Linux "
			 "6.9); hits are answered by reply");
}

/* The kernel has our reply to INIT: the mount is usable from here on. */
static void accepted(struct transport *t)
{
	struct front *f = container_of(t, struct front, transport);

	if (t->passthrough)
		passthrough_enable(&f->passthrough,
				   fuse_session_fd(f->session));
	else
		note_reply(f);
	note_transport(f);
	front_calibrate(f);
}

static const struct fuse_lowlevel_ops ops = {
	.init = op_init,
	.lookup = op_lookup,
	.getattr = op_getattr,
	.setattr = op_setattr,
	.access = op_access,
	.readlink = op_readlink,
	.mknod = front_change_mknod,
	.mkdir = front_change_mkdir,
	.unlink = front_change_unlink,
	.rmdir = front_change_rmdir,
	.symlink = front_change_symlink,
	.rename = front_change_rename,
	.link = front_change_link,
	.open = op_open,
	.read = op_read,
	.write = op_write,
	.release = op_release,
	.readdir = op_readdir,
	.readdirplus = op_readdirplus,
	.statfs = op_statfs,
	.getxattr = front_xattr_get,
	.listxattr = front_xattr_list,
	.setxattr = front_xattr_set,
	.removexattr = front_xattr_remove,
	.fallocate = front_upper_fallocate,
	.lseek = front_upper_lseek,
	.create = front_upper_create,
	.forget = front_change_forget,
	.forget_multi = front_change_forget_multi,
	.fsync = front_upper_fsync,
	.fsyncdir = front_upper_fsyncdir,
	.opendir = front_upper_opendir,
	.releasedir = front_upper_releasedir,
};

int front_new(const struct front_config *config, struct front **ret,
	      struct err *err)
{
	struct front *f = calloc(1, sizeof(*f));
	int r;

	if (!f)
		return err_set(err, -ENOMEM, "out of memory");
	f->c = *config;
	f->mountpoint.fd = -1;
	f->transport.accepted = accepted;
	f->transport.want_passthrough = config->hit_path != HIT_PATH_REPLY;
	f->transport.want_uring = config->transport != TRANSPORT_DEV;
	server_on_interrupt(config->server, is_interrupted);
	passthrough_init(&f->passthrough, config->server,
			 config->hit_path == HIT_PATH_PASSTHROUGH);
	tick_mutex_init(&f->files_lock);
	f->uid = getuid();
	f->gid = getgid();
	r = front_session_new(config, &ops, f, &f->session, err);
	if (r == 0)
		r = transport_attach(&f->transport, f->session);
	if (r < 0) {
		front_free(f);
		return err_set(err, r, "cannot set up FUSE: %s", strerror(-r));
	}
	r = mountpoint_hold(config->mountpoint, &f->mountpoint, err);
	if (r < 0) {
		front_free(f);
		return r;
	}
	if (fuse_session_mount(f->session, f->mountpoint.name)) {
		front_free(f);
		return err_set(err, -EPERM,
			       "%s: cannot mount; is fusermount3 installed, "
			       "and is the folder yours?",
			       config->mountpoint);
	}
	f->mounted = true;
	*ret = f;
	return 0;
}

static void woken(int sig)
{
	(void)sig;
}

/* libfuse's loop blocks in sem_wait; a signal with a handler interrupts it. */
static void let_wake(void)
{
	struct sigaction sa = { .sa_handler = woken };
	sigset_t set;

	sigaction(WAKE_SIGNAL, &sa, NULL);
	sigemptyset(&set);
	sigaddset(&set, WAKE_SIGNAL);
	pthread_sigmask(SIG_UNBLOCK, &set, NULL);
}

int front_loop(struct front *f)
{
	struct fuse_loop_config *config = fuse_loop_cfg_create();
	int r;

	if (!config)
		return -ENOMEM;
	let_wake();
	f->looper = pthread_self();
	__atomic_store_n(&f->looping, true, __ATOMIC_RELEASE);
	/* handlers never wait for the device, so a few threads suffice, and
	 * those that writes may hold up */
	fuse_loop_cfg_set_clone_fd(config, 1);
	fuse_loop_cfg_set_max_threads(
		config, (unsigned)MAX(4, sysconf(_SC_NPROCESSORS_ONLN)) +
				(f->c.upper ? FETCH_HERE : 0));
	r = fuse_session_loop_mt(f->session, config);
	transport_stop(&f->transport);
	__atomic_store_n(&f->looping, false, __ATOMIC_RELEASE);
	fuse_loop_cfg_destroy(config);
	/* libfuse takes ENODEV for the end. The kernel may say ECONNABORTED,
	 * too, seen once in 60 lazy unmounts on a loaded machine (Linux 6.18).
	 */
	return r < 0 && r != -ECONNABORTED ? r : 0;
}

void front_stop(struct front *f)
{
	__atomic_store_n(&f->stopping, true, __ATOMIC_RELEASE);
	fuse_session_exit(f->session);
	/* repeat: a single signal may arrive just before the loop blocks */
	while (__atomic_load_n(&f->looping, __ATOMIC_ACQUIRE)) {
		pthread_kill(f->looper, WAKE_SIGNAL);
		tick_pause(NS_PER_MS);
	}
}

void front_unmount(struct front *f)
{
	if (f->mounted)
		mountpoint_unmount(&f->mountpoint, f->session);
	f->mounted = false;
	mountpoint_release(&f->mountpoint);
}

void front_disconnect(struct front *f)
{
	if (!f)
		return;
	front_unmount(f);
	/* the calibrator may wait for a reply that no thread will send; the
	 * end of the connection unblocks it */
	passthrough_disable(&f->passthrough);
	front_calibrate_end(f);
}

void front_free(struct front *f)
{
	if (!f)
		return;
	front_disconnect(f);
	transport_fini(&f->transport);
	if (f->session)
		fuse_session_destroy(f->session);
	front_file_free_all(f);
	passthrough_fini(&f->passthrough);
	pthread_mutex_destroy(&f->files_lock);
	free(f);
}

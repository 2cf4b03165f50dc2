/* SPDX-License-Identifier: MIT */
#include "fs/front/front.h"

#include <errno.h>
#include <fcntl.h>
#include <fuse_lowlevel.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/log.h"
#include "common/util.h"
#include "common/word.h"
#include "fs/front/front_private.h"

/* The mount options for libfuse, malloc'ed: "fsname=SOURCE,...", separators
 * escaped. NULL: no memory. */
static char *front_mount_options(const struct front_config *c)
{
	char *text = NULL;
	size_t n;
	FILE *f = open_memstream(&text, &n);

	if (!f)
		return NULL;
	fputs("fsname=", f);
	for (const char *s = c->source; *s; s++) {
		if (*s == ',' || *s == '\\')
			fputc('\\', f);
		fputc(*s, f);
	}
	fputs(",subtype=gpemu-fs", f);
	/* In a mount for its owner alone op_access answers instead: then also
	 * root gets to know that it cannot write. */
	if (server_tree(c->server)->shared)
		fputs(",default_permissions", f);
	if (c->options)
		fprintf(f, ",%s", c->options);
	fclose(f);
	return text;
}

struct mount_options {
	int shared, noatime;
};

/* Adds nosuid and nodev, which every mount has. Not 0: libfuse cannot use the
 * options. */
static int parse_options(const struct front_config *c, struct fuse_args *args,
			 struct mount_options *ret)
{
	static const struct fuse_opt known[] = {
		{ "allow_other", offsetof(struct mount_options, shared), 1 },
		{ "noatime", offsetof(struct mount_options, noatime), 1 },
		/* mount(8) adds them when root calls it; they would let the
		 * owner of the source become root */
		FUSE_OPT_KEY("suid", FUSE_OPT_KEY_DISCARD),
		FUSE_OPT_KEY("dev", FUSE_OPT_KEY_DISCARD),
		FUSE_OPT_END,
	};
	int r = fuse_opt_parse(args, ret, known, NULL);

	/* "allow\_other": the scan did not collect what a shared mount needs */
	if (ret->shared && !server_tree(c->server)->shared)
		return -1;
	if (r == 0 && ret->shared)
		r = fuse_opt_add_arg(args, "-oallow_other");
	if (r == 0 && ret->noatime)
		r = fuse_opt_add_arg(args, "-onoatime");
	return r ? r : fuse_opt_add_arg(args, "-onosuid,nodev");
}

static void fuse_says_at(enum log_level level, const char *fmt, va_list ap)
{
	char text[512];
	size_t n;

	vsnprintf(text, sizeof(text), fmt, ap);
	n = strlen(text);
	if (n && text[n - 1] == '\n')
		text[n - 1] = 0;
	log_line(level, "%s", text);
}

static void fuse_says(enum fuse_log_level level, const char *fmt, va_list ap)
{
	fuse_says_at(level <= FUSE_LOG_ERR ? LOG_LEVEL_ERROR : LOG_LEVEL_DEBUG,
		     fmt, ap);
}

/* While options are parsed: libfuse logs in several pieces what front_new
 * reports in one line. */
static void fuse_whispers(enum fuse_log_level level, const char *fmt,
			  va_list ap)
{
	(void)level;
	fuse_says_at(LOG_LEVEL_DEBUG, fmt, ap);
}

int front_session_new(const struct front_config *c,
		      const struct fuse_lowlevel_ops *ops, struct front *f,
		      struct fuse_session **ret, struct err *err)
{
	struct mount_options parsed = { 0 };
	_cleanup_free_ char *options = front_mount_options(c);
	char *argv[] = { (char *)"gpemu-fs", (char *)"-o", options, NULL };
	struct fuse_args args = FUSE_ARGS_INIT(3, argv);

	if (!options)
		return err_set(err, -ENOMEM, "out of memory");
	fuse_set_log_func(fuse_whispers);
	*ret = parse_options(c, &args, &parsed) == 0
		       ? fuse_session_new(&args, ops, sizeof(*ops), f)
		       : NULL;
	fuse_set_log_func(fuse_says);
	fuse_opt_free_args(&args);
	if (f) {
		f->shared = parsed.shared;
		f->open_flags = parsed.noatime ? O_NOATIME : 0;
	}
	return *ret ? 0
		    : err_set(err, -EINVAL, "cannot use the mount options '%s'",
			      c->options ? c->options : "");
}

/* The folder, or one above it, may be renamed meanwhile. */
static int try_at(const struct front_config *c, struct fuse_session *session,
		  const char *dir, struct err *err)
{
	_cleanup_free_ char *path = realpath(dir, NULL);
	struct mountpoint at;
	int r;

	if (!path)
		return err_set(err, -errno, "%s: %s", dir, strerror(errno));
	r = mountpoint_hold(path, &at, err);
	if (r < 0)
		return r;
	if (fuse_session_mount(session, at.name))
		r = err_set(err, -EPERM, "cannot mount with the options '%s'",
			    c->options ? c->options : "");
	else
		mountpoint_unmount(&at, session);
	mountpoint_release(&at);
	return r;
}

int front_try(const struct front_config *c, struct err *err)
{
	static const struct fuse_lowlevel_ops none = { 0 };
	const char *tmp = getenv("TMPDIR");
	_cleanup_free_ char *dir = NULL;
	struct fuse_session *session;
	int r;

	dir = util_text("%s/gpemu-fs-XXXXXX", tmp ? tmp : "/tmp");
	if (!dir)
		return err_set(err, -ENOMEM, "out of memory");
	r = front_session_new(c, &none, NULL, &session, err);
	if (r < 0)
		return r;
	if (!mkdtemp(dir)) {
		r = err_set(err, -errno, "%s: %s", dir, strerror(errno));
	} else {
		r = try_at(c, session, dir, err);
		rmdir(dir);
	}
	fuse_session_destroy(session);
	return r;
}

int hit_path_parse(const char *s, enum hit_path *ret, struct err *err)
{
	static const char *const words[] = { "auto", "reply", "passthrough" };

	return WORD_INTO(words, "--hit-path", s, ret, err);
}

int front_transport_parse(const char *s, enum front_transport *ret,
			  struct err *err)
{
	static const char *const words[] = { "auto", "dev", "uring" };

	return WORD_INTO(words, "--transport", s, ret, err);
}

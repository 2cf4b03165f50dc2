/* SPDX-License-Identifier: MIT */
/*
 * gpemu-fs: from the command line to a serving mount and back.
 *
 *	parent                         daemon
 *	  | fork ----------------------> scan the source, start the server,
 *	  |                              mount, serve (fs/mount/mount.c)
 *	  | wait for a byte in a pipe <- the reply to the kernel's INIT is sent
 *	  | exit 0                       stderr -> syslog, go on serving
 *	  | or the pipe closes: exit with the daemon's status; its message
 *	  | went to the stderr that both still share
 *
 * Rooms, in the order in which a read passes them (docs/architecture.md):
 *
 *	fs/transport	the request, from /dev/fuse or io_uring
 *	fs/front	FUSE operations; hits that the kernel reads by itself
 *	fs/server	the stack of layers, and their shared parts
 *	fs/layer	the layers: trace, fault, cache, group, peer, device
 *	fs/cache	hit or miss; policy/ and epoch/ choose the victims
 *	fs/peer		objects of other nodes, over connections of net
 *	fs/device	when the emulated device completes
 *	fs/source	the bytes: of a folder, of a pack, or synthetic
 *	fs/upper	instead, of files made in the mount (--writable)
 *
 * Off the read path: fs/mount (the process), fs/control (.gpemu), fs/selftest.
 */
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <string.h>
#include <sys/wait.h>

#include "common/json.h"
#include "common/util.h"
#include "fs/mount/mount.h"
#include "fs/mount/mountpoint.h"
#include "fs/selftest/selftest.h"

/* The parent's side: 0 when the daemon serves, else its exit status. */
static int wait_for_daemon(pid_t pid, int fd)
{
	char byte;
	int status;
	ssize_t n;

	do
		n = read(fd, &byte, 1);
	while (n < 0 && errno == EINTR);
	if (n == 1)
		return EXIT_STATUS_DONE;
	if (waitpid(pid, &status, 0) == pid && WIFEXITED(status))
		return WEXITSTATUS(status);
	log_error("the daemon died before the mount was ready; its log may say "
		  "why");
	return EXIT_STATUS_FAILED;
}

static int daemonise(struct mount *m, const char *source)
{
	int fds[2];
	pid_t pid;

	if (pipe2(fds, O_CLOEXEC) < 0 || (pid = fork()) < 0) {
		log_error("cannot start a daemon: %s", strerror(errno));
		return EXIT_STATUS_NOT_NOW;
	}
	if (pid) {
		close(fds[1]);
		return wait_for_daemon(pid, fds[0]);
	}
	close(fds[0]);
	m->ready_fd = fds[1];
	setsid();
	return mount_serve(m, source);
}

/* Report an unwritable log or record while stderr is still the caller's. */
static int check_outputs(const struct options *o, struct err *err)
{
	int r = o->common.json ? json_check(o->common.json, err) : 0;
	_cleanup_close_ int fd = -1;

	if (r < 0 || options_log_is(o, "stderr") || options_log_is(o, "syslog"))
		return r;
	fd = util_open_output(o->log, O_CREAT | O_APPEND);
	return fd < 0 ? err_set(err, fd, "--log %s: %s", o->log, strerror(-fd))
		      : 0;
}

static int prepare(struct mount *m, const char *mountpoint, struct err *err)
{
	int r;

	m->start_dir = getcwd(NULL, 0);
	if (!m->start_dir || options_absolute(&m->o, m->start_dir) < 0)
		return err_set(err, -errno, "%s", strerror(errno));
	r = check_outputs(&m->o, err);
	if (r < 0)
		return r;
	return mountpoint_prepare(mountpoint, m->o.mount_options, m->o.replace,
				  &m->mountpoint, err);
}

/* A mount of the self-test, in a process of its own. */
static int serve_test(void *ctx, const struct selftest_mount *what)
{
	char *storage = strdup(what->storage); /* may alias the option */
	struct mount *m = ctx;
	struct err err = { 0 };
	int r;

	free(m->o.base.fs.storage);
	free(m->o.writable); /* nothing is written */
	m->o.writable = NULL;
	free(m->o.common.json); /* the record belongs to the test */
	m->o.common.json = NULL;
	m->o.base.fs.storage = storage;
	m->o.base.time_scale = what->time_scale;
	m->o.foreground = true;
	m->ready_fd = what->ready_fd;
	r = fs_config_no_cache(&m->o.base.fs);
	if (r == 0)
		r = prepare(m, what->mountpoint, &err);
	r = r < 0 ? cli_fail(r, &err) : mount_serve(m, what->source);
	mount_fini(m);
	return r;
}

static int selftest(struct mount *m, char **args)
{
	struct selftest_config c = {
		.storage = m->o.base.fs.storage,
		.time_scale =
			isnan(m->o.base.time_scale) ? 0 : m->o.base.time_scale,
		.source = args[0],
		.mountpoint = args[1],
		.json = m->o.common.json,
		.seed = m->o.common.seed,
		.serve = serve_test,
		.ctx = m,
	};
	struct err err = { 0 };
	int r = c.json ? json_check(c.json, &err) : 0;

	if (r == 0)
		r = selftest_run(&c, &err);
	return r < 0 ? cli_fail(r, &err) : r;
}

int main(int argc, char **argv)
{
	struct mount m = { .ready_fd = -1,
			   .argc = argc,
			   .argv = argv,
			   .options_lock = PTHREAD_MUTEX_INITIALIZER,
			   .notify_lock = PTHREAD_MUTEX_INITIALIZER };
	struct err err = { 0 };
	char *args[2];
	int r = options_init(&m.o);

	if (r == 0) {
		cli_parse(&options_program, argc, argv, &m.o, args);
		log_set_level(setup_log_level(&m.o.base, m.o.common.verbose));
	}
	if (r == 0 && !m.o.selftest && !args[1])
		r = err_set(&err, -EINVAL,
			    "missing argument: usage is %s [options] %s",
			    options_program.name, options_program.args);
	if (r < 0) {
		log_error("%s", err.text);
		r = EXIT_STATUS_USAGE;
	} else if (m.o.selftest) {
		r = selftest(&m, args);
	} else if (setup_has_word(m.o.mount_options, "remount")) {
		r = mount_remount(&m, args[1]);
	} else {
		r = prepare(&m, args[1], &err);
		if (r < 0)
			r = cli_fail(r, &err);
		else
			r = m.o.foreground ? mount_serve(&m, args[0])
					   : daemonise(&m, args[0]);
	}
	mount_fini(&m);
	return r;
}

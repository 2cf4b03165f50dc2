/* SPDX-License-Identifier: MIT */
/*
 * gpemu-fs: from the command line to a serving mount and back.
 *
 *	parent                         daemon
 *	  | fork ----------------------> scan the source, start the server,
 *	  |                              mount, serve (fs/mount.c)
 *	  | wait for a byte in a pipe <- the kernel's INIT was answered
 *	  | exit 0                       stderr -> syslog, on it goes
 *	  | or the pipe closes: exit with the daemon's status, whose message
 *	  | went to the stderr that both still share
 */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/wait.h>

#include "common/util.h"
#include "fs/mount.h"
#include "fs/mountpoint.h"

/* The parent's side: 0 when the daemon serves, else what it ended with. */
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
	log_error("the daemon died before it could serve");
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

/* A log that cannot be written is told while somebody listens. */
static int check_log(const struct options *o, struct err *err)
{
	_cleanup_close_ int fd = -1;

	if (options_log_is(o, "stderr") || options_log_is(o, "syslog"))
		return 0;
	fd = open(o->log, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
	return fd < 0 ? err_set(err, -errno, "--log %s: %s", o->log,
				strerror(errno))
		      : 0;
}

static int prepare(struct mount *m, const char *mountpoint, struct err *err)
{
	int r;

	m->start_dir = getcwd(NULL, 0);
	if (!m->start_dir || options_absolute(&m->o, m->start_dir) < 0)
		return err_set(err, -errno, "%s", strerror(errno));
	r = check_log(&m->o, err);
	if (r < 0)
		return r;
	return mountpoint_prepare(mountpoint, m->o.mount_options, m->o.replace,
				  &m->mountpoint, err);
}

int main(int argc, char **argv)
{
	struct mount m = { .ready_fd = -1,
			   .argc = argc,
			   .argv = argv,
			   .options_lock = PTHREAD_MUTEX_INITIALIZER };
	struct err err = { 0 };
	char *args[2];
	int r = options_init(&m.o);

	if (r == 0) {
		cli_parse(&options_program, argc, argv, &m.o, args);
		log_set_level(options_log_level(&m.o));
		r = options_check(&m.o, &err);
	}
	if (r < 0) {
		log_error("%s", err.text);
		r = EXIT_STATUS_USAGE;
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

/* SPDX-License-Identifier: MIT */
/*
 *	this process                     child
 *	  | fork ------------------------> mount, serve
 *	  | watcher: waits for a signal    |
 *	  | a byte in the pipe <-----------+ it is usable
 *	  | client threads               <-> requests
 *	  | SIGTERM to the watcher, which
 *	  | forwards it ------------------> unmount, end
 *	  | wait for it
 *
 * So a normal end, Ctrl-C and SIGTERM take the same path. When the mount ends,
 * the client's pending calls fail, and the measurement ends. If the parent is
 * killed by SIGKILL, the kernel sends the child SIGTERM.
 */
#include "fs/selftest/selftest_mount.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/log.h"
#include "common/util.h"
#include "fs/mount/mountpoint.h"

bool selftest_interrupted(const struct selftest_mounter *m)
{
	return __atomic_load_n(&m->interrupted, __ATOMIC_RELAXED);
}

int selftest_mounter_init(struct selftest_mounter *m,
			  const struct selftest_config *config, struct err *err)
{
	const char *tmp = getenv("TMPDIR");
	char *path = NULL;

	*m = (struct selftest_mounter){ .config = config };
	if (config->mountpoint)
		path = strdup(config->mountpoint);
	else if (asprintf(&path, "%s/gpemu-selftest.XXXXXX",
			  tmp && tmp[0] ? tmp : "/tmp") < 0)
		path = NULL;
	if (!path)
		return err_set(err, -ENOMEM, "out of memory");
	if (!config->mountpoint && !mkdtemp(path)) {
		err_set(err, -errno, "%s: %s", path, strerror(errno));
		free(path);
		return -EIO;
	}
	m->mountpoint = path;
	m->temporary = !config->mountpoint;
	sigemptyset(&m->signals);
	sigaddset(&m->signals, SIGINT);
	sigaddset(&m->signals, SIGTERM);
	sigaddset(&m->signals, SIGHUP);
	pthread_sigmask(SIG_BLOCK, &m->signals, &m->old_signals);
	return 0;
}

static void *watch(void *arg)
{
	struct selftest_mounter *m = arg;
	int signal;

	sigwait(&m->signals, &signal);
	if (!__atomic_load_n(&m->stopping, __ATOMIC_ACQUIRE))
		__atomic_store_n(&m->interrupted, 1, __ATOMIC_RELAXED);
	kill(m->pid, SIGTERM);
	return NULL;
}

static void stop(struct selftest_mounter *m)
{
	int status;

	if (!m->pid)
		return;
	__atomic_store_n(&m->stopping, 1, __ATOMIC_RELEASE);
	pthread_kill(m->watcher, SIGTERM);
	pthread_join(m->watcher, NULL);
	while (waitpid(m->pid, &status, 0) < 0 && errno == EINTR)
		;
	if (WIFSIGNALED(status))
		log_error("the process that served the mount died of signal %d",
			  WTERMSIG(status));
	m->pid = 0;
	m->storage = NULL;
}

void selftest_mounter_fini(struct selftest_mounter *m)
{
	struct err err = { 0 };
	char *path = NULL;

	if (!m->mountpoint)
		return;
	stop(m);
	/* if the child died, a dead mount is left: this clears it */
	if (mountpoint_prepare(m->mountpoint, "nonempty", false, &path, &err) <
	    0)
		log_error("%s", err.text);
	free(path);
	if (m->temporary && rmdir(m->mountpoint) < 0)
		log_error("%s: %s", m->mountpoint, strerror(errno));
	free(m->mountpoint);
	pthread_sigmask(SIG_SETMASK, &m->old_signals, NULL);
}

__attribute__((noreturn)) static void serve(struct selftest_mounter *m,
					    pid_t parent,
					    const struct selftest_mount *what)
{
	prctl(PR_SET_PDEATHSIG, SIGTERM);
	if (getppid() != parent)
		_exit(EXIT_STATUS_FAILED); /* the parent has ended */
	exit(m->config->serve(m->config->ctx, what));
}

/* Start the child; its end of the pipe is `fds[1]`. -errno. */
static int start(struct selftest_mounter *m, const int fds[2])
{
	struct selftest_mount what = { .storage = m->storage,
				       .time_scale = m->time_scale,
				       .source = m->config->source,
				       .mountpoint = m->mountpoint,
				       .ready_fd = fds[1] };
	pid_t parent = getpid();
	int r;

	fflush(NULL); /* else both processes write the buffered text */
	m->pid = fork();
	if (m->pid < 0) {
		m->pid = 0;
		return -errno;
	}
	if (!m->pid) {
		close(fds[0]);
		serve(m, parent, &what);
	}
	m->stopping = 0;
	r = -pthread_create(&m->watcher, NULL, watch, m);
	if (r < 0) {
		kill(m->pid, SIGTERM);
		waitpid(m->pid, NULL, 0);
		m->pid = 0;
	}
	return r;
}

int selftest_mount_fresh(struct selftest_mounter *m, const char *storage,
			 double time_scale, struct err *err)
{
	int fds[2], r;
	char byte;
	ssize_t n;

	stop(m);
	if (selftest_interrupted(m))
		return err_set(err, -EINTR, "interrupted by a signal");
	if (pipe2(fds, O_CLOEXEC) < 0)
		return err_set(err, -errno, "%s", strerror(errno));
	m->storage = storage;
	m->time_scale = time_scale;
	r = start(m, fds);
	close(fds[1]);
	if (r == 0) {
		do
			n = read(fds[0], &byte, 1);
		while (n < 0 && errno == EINTR);
		if (n != 1)
			r = selftest_interrupted(m) ? -EINTR : -EIO;
	}
	close(fds[0]);
	if (r == -EIO)
		return err_set(err, r, "no mount to test");
	if (r == -EINTR)
		return err_set(err, r, "interrupted by a signal");
	return r < 0 ? err_set(err, r, "cannot start: %s", strerror(-r)) : 0;
}

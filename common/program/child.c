/* SPDX-License-Identifier: MIT */
#include "common/program/child.h"

#include <errno.h>
#include <fcntl.h>
#include <mntent.h>
#include <poll.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/pidfd.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/tick.h"
#include "common/util.h"

static void stop_set(sigset_t *set)
{
	sigemptyset(set);
	sigaddset(set, SIGINT);
	sigaddset(set, SIGTERM);
	sigaddset(set, SIGHUP);
}

int stop_init(struct stop *stop, struct err *err)
{
	sigset_t set;

	*stop = (struct stop){ .fd = -1 };
	stop_set(&set);
	if (sigprocmask(SIG_BLOCK, &set, NULL) < 0)
		return err_set(err, -errno, "signals: %s", strerror(errno));
	stop->fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	if (stop->fd < 0)
		return err_set(err, -errno, "signalfd: %s", strerror(errno));
	return 0;
}

void stop_fini(struct stop *stop)
{
	if (stop->fd >= 0)
		close(stop->fd);
	stop->fd = -1;
}

void stop_raise(struct stop *stop)
{
	sigset_t set;

	if (!stop->signal)
		return;
	signal(stop->signal, SIG_DFL);
	raise(stop->signal);
	sigemptyset(&set);
	sigaddset(&set, stop->signal);
	sigprocmask(SIG_UNBLOCK, &set, NULL);
}

/* Take the signal that made the signalfd readable. */
static void stop_take(struct stop *stop)
{
	struct signalfd_siginfo info;

	if (read(stop->fd, &info, sizeof(info)) == sizeof(info))
		stop->signal = (int)info.ssi_signo;
}

bool stop_came(struct stop *stop)
{
	struct pollfd fd = { .fd = stop->fd, .events = POLLIN };

	if (poll(&fd, 1, 0) > 0)
		stop_take(stop);
	return stop->signal;
}

/* --- starting --------------------------------------------------------- */

/* In the child: does not return; errors go into the pipe. */
__attribute__((noreturn)) static void become(char *const argv[],
					     char *const env[], int out_fd,
					     int err_fd, pid_t parent,
					     int pipe_fd)
{
	int null_fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
	sigset_t none;

	sigemptyset(&none);
	if (setpgid(0, 0) == 0 && prctl(PR_SET_PDEATHSIG, SIGTERM) == 0 &&
	    null_fd >= 0 && dup2(null_fd, 0) >= 0 && dup2(out_fd, 1) >= 0 &&
	    dup2(err_fd, 2) >= 0 &&
	    sigprocmask(SIG_SETMASK, &none, NULL) == 0) {
		/* the parent may have died before PDEATHSIG was set */
		if (getppid() != parent)
			_exit(127);
		for (; env && *env; env++)
			putenv(*env);
		execvp(argv[0], argv);
	}
	int code = errno;
	ssize_t n = write(pipe_fd, &code, sizeof(code));

	_exit(n == sizeof(code) ? 127 : 126);
}

/* Have something to wait on. */
static int watch(struct child *child, struct err *err)
{
	int code;

	child->pidfd = pidfd_open(child->pid, 0);
	if (child->pidfd >= 0)
		return 0;
	code = errno;
	kill(-child->pid, SIGKILL);
	waitpid(child->pid, NULL, 0);
	child->pid = 0;
	return err_set(err, -code, "pidfd_open: %s", strerror(code));
}

int child_start(struct child *child, char *const argv[], char *const env[],
		int out_fd, int err_fd, struct err *err)
{
	_cleanup_close_ int from = -1;
	pid_t parent = getpid();
	int ends[2], code = 0;

	*child = (struct child){ .pidfd = -1 };
	if (pipe2(ends, O_CLOEXEC) < 0)
		return err_set(err, -errno, "pipe: %s", strerror(errno));
	from = ends[0];
	child->pid = fork();
	if (child->pid == 0)
		become(argv, env, out_fd, err_fd, parent, ends[1]);
	close(ends[1]);
	if (child->pid < 0) {
		code = errno;
		child->pid = 0;
		return err_set(err, -code, "fork: %s", strerror(code));
	}
	/* end of file means that the program was executed */
	if (read(from, &code, sizeof(code)) == sizeof(code)) {
		waitpid(child->pid, NULL, 0);
		child->pid = 0;
		return err_set(err, -code, "%s: %s", argv[0], strerror(code));
	}
	return watch(child, err);
}

int child_fork(struct child *child, int (*fn)(void *ctx), void *ctx,
	       struct err *err)
{
	pid_t parent = getpid();

	*child = (struct child){ .pidfd = -1 };
	fflush(NULL);
	child->pid = fork();
	if (child->pid == 0) {
		if (setpgid(0, 0) < 0 || prctl(PR_SET_PDEATHSIG, SIGTERM) < 0 ||
		    getppid() != parent)
			_exit(127);
		int status = fn(ctx);

		fflush(NULL);
		_exit(status);
	}
	if (child->pid < 0) {
		child->pid = 0;
		return err_set(err, -errno, "fork: %s", strerror(errno));
	}
	setpgid(child->pid, child->pid); /* in both processes: no race */
	return watch(child, err);
}

/* --- waiting ---------------------------------------------------------- */

/* The child has exited: kill the rest of its group, then reap it. */
static int reap(struct child *child)
{
	siginfo_t info = { 0 };

	/* the zombie reserves the id of its group */
	while (waitid(P_PID, (id_t)child->pid, &info, WEXITED | WNOWAIT) < 0 &&
	       errno == EINTR)
		;
	kill(-child->pid, SIGKILL);
	while (waitid(P_PID, (id_t)child->pid, &info, WEXITED) < 0 &&
	       errno == EINTR)
		;
	close(child->pidfd);
	*child = (struct child){ .pidfd = -1 };
	return info.si_code == CLD_EXITED ? info.si_status
					  : 128 + info.si_status;
}

static uint64_t deadline_in(uint64_t timeout_ns)
{
	return timeout_ns ? tick_wall() + timeout_ns : TICK_NEVER;
}

int child_wait_any(struct child *const *children, size_t n, struct stop *stop,
		   uint64_t timeout_ns, size_t *ret_index, int *ret_status)
{
	_cleanup_free_ struct pollfd *fds = calloc(n + 1, sizeof(*fds));

	if (!fds)
		return -ENOMEM;
	/* poll(2) passes over negative descriptors */
	for (size_t i = 0; i < n; i++)
		fds[i] = (struct pollfd){ .fd = children[i]->pid > 0
							? children[i]->pidfd
							: -1,
					  .events = POLLIN };
	fds[n] = (struct pollfd){ .fd = stop->fd, .events = POLLIN };
	if (tick_poll(fds, n + 1, deadline_in(timeout_ns)) == 0)
		return -ETIMEDOUT;
	if (fds[n].revents) {
		stop_take(stop);
		return -EINTR;
	}
	for (size_t i = 0; i < n; i++) {
		if (!fds[i].revents)
			continue;
		*ret_index = i;
		*ret_status = reap(children[i]);
		return 0;
	}
	return -EIO; /* not reached: poll said that something is ready */
}

int child_wait(struct child *child, struct stop *stop, uint64_t timeout_ns,
	       int *ret_status)
{
	size_t ignored;

	return child_wait_any(&child, 1, stop, timeout_ns, &ignored,
			      ret_status);
}

bool child_is_mounted(const char *path)
{
	FILE *f = setmntent("/proc/self/mounts", "r");
	const struct mntent *m;
	bool found = false;

	while (f && !found && (m = getmntent(f)))
		found = !strcmp(m->mnt_dir, path);
	if (f)
		endmntent(f);
	return found;
}

int child_ready_init(struct child_ready *ready, struct err *err)
{
	/* an abstract name chosen by the kernel: unix(7), autobind */
	struct sockaddr_un name = { .sun_family = AF_UNIX };
	_cleanup_close_ int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	const int on = 1;
	socklen_t n = sizeof(name);

	/* any user may send to an abstract name */
	if (fd < 0 ||
	    setsockopt(fd, SOL_SOCKET, SO_PASSCRED, &on, sizeof(on)) < 0 ||
	    bind(fd, (void *)&name, sizeof(name.sun_family)) < 0 ||
	    getsockname(fd, (void *)&name, &n) < 0)
		return err_set(err, -errno, "notification socket: %s",
			       strerror(errno));
	n -= (socklen_t)offsetof(struct sockaddr_un, sun_path) + 1;
	snprintf(ready->env, sizeof(ready->env), "NOTIFY_SOCKET=@%.*s", (int)n,
		 name.sun_path + 1);
	ready->fd = TAKE_FD(fd);
	return 0;
}

void child_ready_fini(struct child_ready *ready)
{
	util_closep(&ready->fd);
}

/* Is it of this user, or root? */
static bool is_trusted(struct msghdr *m)
{
	struct cmsghdr *c = CMSG_FIRSTHDR(m);
	struct ucred from;

	if (!c || c->cmsg_level != SOL_SOCKET ||
	    c->cmsg_type != SCM_CREDENTIALS)
		return false;
	memcpy(&from, CMSG_DATA(c), sizeof(from));
	return util_follows(from.uid);
}

/* Parse one message of lines; ignore other messages. */
static bool says_ready(int fd)
{
	char text[512]; /* longer ones are truncated */
	_Alignas(struct cmsghdr) char own[CMSG_SPACE(sizeof(struct ucred))];
	struct iovec piece = { text, sizeof(text) - 1 };
	struct msghdr m = { .msg_iov = &piece,
			    .msg_iovlen = 1,
			    .msg_control = own,
			    .msg_controllen = sizeof(own) };
	ssize_t n = recvmsg(fd, &m, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
	char *line, *rest = text;

	if (n < 0 || !is_trusted(&m))
		return false;
	text[n] = 0;
	while ((line = strsep(&rest, "\n")))
		if (!strcmp(line, "READY=1"))
			return true;
	return false;
}

int child_wait_ready(struct child *child, struct stop *stop,
		     const struct child_ready *ready, uint64_t timeout_ns,
		     int *ret_status)
{
	struct pollfd fds[] = { { .fd = child->pidfd, .events = POLLIN },
				{ .fd = stop->fd, .events = POLLIN },
				{ .fd = ready->fd, .events = POLLIN } };
	uint64_t deadline = deadline_in(timeout_ns);

	for (;;) {
		if (tick_poll(fds, 3, deadline) == 0)
			return -ETIMEDOUT;
		if (fds[1].revents) {
			stop_take(stop);
			return -EINTR;
		}
		if (fds[0].revents) {
			*ret_status = reap(child);
			return -ECHILD;
		}
		if (fds[2].revents && says_ready(ready->fd))
			return 0;
	}
}

int child_end(struct child *child, uint64_t grace_ns)
{
	struct pollfd fd = { .fd = child->pidfd, .events = POLLIN };

	if (child->pid <= 0)
		return 0;
	kill(-child->pid, SIGTERM);
	if (tick_poll(&fd, 1, deadline_in(grace_ns)) == 0)
		kill(-child->pid, SIGKILL);
	return reap(child);
}

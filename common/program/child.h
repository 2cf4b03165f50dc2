/* SPDX-License-Identifier: MIT */
/*
 * Child processes that are always waited for and never left behind.
 *
 * A child leads a process group of its own, so that a Ctrl-C at the terminal
 * reaches the parent alone, which then ends its children in order: the loader
 * before the mount under it. Should the parent itself be killed, the kernel
 * sends its children SIGTERM.
 *
 * One thread uses all of this. Nothing polls: a wait sleeps on the child's
 * pidfd, the stop signals' signalfd and what a child has to say.
 */
#ifndef GPEMU_COMMON_PROGRAM_CHILD_H
#define GPEMU_COMMON_PROGRAM_CHILD_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "common/err.h"

/* SIGINT, SIGTERM and SIGHUP, turned into a file to wait on. */
struct stop {
	int fd;	    /* signalfd */
	int signal; /* the one that came, 0: none yet */
};

/* Block the stop signals of this process and open their signalfd. -errno. */
int stop_init(struct stop *stop, struct err *err);
void stop_fini(struct stop *stop);
/* Did one come? Does not wait. */
bool stop_came(struct stop *stop);
/* Die of the signal that came, if one came, as if it had not been blocked. */
void stop_raise(struct stop *stop);

struct child {
	pid_t pid; /* 0: none */
	int pidfd;
};

/*
 * Start argv[0] (a path, or a name that $PATH is searched for), with stdin
 * from /dev/null and stdout and stderr to the given descriptors, which stay
 * the caller's; `env`: "NAME=VALUE" texts that join the environment, ended by
 * NULL, or NULL. -errno with a text when it cannot be executed.
 */
int child_start(struct child *child, char *const argv[], char *const env[],
		int out_fd, int err_fd, struct err *err);

/*
 * The same with a function of this program, whose result is the exit status;
 * the stop signals stay blocked, and its `struct stop` works. To be called
 * while there is only one thread. -errno with a text.
 */
int child_fork(struct child *child, int (*fn)(void *ctx), void *ctx,
	       struct err *err);

/*
 * Wait until the child is over. 0: *ret_status is its exit status, or 128 +
 * the signal that ended it, and whatever else was in its group is killed.
 * -ETIMEDOUT: `timeout_ns` (wall time; 0: none) passed. -EINTR: a stop signal
 * came. In these two cases the child still runs: child_end it.
 */
int child_wait(struct child *child, struct stop *stop, uint64_t timeout_ns,
	       int *ret_status);

/*
 * The same for the first of several, some of which may have been waited for
 * (pid 0); its index goes to *ret_index. With none left it is a plain wait for
 * the time or a signal.
 */
int child_wait_any(struct child *const *children, size_t n, struct stop *stop,
		   uint64_t timeout_ns, size_t *ret_index, int *ret_status);

/* Where a child says that it is ready, as sd_notify(3) does. */
struct child_ready {
	int fd;
	char env[64]; /* "NOTIFY_SOCKET=...", for child_start */
};

/* -errno with a text. */
int child_ready_init(struct child_ready *ready, struct err *err);
void child_ready_fini(struct child_ready *ready);
/*
 * Wait until the child says so (0), or is over (-ECHILD, *ret_status as
 * above), or as child_wait.
 */
int child_wait_ready(struct child *child, struct stop *stop,
		     const struct child_ready *ready, uint64_t timeout_ns,
		     int *ret_status);

/*
 * SIGTERM to the group, SIGKILL when it is not over `grace_ns` later; waits
 * for it whatever stop signals come. Returns its exit status as above.
 */
int child_end(struct child *child, uint64_t grace_ns);

/* Is something mounted on `path`, an absolute path without links? */
bool child_is_mounted(const char *path);

#endif

/* SPDX-License-Identifier: MIT */
/*
 * Child processes that are always reaped and never orphaned.
 *
 * A child leads its own process group, so that Ctrl-C reaches only the parent,
 * which then ends its children in order: the loader before its mount. If the
 * parent is killed, the kernel sends SIGTERM to its children.
 *
 * Single threaded. Nothing polls: a wait sleeps on the child's pidfd, the
 * signalfd of the stop signals and the notify socket.
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
	int signal; /* the signal received, 0: none */
};

/* Block the stop signals of this process and open their signalfd. -errno. */
int stop_init(struct stop *stop, struct err *err);
void stop_fini(struct stop *stop);
/* Has a signal arrived? Does not wait. */
bool stop_came(struct stop *stop);
/* Die of the received signal, if any, as if it had not been blocked. */
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
 * Wait until the child exits. 0: *ret_status is its exit status, or 128 + the
 * signal that killed it, and the rest of its group is killed. -ETIMEDOUT:
 * `timeout_ns` (wall time; 0: none) passed. -EINTR: a stop signal arrived. In
 * these two cases the child still runs: call child_end.
 */
int child_wait(struct child *child, struct stop *stop, uint64_t timeout_ns,
	       int *ret_status);

/*
 * The same for the first of several, some of which may have been reaped (pid
 * 0); *ret_index is its index. With none left it only waits for the timeout or
 * a signal.
 */
int child_wait_any(struct child *const *children, size_t n, struct stop *stop,
		   uint64_t timeout_ns, size_t *ret_index, int *ret_status);

/* The socket on which a child reports that it is ready, as in sd_notify(3). */
struct child_ready {
	int fd;
	char env[64]; /* "NOTIFY_SOCKET=...", for child_start */
};

/* -errno with a text. */
int child_ready_init(struct child_ready *ready, struct err *err);
void child_ready_fini(struct child_ready *ready);
/*
 * Wait until the child is ready (0) or exits (-ECHILD, *ret_status as above),
 * or as child_wait.
 */
int child_wait_ready(struct child *child, struct stop *stop,
		     const struct child_ready *ready, uint64_t timeout_ns,
		     int *ret_status);

/*
 * Send SIGTERM to the group, and SIGKILL after `grace_ns`; waits despite stop
 * signals. Returns the exit status as above.
 */
int child_end(struct child *child, uint64_t grace_ns);

/* Is something mounted on `path`, an absolute path without links? */
bool child_is_mounted(const char *path);

#endif

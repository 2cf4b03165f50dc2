/* SPDX-License-Identifier: MIT */
/*
 * Locks of a result folder, so that several gpemu-run can share it, also from
 * several machines.
 *
 * All locks are bytes of one file, OUT/lock: one for each cell, one for each
 * machine, one for the report. The kernel, or the NFS server, drops the locks
 * of a killed process, whereas a file that stands for a lock would stay. They
 * are locks of the open file (fcntl(2), F_OFD_SETLK): closing another
 * descriptor of the file does not drop them, and NFS passes byte ranges to its
 * server in every version. flock(2) of the folder would not do: NFS refuses to
 * lock what is not open for writing. A file for each cell would leave hundreds
 * behind, and removing them is a race.
 */
#ifndef GPEMU_RUNNER_RUN_RUN_LOCK_H
#define GPEMU_RUNNER_RUN_RUN_LOCK_H

#include <stdbool.h>
#include <stdint.h>

#include "common/err.h"
#include "common/program/child.h"

/* The byte of the report: table, plots and files of the whole folder. */
enum { LOCK_REPORT = 0 };
/* The byte of a cell, by its id. Two cells share one with a probability of
 * 2^-62: they would wait for each other. */
uint64_t lock_of_cell(const char *id);
/* The byte of this machine: of its running kernel, so that its containers
 * share it. */
uint64_t lock_of_machine(void);

/* Open the file, made if missing; -errno. */
int lock_open(const char *path);
/* Open the file of another user, which may be read but not written: only for
 * locks that others may share, and to wait. -errno. */
int lock_open_shared(const char *path);
/* The error of a lock file; of -EACCES with the owner. Returns `code`. */
int lock_error(const char *path, int code, struct err *err);
/* Lock a byte without waiting; `shared`: others may share it. -EAGAIN: somebody
 * else has it; -errno. */
int lock_try(int fd, uint64_t byte, bool shared);
void lock_drop(int fd, uint64_t byte);
/*
 * Wait until nobody holds the byte; somebody may take it before the caller
 * does. A child process waits, so that a stop signal ends it: -EINTR. -errno
 * with a text.
 */
int lock_wait(const char *path, uint64_t byte, struct stop *stop,
	      struct err *err);

#endif

/* SPDX-License-Identifier: MIT */
/* The programs that serve the jobs of a cell: they are started, they become
 * ready, they end, and leave their records. */
#ifndef GPEMU_RUNNER_CELL_RUN_SERVER_H
#define GPEMU_RUNNER_CELL_RUN_SERVER_H

#include "runner/cell/run_state.h"

/*
 * One more of the servers, which writes its record to a file of
 * the folder `dir` (NULL: it writes none); its command is the caller's to set.
 * -ENOMEM.
 */
int run_init_server(struct run *run, struct run_server *s,
		    enum run_program program, const char *dir,
		    const char *name);
/*
 * Start it and wait until it reports that it is ready (sd_notify(3)). -ENODEV:
 * it lacks a resource (exit status 75); -EIO: it exited; -ETIMEDOUT; -EINTR:
 * stopped by a signal. With a text.
 */
int run_start_server(struct run *run, struct run_server *s, uint64_t timeout_ns,
		     struct err *err);
/* End it, and read its record: there is none if it died. */
void run_end_server(struct run_server *s, uint64_t grace_ns);
/* One mount, or all if the cell is mounted, with their folders in
 * the page cache. Errors as above. */
int run_start_mount(struct run *run, size_t i, struct err *err);
int run_start_mounts(struct run *run, struct err *err);
void run_end_mounts(struct run *run);
/* Of the mounts that still run, or of what the jobs simulated; absent where
 * there are none. */
void run_read_mount_stats(struct run *run);

/*
 * No effect for a cell without a gpemu-gpud. The server listens
 * when run_start_gpud returns 0; run_end_gpud stops it and reads its record.
 */
int run_init_gpud(struct run *run, struct err *err);
int run_start_gpud(struct run *run, struct err *err);
void run_end_gpud(struct run *run);

/*
 * No effect for a cell without a preparation service. All of its
 * workers are registered when run_start_prepd returns 0; run_end_prepd ends
 * them, then the dispatcher, and reads their records.
 */
int run_init_prepd(struct run *run, struct err *err);
int run_start_prepd(struct run *run, struct err *err);
void run_end_prepd(struct run *run);
void run_fini_prepd(struct run *run);

/*
 * No effect for a cell without an object store. It listens when
 * run_start_s3 returns 0; run_end_s3 stops it and reads its record.
 */
int run_init_s3(struct run *run, struct err *err);
int run_start_s3(struct run *run, struct err *err);
void run_end_s3(struct run *run);
void run_fini_s3(struct run *run);

#endif

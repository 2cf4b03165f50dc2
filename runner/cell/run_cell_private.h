/* SPDX-License-Identifier: MIT */
/* A running cell: shared by the code that runs it and the code that records it.
 */
#ifndef GPEMU_RUNNER_CELL_RUN_CELL_PRIVATE_H
#define GPEMU_RUNNER_CELL_RUN_CELL_PRIVATE_H

#include "runner/cell/run_command.h"
#include "runner/run/run_failure.h"
#include "runner/run/run_host.h"
#include "runner/run/run_watch.h"
#include "runner/run/runner.h"

/* A program that serves the jobs: a mount, gpemu-gpud, the object store, a part
 * of the preparation service. */
struct run_server {
	enum run_program program;
	char *record; /* the file that it writes; NULL: none */
	struct command command;
	struct child child;
	json_t *stats; /* what its record has; NULL: none */
};

struct run_mount {
	char *mnt;     /* the data for the jobs */
	char *folder;  /* of the dataset */
	char *scratch; /* made for what is written in it; NULL: none */
	struct run_server server;
	json_t *stats; /* or NULL */
};

struct run_job {
	char *record; /* the file that it writes */
	struct command command;
	struct child child;
	char *errors; /* a file: stderr of a program that is not ours */
	bool started;
	uint64_t begin_ns, end_ns; /* tick_wall */
	int exit_status;	   /* -1: it did not finish */
};

struct run_prepd {
	struct network network;	  /* the addresses of its parts, and the key */
	char *folder;		  /* of key and records */
	struct run_server *parts; /* the dispatcher first */
	size_t n;		  /* 0: no service */
	json_t *status;		  /* as in the record of the cell; or NULL */
};

/* Of an object store. */
struct run_s3 {
	struct network network; /* its address */
	struct store store;
	struct run_server server;
};

struct run {
	struct runner *r;
	const struct cell *cell;
	bool mounted; /* its mounts run */
	bool with_fs; /* the configuration of gpemu-fs has an effect */
	struct run_mount *mounts;
	struct run_job *jobs;
	struct run_server **servers; /* all of them */
	size_t n_servers;
	struct run_server gpud; /* empty when the cell has none */
	struct run_prepd prepd; /* the same */
	struct run_s3 s3;	/* the same */
	struct network network; /* of the mounts; empty if none has peers */
	int log_fd;
	struct failure failure;
	char started[32];
	unsigned attempt;
	struct host_load before, after;
	struct watch watch; /* while its jobs ran */
	bool disturbed;	    /* by the record */
};

/*
 * run_server.c: one more of the servers, which writes its record to a file of
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
/* run_server.c: one mount, or all if the cell is mounted, with their folders in
 * the page cache. Errors as above. */
int run_start_mount(struct run *run, size_t i, struct err *err);
int run_start_mounts(struct run *run, struct err *err);
void run_end_mounts(struct run *run);
/* Of the mounts that still run, or of what the jobs simulated; absent where
 * there are none. */
void run_read_mount_stats(struct run *run);

/*
 * run_server.c; no effect for a cell without a gpemu-gpud. The server listens
 * when run_start_gpud returns 0; run_end_gpud stops it and reads its record.
 */
int run_init_gpud(struct run *run, struct err *err);
int run_start_gpud(struct run *run, struct err *err);
void run_end_gpud(struct run *run);

/*
 * run_server.c; no effect for a cell without a preparation service. All of its
 * workers are registered when run_start_prepd returns 0; run_end_prepd ends
 * them, then the dispatcher, and reads their records.
 */
int run_init_prepd(struct run *run, struct err *err);
int run_start_prepd(struct run *run, struct err *err);
void run_end_prepd(struct run *run);
void run_fini_prepd(struct run *run);

/*
 * run_server.c; no effect for a cell without an object store. It listens when
 * run_start_s3 returns 0; run_end_s3 stops it and reads its record.
 */
int run_init_s3(struct run *run, struct err *err);
int run_start_s3(struct run *run, struct err *err);
void run_end_s3(struct run *run);
void run_fini_s3(struct run *run);

/* run_record.c: gpemu-train and gpemu-prepd wrote their records (other programs
 * may), and the samples came through the mount. -EIO with a text. */
int run_check_records(const struct run *run, struct err *err);

/* run_record.c: the record as described in run_cell.h; sets run->disturbed.
 * NULL: no memory. */
json_t *run_record(struct run *run, const char *failure);
/* The same, to its file. */
int run_write_record(struct run *run, const char *failure, struct err *err);
/* Add the numbers that `from` has under these keys to those of `sum`. */
void run_add_numbers(json_t *sum, const json_t *from, const char *const *keys,
		     size_t n);

#endif

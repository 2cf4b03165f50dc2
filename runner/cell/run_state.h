/* SPDX-License-Identifier: MIT */
/* A cell that runs: what its servers, its jobs and its record share. */
#ifndef GPEMU_RUNNER_CELL_RUN_STATE_H
#define GPEMU_RUNNER_CELL_RUN_STATE_H

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
	struct run_failure failure;
	char started[32];
	unsigned attempt;
	struct host_load before, after;
	struct run_watch watch; /* while its jobs ran */
	bool disturbed;		/* by the record */
};

#endif

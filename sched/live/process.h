/* SPDX-License-Identifier: MIT */
/*
 * The process of a job, which outlives the scheduler.
 *
 * A keeper, a process of its own, starts the job's program, waits for it, and
 * writes how it ended into the job's folder. SIGTERM makes it end the program.
 * If the keeper is killed, the kernel sends SIGTERM to the program; who ignores
 * that is found by the lock, and killed.
 *
 * No file says who runs. Locks do, which the kernel drops with their holders:
 *
 *	byte 0 of FOLDER/lock	taken by the scheduler, inherited by the keeper
 *				and the program (F_OFD_SETLK): free once all of
 *				them have ended
 *	byte 1			of the keeper alone (F_SETLK), so that the
 *				kernel knows its pid
 *
 * So a job never runs twice, and a scheduler that is started again finds the
 * keepers. Needs a local file system.
 */
#ifndef GPEMU_SCHED_LIVE_PROCESS_H
#define GPEMU_SCHED_LIVE_PROCESS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "common/err.h"
#include "common/program/child.h"

enum process_state {
	PROCESS_NONE,
	PROCESS_RUNS,
	/* Somebody runs, and no keeper is known: it has not said yet who it
	 * is, or was killed and its program is about to end. Look again. */
	PROCESS_UNKNOWN,
};

struct process {
	enum process_state state;
	int pidfd; /* of the keeper, if it runs: readable when it has ended */
};

struct process_start {
	const char *folder; /* of the job; made if missing */
	uint32_t run;	    /* number of this process of the job */
	char *const *argv;
	const char *control; /* a FIFO, made if missing, which the keeper holds
			      * open; NULL: none */
	int turns_fd;	     /* the program inherits it; -1: none */
	uint64_t grace_ns;   /* from SIGTERM to SIGKILL */
	struct stop *stop;
};

/* How a process ended. */
struct process_end {
	uint32_t run;
	int status;	 /* exit status, or 128 + the signal */
	int64_t real_ns; /* tick_realtime */
};

/* A keeper and its program. -EBUSY: the job runs; -errno; with a text. To be
 * called while there is one thread. */
int process_start(struct process *p, const struct process_start *s,
		  struct err *err);
/* Who runs in a folder? Also after the pidfd became readable, which reaps the
 * keeper. -errno with a text. */
int process_look(struct process *p, const char *folder, struct err *err);
/* Have the keeper end its program. */
void process_stop(const struct process *p);
/* Kill all who hold the lock of a job, its keeper included. */
void process_kill(const char *folder);
/* Forget it; it goes on. */
void process_forget(struct process *p);
/* The last end that a keeper wrote: -ENOENT: none; -EBADMSG: damaged. */
int process_read_end(const char *folder, struct process_end *ret);
/* The last line of what the program wrote; "" if there is none. */
enum { PROCESS_LINE = 400 };
void process_last_line(const char *folder, char ret[PROCESS_LINE]);

#endif

/* SPDX-License-Identifier: MIT */
/*
 * Why a cell failed. The log of a cell has what all of its programs printed,
 * warnings and summaries among it, so its last line need not be the error. Ours
 * append each error to a file as well ($GPEMU_ERRORS, common/log.h): the first
 * one there is the cause, those of other ranks and of the launcher follow it.
 * Single threaded.
 */
#ifndef GPEMU_RUNNER_RUN_RUN_FAILURE_H
#define GPEMU_RUNNER_RUN_RUN_FAILURE_H

#include <stdbool.h>

#include "common/err.h"
#include "runner/run/run_host.h"

struct run_failure {
	char *log;     /* of the cell */
	char *errors;  /* what $GPEMU_ERRORS is */
	char *foreign; /* stderr of the culprit, if it is not ours; or NULL */
	char program[64]; /* the culprit; "": none, as time ran out */
	bool killed;	  /* the culprit, by a signal: it had no last word */
};

/* Before the programs start: make the file for their errors in `folder` and
 * name it in the environment. Takes `log`. -errno with a text; free with
 * failure_fini, failed or not. */
int failure_init(struct run_failure *f, const char *folder, char *log,
		 struct err *err);
void failure_fini(struct run_failure *f);

/* "exit status 1", "killed by SIGSEGV", of the status of child_wait; `before`:
 * a sample from before it ran, to tell whether memory ran out. */
enum { FAILURE_STATUS = 96 };
const char *failure_status(int status, const struct host_load *before,
			   char buf[FAILURE_STATUS]);

/*
 * A program ended with this status, not as it should: `err` gets "PROGRAM:
 * STATUS WHEN". `foreign`: the file of its stderr, if it is not ours. Returns
 * `code`.
 */
int failure_blame(struct run_failure *f, const char *program, const char *when,
		  const char *foreign, int status,
		  const struct host_load *before, int code, struct err *err);

/*
 * Add the cause to that text: the first error of the program; of one that is
 * not ours the last line of its stderr. Call it before ending other programs,
 * which may log as well.
 */
void failure_add_cause(const struct run_failure *f, struct err *err);

/* Append the stderr of a job, which was kept apart in a file, to the log; NULL:
 * it was not. */
void failure_append(const char *foreign, int log_fd);

#endif

/* SPDX-License-Identifier: MIT */
/* The observers of the steps of a run: its account, its timeline, its log. */
#ifndef GPEMU_LOADER_ACCOUNT_OBSERVE_H
#define GPEMU_LOADER_ACCOUNT_OBSERVE_H

#include <stdio.h>

#include "loader/account/observer.h"
#include "loader/pipeline/trace.h"

/*
 * The ctx of observe_account, which fills in the account of an epoch
 * (account.h). *account is complete at the end of the epoch, except for what
 * the loop does not see: the work of the workers, the CPU, the mount, and
 * checkpoints written.
 */
struct observed {
	struct train_account
		*account; /* the caller's; set before an epoch begins */
	/* private */
	uint64_t start_ns, wall_ns; /* start of the epoch */
	uint64_t begun_ns;	    /* when the last step was seen to begin */
	uint64_t first_end_ns;	    /* end of the first step */
};

extern const struct observer observe_account;

/* The ctx of observe_timeline: the steps of a run in its trace. */
struct step_timeline {
	struct trace *trace; /* the caller's */
	/* private: the last step shown, and its number of GPUs */
	uint64_t epoch, step;
	uint32_t n_gpus;
};

extern const struct observer observe_timeline;

/* One line of CSV for each step: where its time went. -errno with a text; on
 * success *ret has the CSV header. */
int step_log_open(const char *path, FILE **ret, struct err *err);
/* Its ctx is that file. Times are emulated seconds since the start of the
 * run. */
extern const struct observer observe_steps;
/* NULL is allowed. -errno with a text when a line could not be written. */
int step_log_close(FILE *f, const char *path, struct err *err);

#endif

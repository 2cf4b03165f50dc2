/* SPDX-License-Identifier: MIT */
/*
 * One workload from its file to its report: what gpemu-run does with each that
 * it is given, alone or in a list.
 */
#ifndef GPEMU_RUNNER_RUN_EXPERIMENT_H
#define GPEMU_RUNNER_RUN_EXPERIMENT_H

#include "common/program/cli.h"
#include "common/program/progress.h"
#include "runner/run/runner.h"

/* The options of gpemu-run. */
struct run_options {
	struct cli_common common;
	char *output;
	bool fresh, dry_run, no_mount;
	uint64_t jobs;
	uint64_t repetitions; /* 0: as the workload says */
	double time_scale;    /* 0: as the workload says */
	char *data_dir, *bin_dir, *progress, *metric;
	bool find_max_gpus;
	double au; /* for it, a share */
	/* made of these by run.c */
	enum progress_mode progress_mode;
	bool quiet; /* nothing on stdout but what was asked for there */
};

struct experiment {
	struct workload w;
	struct runner r; /* of `w`: an experiment does not move */
};

/*
 * Load and check the file, ask the programs about every key, and decide where
 * results (`out` NULL: results/NAME) and datasets are; nothing runs.
 * -EINVAL: a mistake in the file, the text says where. Free with
 * experiment_close, failed or not.
 */
int experiment_open(struct experiment *e, const char *path, const char *out,
		    const struct run_options *o, struct err *err);
void experiment_close(struct experiment *e);

/* The commands of all cells. */
int experiment_dry_run(struct experiment *e);

/* Before any cell runs: lock the result folder, make the datasets, see whether
 * anything can be mounted (else r.mounted is false). */
int experiment_ready(struct experiment *e, struct err *err);

/*
 * Make ready, run what has no record, and report: the table (unless
 * quiet), plots, files. 0 also when cells or checks failed: *ret_failed.
 * *ret_summary (or NULL): what summary.json has, also set when that could be
 * made and something after it failed. -EINTR and others: r.stop says whether a
 * signal came.
 */
int experiment_run(struct experiment *e, const struct run_options *o,
		   bool *ret_failed, json_t **ret_summary, struct err *err);

#endif

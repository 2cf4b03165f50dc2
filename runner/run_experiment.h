/* SPDX-License-Identifier: MIT */
/*
 * One workload from its file to its report, alone or in a list.
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
	bool fresh, again, dry_run, no_mount;
	uint64_t jobs;
	uint64_t repetitions; /* 0: as the workload says */
	double time_scale;    /* 0: as the workload says */
	char *data_dir, *bin_dir, *progress, *metric;
	char *shard_text, *network;
	uint64_t slurm;	     /* shards to submit; 0: none */
	char *slurm_options; /* of sbatch */
	bool epochs;
	bool find_max_gpus;
	double au; /* for it, a share */
	/* set by run.c */
	struct shard shard;
	enum progress_mode progress_mode;
	char *const *overrides; /* KEY=VALUE, ended by NULL */
	bool quiet; /* print nothing on stdout except requested output */
};

struct experiment {
	struct workload w;
	struct runner r; /* of `w`: an experiment does not move */
};

/*
 * Load and check the file, let the programs check every key, and set the
 * folders of results (`out` NULL: results/NAME) and datasets; nothing runs.
 * -EINVAL: an error in the file, the text says where. Free with
 * experiment_close, failed or not.
 */
int experiment_open(struct experiment *e, const char *path, const char *out,
		    const struct run_options *o, struct err *err);
void experiment_close(struct experiment *e);

/* The commands of all cells. */
int experiment_dry_run(struct experiment *e);

/* Before any cell runs: open the result folder, make the datasets, test
 * whether mounting works (else r.mounted is false), and write study.json. */
int experiment_ready(struct experiment *e, struct err *err);

/*
 * Prepare, run the cells without a record, and report: the table (unless
 * quiet), plots, files. A shard is not reported, only counted. Returns 0 even
 * if cells or checks failed: see *ret_failed. *ret_summary (may be NULL): the
 * contents of summary.json, also set if a later step failed. On -EINTR and
 * other errors r.stop says whether a signal arrived.
 */
int experiment_run(struct experiment *e, const struct run_options *o,
		   bool *ret_failed, json_t **ret_summary, struct err *err);

/* The report alone, of the records in the folder of `r`. */
int experiment_report(struct runner *r, bool quiet, bool *ret_failed,
		      json_t **ret_summary, struct err *err);

#endif

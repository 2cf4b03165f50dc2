/* SPDX-License-Identifier: MIT */
/*
 * State shared by all runs of an experiment: programs, folders, stop signals.
 * Single threaded.
 */
#ifndef GPEMU_RUNNER_RUN_RUNNER_H
#define GPEMU_RUNNER_RUN_RUNNER_H

#include <stdbool.h>

#include "common/program/child.h"
#include "runner/run/run_network.h"
#include "runner/spec/run_workload.h"

/*
 * A shard: one of N parts of the cells, for a study on several machines. Which
 * cells it has depends on the workload, its seed and N alone.
 */
struct shard {
	size_t index; /* from 0 */
	size_t n;     /* 0: no shards, all cells */
};

struct runner {
	const struct workload *w;
	struct stop stop;
	char *bin_dir;	 /* folder of the programs */
	char *share_dir; /* of profiles/, workloads/ and examples/ */
	char *out;	 /* the result folder */
	char *scratch;	 /* private, removed at the end */
	char *data_dir;	 /* folder of the datasets */
	int lock_fd;	 /* OUT/lock, run_lock.h */
	bool mounted;	 /* false: the cells run on `data` itself */
	enum network_mode network;
	struct shard shard; /* of the cells, the part to run */
};

/*
 * `bin_dir` NULL: $GPEMU_BIN, else the folder of the running executable.
 * `out` NULL: results/NAME. -ENOENT: a program is missing. Free with
 * runner_fini, failed or not.
 */
int runner_init(struct runner *r, const struct workload *w, const char *bin_dir,
		const char *out, struct err *err);
void runner_fini(struct runner *r);

/*
 * Make the result folder and open its lock. Others may use the folder at the
 * same time; but on one machine only if the workload says `independent`, for
 * they would disturb each other's times: -EAGAIN.
 */
int runner_open(struct runner *r, struct err *err);

/* Lock a byte of OUT/lock (run_lock.h), or wait until it is free. */
int runner_lock(struct runner *r, uint64_t byte, struct err *err);
/* The same without waiting: -EAGAIN. */
int runner_try_lock(const struct runner *r, uint64_t byte, struct err *err);
void runner_unlock(const struct runner *r, uint64_t byte);

/* "DIR/gpemu-fs", malloc'ed. */
char *runner_program(const struct runner *r, enum run_program program);
/* "OUT/FOLDER/NAME.SUFFIX", malloc'ed. */
char *runner_path(const struct runner *r, const char *folder, const char *name,
		  const char *suffix);

/* What the programs say of their options: {fs{}, train{}, gpud{}, prepd{},
 * s3{}}, the defaults, the last three only if the workload has them;
 * and profiles {fs {storage: storage}, ...}, which of them name a profile of
 * which kind. */
int runner_defaults(struct runner *r, json_t **ret, struct err *err);

enum { RUNNER_MORE = 8 }; /* most words */
/* Let the program check a configuration, with `more` words on its command line
 * (ended by NULL; or NULL). -EINVAL: invalid, with a text without position. */
int runner_check_config(struct runner *r, enum run_program program,
			const json_t *config, const char *const *more,
			struct err *err);
/* The record of gpemu-train with a configuration that simulates. -EINVAL: it
 * refuses; -ETIMEDOUT; -EINTR; with a text. */
int runner_simulate(struct runner *r, const json_t *train, uint64_t timeout_ns,
		    json_t **ret, struct err *err);
/* A workload_check_fn that runs the program itself; ctx is the runner. */
int runner_check(void *runner, const struct setting *setting, struct err *err);

/* "2/4" is the second of four. -EINVAL with a text. */
int shard_parse(const char *text, struct shard *ret, struct err *err);

/*
 * Is cell `i` in the shard, for each cell; malloc'ed. The points of each
 * repetition are dealt in a random order, so that each shard has as many cells
 * as any other, or one less, and long and short ones alike. -ENOMEM.
 */
int shard_cells(const struct shard *s, const struct workload *w, bool **ret);
/* How many cells it has. */
size_t shard_n_cells(const struct shard *s, const struct workload *w);

#endif

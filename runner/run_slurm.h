/* SPDX-License-Identifier: MIT */
/* `gpemu-run --slurm N`: a study as an array of Slurm jobs, one for each shard,
 * and a job that merges them. */
#ifndef GPEMU_RUNNER_RUN_SLURM_H
#define GPEMU_RUNNER_RUN_SLURM_H

#include "runner/run_experiment.h"

/*
 * Submit the workload of the file `path`, o->slurm shards of it, each into a
 * folder of its own below the result folder. A shard that Slurm requeues
 * continues. The merge begins when all shards have ended, however they did.
 * `fields`: the table of the options `o`, which the shards get, too. With
 * o->dry_run only prints the scripts and the commands.
 *
 * *ret_status: the exit status of the last sbatch, which waits if it has the
 * option for that. -ENODEV: there is no sbatch; -EIO: it refused, and said why
 * on stderr; -EINVAL: more shards than cells; -EINTR: see e->r.stop; each with
 * a text.
 */
int slurm_submit(struct experiment *e, const char *path,
		 const struct conf_field *fields, const struct run_options *o,
		 int *ret_status, struct err *err);

#endif

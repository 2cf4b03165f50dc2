/* SPDX-License-Identifier: MIT */
/* Command lines of a cell. */
#ifndef GPEMU_RUNNER_CELL_RUN_COMMAND_H
#define GPEMU_RUNNER_CELL_RUN_COMMAND_H

#include "runner/run/runner.h"

enum { COMMAND_ARGS = 100 };

/* Owns its strings; both arrays end with NULL. */
struct command {
	char *argv[COMMAND_ARGS + 1];
	size_t n;
	char *env[COMMAND_ARGS + 1]; /* NAME=VALUE */
	size_t n_env;
	int code; /* the first error of those who added to it, or 0 */
};

/* How clients reach the object store of a cell. */
enum { STORE_SECRET = 41 };
struct store {
	char address[NETWORK_ADDRESS];
	char secret[STORE_SECRET]; /* "": the cell has none */
};

void command_fini(struct command *c);

/* gpemu-fs of mount `index`, on the folder `mnt`, which is node `index` of the
 * network. -E2BIG, -ENOMEM. */
int command_mount(struct command *c, const struct runner *r,
		  const struct cell *cell, size_t index, const char *mnt,
		  const struct network *net, struct err *err);
/* gpemu-gpud, which writes its record to the file `record`. -E2BIG, -ENOMEM. */
int command_gpud(struct command *c, const struct runner *r,
		 const struct cell *cell, const char *record, struct err *err);
/* The dispatcher of the cell's preparation service (0), or its worker `index`,
 * at that node of its network. -E2BIG, -ENOMEM. */
int command_prepd(struct command *c, const struct runner *r,
		  const struct cell *cell, uint32_t index,
		  const struct network *net, const char *record);
/* gpemu-s3 with the dataset of the first mount, which writes its record to the
 * file `record`. -E2BIG, -ENOMEM; and as dataset_path. */
int command_s3(struct command *c, const struct runner *r,
	       const struct cell *cell, const struct store *store,
	       const char *record, struct err *err);
/* Job `index`: gpemu-train or the user's program, reading below `mnt`, which
 * writes its record to the file `record`; `prepd`: the network of the service,
 * or none; `store` has no address if the cell has none. */
int command_job(struct command *c, const struct runner *r,
		const struct cell *cell, size_t index, const char *mnt,
		const char *record, const struct network *prepd,
		const struct store *store, struct err *err);

/* The socket of a cell's gpemu-gpud, the same for all cells; malloc'ed. */
char *command_socket(const struct runner *r);
/* Does a job write checkpoints, to a folder that the workload does not name? */
bool command_has_checkpoints(const json_t *train);
/* The folder of a job's checkpoints, which the caller removes after the run,
 * below `writable`, or if that is NULL below the runner's own; "": it has none,
 * or the workload names one; malloc'ed. */
char *command_checkpoints(const struct runner *r, const char *writable,
			  const struct cell_job *job);
/* The folder of what is written in a mount; NULL: it is read-only, or there is
 * no memory; malloc'ed. */
char *command_writable(const struct runner *r, const struct cell_mount *m);
/* Is it one of the run, which the caller makes and removes? */
bool command_has_scratch(const struct cell_mount *m);
/* OUT/configs/CELL.[NAME.]fs.yaml, train.yaml, gpud.yaml, prepd.yaml or
 * s3.yaml;
 * malloc'ed. */
char *command_config(const struct runner *r, const struct cell *cell,
		     const char *name, enum run_program program);

/* [argv...] */
json_t *command_json(const struct command *c);

#endif

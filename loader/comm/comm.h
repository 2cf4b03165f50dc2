/* SPDX-License-Identifier: MIT */
/*
 * Collectives of the ranks of a run; a rank is a process that drives one node.
 *
 *	comm_alone	the only rank (comm.c)
 *	comm_mpi_open	started by mpirun or srun (comm_load.c, comm_mpi.c)
 *
 * All ranks make the same calls in the same order. An exchange gives every
 * rank a small record and a status of each rank. A rank that cannot continue
 * calls comm_end, which reports its error in the next exchange, whatever that
 * is for. The exchange then fails on every rank, and only comm_gather may
 * follow. So an error of one rank ends the run on all, and none waits for a
 * rank that has left.
 *
 * An exchange may be started now and finished later, one at a time. One thread
 * makes all calls. Waiting takes next to no CPU time.
 */
#ifndef GPEMU_LOADER_COMM_COMM_H
#define GPEMU_LOADER_COMM_COMM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/err.h"

enum { COMM_RECORD = 64 };

/* What a rank contributes to an exchange. */
struct comm_cell {
	int32_t status; /* 0 or -errno */
	uint32_t unused;
	uint8_t record[COMM_RECORD];
};

/* A message of any length; the receiver frees it. */
struct comm_blob {
	void *bytes;
	size_t n;
};

struct comm;

/* A NULL hook, for a single rank: nothing to do. */
struct comm_ops {
	void (*close)(struct comm *c);
	/* Begin to give `mine` to all ranks. */
	void (*start)(struct comm *c);
	/* Wait for that, and fill in `all`. -EIO with a text. */
	int (*finish)(struct comm *c, struct err *err);
	/* From all ranks to rank 0, and from rank 0 to all. Those that receive
	 * have room for the bytes. -EIO with a text. */
	int (*gather)(struct comm *c, const struct comm_blob *mine,
		      struct comm_blob *all, struct err *err);
	int (*bcast)(struct comm *c, struct comm_blob *b, struct err *err);
};

struct comm {
	const struct comm_ops *ops;
	uint32_t rank, size;
	struct comm_cell mine, *all; /* of an exchange; `all` has `size` */
	bool open;		     /* it is not finished yet */
	/* the status that ended the run, and the rank that gave it; 0: none */
	int ended;
	uint32_t ended_by;
};

/* The only rank of its run. *c must not move then. */
void comm_alone(struct comm *c);
/* NULL is allowed. All ranks close, after comm_end. */
void comm_close(struct comm *c);

/*
 * Start an exchange. `n` is at most COMM_RECORD, and the same on all ranks; not
 * after comm_end.
 */
void comm_start(struct comm *c, const void *mine, size_t n);
/* Wait for it. `all`: n bytes of each rank, in the order of ranks; NULL: not
 * wanted. The status of a rank that ended the run, with a text. */
int comm_finish(struct comm *c, void *all, size_t n, struct err *err);
/* Both. Without a record it is a barrier: comm_exchange(c, NULL, NULL, 0, e) */
int comm_exchange(struct comm *c, const void *mine, void *all, size_t n,
		  struct err *err);

/*
 * This rank's training has ended, with success (0) or not. Finishes an open
 * exchange, then makes the last one; does nothing if an exchange has failed,
 * which all ranks know.
 * Returns the status that ended the run: this rank's own, or another's, with a
 * text.
 */
int comm_end(struct comm *c, int status, struct err *err);

/* Rank 0 receives a message of each rank, ret[0..size); the others nothing.
 * -ENOMEM on all, if a rank has no memory for its own (`bytes` NULL) or theirs;
 * -EIO. */
int comm_gather(struct comm *c, const struct comm_blob *mine,
		struct comm_blob *ret, struct err *err);
/* All receive the message of rank 0, which keeps its own. Others own
 * b->bytes. */
int comm_bcast(struct comm *c, struct comm_blob *b, struct err *err);

/*
 * Replace this process by an mpirun that starts the same command `size` times.
 * The ranks are dealt to the machines that MPI knows, may use all cores there,
 * and be more than there are.
 * Returns on failure only: -errno with a text; -EINVAL: mpirun would split the
 * command.
 */
int comm_launch(uint32_t size, int argc, char **argv, struct err *err);
/*
 * Join the ranks that a launcher of MPI has started. `died` is called, on a
 * thread of the communicator, when the process of another rank has gone without
 * comm_close; the run cannot go on then. -ENOTSUP: MPI cannot be loaded, or the
 * build has none; -ENOTCONN: the ranks cannot connect; each with a text.
 */
int comm_mpi_open(void (*died)(void *ctx, uint32_t rank), void *ctx,
		  struct comm **ret, struct err *err);
/* That, in the module that it loads. */
int comm_mpi_module_open(void (*died)(void *ctx, uint32_t rank), void *ctx,
			 struct comm **ret, struct err *err);
#define COMM_MPI_MODULE_OPEN "comm_mpi_module_open"

#endif

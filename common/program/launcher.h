/* SPDX-License-Identifier: MIT */
/*
 * The launcher of MPI, as the processes that it starts see it in their
 * environment: mpirun of Open MPI or MPICH, and srun.
 */
#ifndef GPEMU_COMMON_PROGRAM_LAUNCHER_H
#define GPEMU_COMMON_PROGRAM_LAUNCHER_H

#include <stdbool.h>
#include <stdint.h>

/* The number of processes that it started together, of which this is one; 1:
 * there is no launcher. */
uint32_t launcher_size(void);
/* Can they connect to each other? Not what srun --mpi=none starts. */
bool launcher_connects(void);
/* What this process starts is none of them. */
void launcher_forget(void);

#endif

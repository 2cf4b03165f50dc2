/* SPDX-License-Identifier: MIT */
#include "common/program/launcher.h"

#include <stdlib.h>

enum { OPEN_MPI, PMI, SRUN, N_SIZES };

/* mpirun of Open MPI; that of MPICH, and srun --mpi=pmi2; srun. The first one
 * that is set counts: mpirun starts its daemons with srun. */
static const char *const sizes[N_SIZES] = {
	[OPEN_MPI] = "OMPI_COMM_WORLD_SIZE",
	[PMI] = "PMI_SIZE",
	[SRUN] = "SLURM_STEP_NUM_TASKS",
};

static int which(void)
{
	int i = 0;

	while (i < N_SIZES && !getenv(sizes[i]))
		i++;
	return i;
}

uint32_t launcher_size(void)
{
	int i = which(), n = i < N_SIZES ? atoi(getenv(sizes[i])) : 1;

	return n > 1 ? (uint32_t)n : 1;
}

bool launcher_connects(void)
{
	return which() != SRUN || getenv("PMIX_RANK");
}

void launcher_forget(void)
{
	for (int i = 0; i < N_SIZES; i++)
		unsetenv(sizes[i]);
}

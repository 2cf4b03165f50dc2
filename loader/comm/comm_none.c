/* SPDX-License-Identifier: MIT */
/* Without MPI (meson setup -Dmpi=disabled). */
#include <errno.h>

#include "loader/comm/comm.h"

int comm_mpi_open(void (*died)(void *ctx, uint32_t rank), void *ctx,
		  struct comm **ret, struct err *err)
{
	(void)died;
	(void)ctx;
	(void)ret;
	return err_set(err, -ENOTSUP,
		       "this gpemu-train was built without MPI; build it with "
		       "libopenmpi-dev installed");
}

/* SPDX-License-Identifier: MIT */
/*
 * MPI is a module of its own (comm_mpi.c), which a run of several ranks loads:
 * MPI's library brings a dozen others, and a run of one rank needs none.
 */
#include "loader/comm/comm.h"

#include <dlfcn.h>
#include <errno.h>
#include <unistd.h>

#include "common/util.h"

/* As in the build folder, and as installed, from the program's folder on. */
static const char *const places[] = { "gpemu-mpi.so", GPEMU_MPI_MODULE };

/* NULL: with the reason of the last place in dlerror(3). */
static void *load(void)
{
	_cleanup_free_ char *program = util_program();
	void *module = NULL;

	for (size_t i = 0; program && !module && i < ARRAY_SIZE(places); i++) {
		_cleanup_free_ char *path = util_beside(program, places[i]);

		/* global: modules of Open MPI look up its functions */
		if (path && access(path, F_OK) == 0)
			module = dlopen(path, RTLD_NOW | RTLD_GLOBAL);
	}
	return module;
}

int comm_mpi_open(void (*died)(void *ctx, uint32_t rank), void *ctx,
		  struct comm **ret, struct err *err)
{
	void *module = load();
	__typeof__(&comm_mpi_module_open) open = NULL;
	const char *why;

	if (module)
		*(void **)&open = dlsym(module, COMM_MPI_MODULE_OPEN);
	if (open)
		return open(died, ctx, ret, err);
	why = dlerror();
	return err_set(err, -ENOTSUP,
		       "cannot load MPI: %s; gpemu-train needs Open MPI or "
		       "MPICH, and a build with libopenmpi-dev or libmpich-dev "
		       "installed",
		       why ? why : "gpemu-mpi.so is missing");
}

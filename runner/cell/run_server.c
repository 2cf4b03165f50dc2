/* SPDX-License-Identifier: MIT */
/* Starts a server for the jobs of a cell. */
#include <errno.h>
#include <string.h>

#include "common/util.h"
#include "runner/cell/run_cell_private.h"

int run_start_server(struct run *run, struct child *child,
		     const struct command *command, enum run_program program,
		     uint64_t timeout_ns, struct err *err)
{
	_cleanup_(child_ready_fini) struct child_ready ready = { .fd = -1 };
	const char *name = run_program_name(program);
	int status = 0, code = child_ready_init(&ready, err);

	if (code == 0)
		code = child_start(child, command->argv,
				   (char *const[]){ ready.env, NULL },
				   run->log_fd, run->log_fd, err);
	if (code < 0)
		return code;
	code = child_wait_ready(child, &run->r->stop, &ready, timeout_ns,
				&status);
	if (code == -ECHILD)
		return err_set(err,
			       status == EXIT_STATUS_NOT_NOW ? -ENODEV : -EIO,
			       "%s: exit status %d before it was ready", name,
			       status);
	return code < 0 ? err_set(err, code, "%s: %s", name, strerror(-code))
			: 0;
}

/* SPDX-License-Identifier: MIT */
/* The gpemu-gpud of a cell: started before its jobs, stopped after them. */
#include <errno.h>
#include <string.h>
#include <sys/un.h>

#include "common/json.h"
#include "common/units.h"
#include "common/util.h"
#include "runner/cell/run_cell_private.h"

/* arbitrary: it reads a profile and listens, which takes milliseconds */
#define START_TIMEOUT_NS (10 * NS_PER_S)
/* arbitrary: it only writes its record */
#define GRACE_NS (5 * NS_PER_S)

int run_init_gpud(struct run *run, struct err *err)
{
	struct run_gpud *g = &run->gpud;

	g->child.pidfd = -1;
	if (!run->cell->gpud)
		return 0;
	if (asprintf(&g->record, "%s/gpud.json", run->r->scratch) < 0)
		return -ENOMEM;
	return command_gpud(&g->command, run->r, run->cell, g->record, err);
}

int run_start_gpud(struct run *run, struct err *err)
{
	_cleanup_free_ char *socket = command_socket(run->r);

	if (!run->cell->gpud)
		return 0;
	if (!socket)
		return -ENOMEM;
	if (strlen(socket) >= sizeof(((struct sockaddr_un *)0)->sun_path))
		return err_set(err, -ENAMETOOLONG,
			       "%s: path too long for a socket; set TMPDIR to "
			       "a shorter folder",
			       socket);
	return run_start_server(run, &run->gpud.child, &run->gpud.command,
				RUN_GPUD, START_TIMEOUT_NS, err);
}

void run_end_gpud(struct run *run)
{
	struct run_gpud *g = &run->gpud;

	if (!run->cell->gpud)
		return;
	if (g->child.pid > 0)
		child_end(&g->child, GRACE_NS);
	/* none if it died: then the cell failed */
	json_read(g->record, &g->status, NULL);
	unlink(g->record);
}

void run_fini_gpud(struct run *run)
{
	command_fini(&run->gpud.command);
	free(run->gpud.record);
	json_decref(run->gpud.status);
}

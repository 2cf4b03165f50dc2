/* SPDX-License-Identifier: MIT */
/* The gpemu-gpud of a cell: from before its jobs until after them. */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "common/json.h"
#include "common/tick.h"
#include "common/units.h"
#include "common/util.h"
#include "workloads/run_cell_private.h"

/* arbitrary: it reads a profile and listens, milliseconds */
#define START_TIMEOUT_NS (10 * NS_PER_S)
#define RETRY_NS (2 * NS_PER_MS)
/* arbitrary: it answers no one and writes its record */
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

static bool listens(const char *path)
{
	struct sockaddr_un a = { .sun_family = AF_UNIX };
	_cleanup_close_ int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	snprintf(a.sun_path, sizeof(a.sun_path), "%s", path);
	return fd >= 0 && connect(fd, (struct sockaddr *)&a, sizeof(a)) == 0;
}

int run_start_gpud(struct run *run, struct err *err)
{
	_cleanup_free_ char *socket = command_socket(run->r);
	struct run_gpud *g = &run->gpud;
	uint64_t limit = tick_wall() + START_TIMEOUT_NS;
	int status = 0, code;

	if (!run->cell->gpud)
		return 0;
	if (!socket)
		return -ENOMEM;
	if (strlen(socket) >= sizeof(((struct sockaddr_un *)0)->sun_path))
		return err_set(err, -ENAMETOOLONG,
			       "%s: too long for a socket; set TMPDIR", socket);
	code = child_start(&g->child, g->command.argv, NULL, run->log_fd,
			   run->log_fd, err);
	/* nothing tells that it listens, between its bind and its listen */
	while (code == 0 && !listens(socket)) {
		code = child_wait(&g->child, &run->r->stop, RETRY_NS, &status);
		if (code == 0)
			return err_set(err, -EIO, "gpemu-gpud: exit status %d",
				       status);
		if (code == -ETIMEDOUT && tick_wall() < limit)
			code = 0;
	}
	return code < 0 ? err_set(err, code, "gpemu-gpud: %s", strerror(-code))
			: 0;
}

void run_end_gpud(struct run *run)
{
	struct run_gpud *g = &run->gpud;

	if (!run->cell->gpud)
		return;
	if (g->child.pid > 0)
		child_end(&g->child, GRACE_NS);
	/* none when it died: then the cell failed */
	json_read(g->record, &g->status, NULL);
	unlink(g->record);
}

void run_fini_gpud(struct run *run)
{
	command_fini(&run->gpud.command);
	free(run->gpud.record);
	json_decref(run->gpud.status);
}

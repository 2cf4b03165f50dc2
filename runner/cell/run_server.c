/* SPDX-License-Identifier: MIT */
/* Starts the servers of a cell: its mounts, and its gpemu-gpud. */
#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/un.h>

#include "common/json.h"
#include "common/tick.h"
#include "common/units.h"
#include "common/util.h"
#include "runner/cell/run_cell_private.h"
#include "runner/run/run_dataset.h"
#include "runner/run/run_remove.h"
#include "runner/run/run_warm.h"

/* arbitrary: a million files are scanned in a few seconds */
#define MOUNT_TIMEOUT_NS (60 * NS_PER_S)
/* arbitrary: of mounts on this machine, which dial each other as they start */
#define PEERS_TIMEOUT_NS (30 * NS_PER_S)
#define PEERS_INTERVAL_MS 10
/* gpemu-fs may have requests in its timer queue */
#define GRACE_NS (10 * NS_PER_S)
/* arbitrary: it reads a profile and listens, which takes milliseconds */
#define GPUD_TIMEOUT_NS (10 * NS_PER_S)
/* arbitrary: it only writes its record */
#define GPUD_GRACE_NS (5 * NS_PER_S)

int run_init_server(struct run *run, struct run_server *s,
		    enum run_program program, const char *dir, const char *name)
{
	s->program = program;
	s->child.pidfd = -1;
	run->servers[run->n_servers++] = s;
	if (!dir)
		return 0;
	s->record = util_join(dir, name);
	return s->record ? 0 : -ENOMEM;
}

int run_start_server(struct run *run, struct run_server *s, uint64_t timeout_ns,
		     struct err *err)
{
	_cleanup_(child_ready_fini) struct child_ready ready = { .fd = -1 };
	const char *name = run_program_name(s->program);
	char *env[COMMAND_ARGS + 2];
	int status = 0, code = child_ready_init(&ready, err);

	env[0] = ready.env;
	memcpy(env + 1, s->command.env, sizeof(s->command.env));
	if (code == 0)
		code = child_start(&s->child, s->command.argv, env, run->log_fd,
				   run->log_fd, err);
	if (code < 0)
		return code;
	code = child_wait_ready(&s->child, &run->r->stop, &ready, timeout_ns,
				&status);
	if (code == -ECHILD)
		return failure_blame(
			&run->failure, name, " before it was ready", NULL,
			status, &run->before,
			status == EXIT_STATUS_NOT_NOW ? -ENODEV : -EIO, err);
	return code < 0 ? err_set(err, code, "%s: %s", name, strerror(-code))
			: 0;
}

void run_end_server(struct run_server *s, uint64_t grace_ns)
{
	if (s->child.pid > 0)
		child_end(&s->child, grace_ns);
	if (!s->record)
		return;
	json_read(s->record, &s->stats, NULL);
	unlink(s->record);
}

/* --- mounts ----------------------------------------------------------- */

int run_start_mount(struct run *run, size_t i, struct err *err)
{
	struct run_mount *m = &run->mounts[i];
	struct err why;
	int code;

	if (mkdir(m->mnt, 0700) < 0 && errno != EEXIST)
		return err_set(err, -errno, "%s: %s", m->mnt, strerror(errno));
	if (m->scratch && mkdir(m->scratch, 0700) < 0)
		return err_set(err, -errno, "%s: %s", m->scratch,
			       strerror(errno));
	code = network_enter(&run->network, (uint32_t)i, err);
	if (code < 0)
		return code;
	code = run_start_server(run, &m->server, MOUNT_TIMEOUT_NS, err);
	return network_leave(&run->network, code < 0 ? &why : err) < 0 ? -EIO
								       : code;
}

/* NULL: it cannot be read. */
static json_t *read_stats(const struct run_mount *m)
{
	_cleanup_free_ char *path = util_join(m->mnt, ".gpemu/stats");
	json_t *stats = NULL;

	if (path)
		json_read(path, &stats, NULL);
	return stats;
}

static bool has_all_peers(const struct run_mount *m)
{
	json_auto_t *stats = read_stats(m);
	const json_t *peer = json_object_get(stats, "peer");
	json_t *each;
	size_t i;

	json_array_foreach (json_object_get(peer, "peers"), i, each)
		if (!json_is_true(json_object_get(each, "connected")))
			return false;
	return peer;
}

/* What a job reads before its mount knows the others comes from storage. */
static int await_peers(struct run *run, size_t i, struct err *err)
{
	uint64_t end = tick_wall() + PEERS_TIMEOUT_NS;
	int code = 0;

	if (!cell_has_peers(&run->cell->mounts[i]))
		return 0;
	while (code == 0 && !has_all_peers(&run->mounts[i])) {
		if (stop_came(&run->r->stop))
			code = -EINTR;
		else if (tick_wall() > end)
			code = -ETIMEDOUT;
		poll(NULL, 0, PEERS_INTERVAL_MS);
	}
	return code < 0 ? err_set(err, code, "the peers of mount %s: %s",
				  run->cell->mounts[i].name, strerror(-code))
			: 0;
}

int run_start_mounts(struct run *run, struct err *err)
{
	const struct cell *cell = run->cell;
	int code = 0;

	if (!run->mounted)
		return 0;
	for (size_t i = 0; code == 0 && i < cell->n_mounts; i++)
		if (dataset_is_folder(cell->mounts[i].dataset))
			code = warm_folder(run->mounts[i].folder, &run->r->stop,
					   err);
	for (size_t i = 0; code == 0 && i < cell->n_mounts; i++)
		code = run_start_mount(run, i, err);
	for (size_t i = 0; code == 0 && i < cell->n_mounts; i++)
		code = await_peers(run, i, err);
	return code;
}

/* Clean up after a daemon that died or hung. */
static void detach(const char *mnt)
{
	struct child child;
	char *argv[] = { (char *)"/usr/bin/fusermount3", (char *)"-uz",
			 (char *)mnt, NULL };

	if (umount2(mnt, MNT_DETACH) == 0 ||
	    child_start(&child, argv, NULL, STDERR_FILENO, STDERR_FILENO,
			NULL) < 0)
		return;
	/* MOUNT_TIMEOUT_NS is more than enough: it queries the kernel and exits
	 */
	struct stop none = { .fd = -1 };
	int status;

	if (child_wait(&child, &none, GRACE_NS, &status) < 0)
		child_end(&child, 0);
}

void run_end_mounts(struct run *run)
{
	for (size_t i = 0; run->mounted && i < run->cell->n_mounts; i++) {
		struct run_mount *m = &run->mounts[i];

		run_end_server(&m->server, GRACE_NS);
		if (child_is_mounted(m->mnt))
			detach(m->mnt);
		rmdir(m->mnt);
		if (m->scratch)
			run_remove(m->scratch);
	}
}

/* What takes the place of the mounts' stats. */
static void read_simulated_stats(struct run *run)
{
	for (size_t i = 0; i < run->cell->n_jobs; i++) {
		struct run_mount *m = &run->mounts[run->cell->jobs[i].mount];
		json_auto_t *record = NULL;

		if (m->stats || !cell_job_is_simulated(&run->cell->jobs[i]) ||
		    json_read(run->jobs[i].record, &record, NULL) < 0)
			continue;
		m->stats = json_incref(json_object_get(record, "fs"));
	}
}

void run_read_mount_stats(struct run *run)
{
	if (!run->mounted)
		read_simulated_stats(run);
	for (size_t i = 0; run->mounted && i < run->cell->n_mounts; i++) {
		struct run_mount *m = &run->mounts[i];

		/* without statistics the member, and metrics on it, are absent
		 */
		if (m->server.child.pid > 0)
			m->stats = read_stats(m);
	}
}

/* --- gpemu-gpud ------------------------------------------------------- */

int run_init_gpud(struct run *run, struct err *err)
{
	struct run_server *g = &run->gpud;
	int code;

	if (!run->cell->gpud)
		return 0;
	code = run_init_server(run, g, RUN_GPUD, run->r->scratch, "gpud.json");
	return code < 0 ? code
			: command_gpud(&g->command, run->r, run->cell,
				       g->record, err);
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
	return run_start_server(run, &run->gpud, GPUD_TIMEOUT_NS, err);
}

void run_end_gpud(struct run *run)
{
	run_end_server(&run->gpud, GPUD_GRACE_NS);
}

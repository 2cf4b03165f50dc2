/* SPDX-License-Identifier: MIT */
/* Starts the servers of a cell, above all its mounts. */
#include <errno.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>

#include "common/json.h"
#include "common/units.h"
#include "common/util.h"
#include "runner/cell/run_cell_private.h"
#include "runner/run/run_dataset.h"
#include "runner/run/run_warm.h"

/* arbitrary: a million files are scanned in a few seconds */
#define MOUNT_TIMEOUT_NS (60 * NS_PER_S)
/* gpemu-fs may have requests in its timer queue */
#define GRACE_NS (10 * NS_PER_S)

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

/* --- mounts ----------------------------------------------------------- */

int run_start_mount(struct run *run, size_t i, struct err *err)
{
	struct run_mount *m = &run->mounts[i];
	struct err why;
	int code;

	if (mkdir(m->mnt, 0700) < 0 && errno != EEXIST)
		return err_set(err, -errno, "%s: %s", m->mnt, strerror(errno));
	code = network_enter(&run->network, (uint32_t)i, err);
	if (code < 0)
		return code;
	code = run_start_server(run, &m->child, &m->command, RUN_FS,
				MOUNT_TIMEOUT_NS, err);
	return network_leave(&run->network, code < 0 ? &why : err) < 0 ? -EIO
								       : code;
}

int run_start_mounts(struct run *run, struct err *err)
{
	const struct cell *cell = run->cell;
	int code = 0;

	if (!run->mounted)
		return 0;
	for (size_t i = 0; code == 0 && i < cell->n_mounts; i++)
		if (!dataset_is_synth(cell->mounts[i].dataset))
			code = warm_folder(run->mounts[i].folder, &run->r->stop,
					   err);
	for (size_t i = 0; code == 0 && i < cell->n_mounts; i++)
		code = run_start_mount(run, i, err);
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

		child_end(&m->child, GRACE_NS);
		if (child_is_mounted(m->mnt))
			detach(m->mnt);
		rmdir(m->mnt);
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
		_cleanup_free_ char *path = NULL;

		/* without statistics the member, and metrics on it, are absent
		 */
		if (m->child.pid > 0 &&
		    asprintf(&path, "%s/.gpemu/stats", m->mnt) >= 0)
			json_read(path, &m->stats, NULL);
	}
}

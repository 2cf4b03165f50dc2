/* SPDX-License-Identifier: MIT */
/* Start a mount from its options, serve it, tear it down. */
#ifndef GPEMU_FS_MOUNT_MOUNT_H
#define GPEMU_FS_MOUNT_MOUNT_H

#include "fs/mount/options.h"
#include "fs/peer/peer_net.h"
#include "fs/setup/setup.h"

/* All parts of a mount; torn down in the order of mount_fini. */
struct mount {
	struct options o;
	int argc; /* for a reload */
	char **argv;
	char *start_dir; /* base of relative paths */
	struct setup setup;
	struct peer_net peers;
	struct upper *upper; /* NULL: read-only */
	pthread_mutex_t options_lock;
	struct ctl ctl;
	struct front *front;
	struct signals *signals;
	struct jobs *jobs;
	struct warm *warm;
	char *mountpoint;
	char *fuse_options;
	int ready_fd; /* the daemon's end of the pipe, or -1 */
	bool ready;   /* atomic: messages go to the target of --log */
	pthread_mutex_t notify_lock;
	bool stopping; /* by notify_lock */
};

/* Serve SOURCE at m->mountpoint until the end; the exit status. */
int mount_serve(struct mount *m, const char *source);
void mount_fini(struct mount *m);

/* notify(), but nothing after STOPPING=1: a signal may end the mount before it
 * is ready. */
int mount_notify(struct mount *m, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));

/*
 * SIGHUP, as a job (fs/control/jobs.h): reopen the output files, and read
 * --config again. Errors are logged and change nothing.
 */
void mount_reload(struct mount *m);

/* Is `key` an option that can change while mounted? */
bool mount_is_live(const char *key);
/* Warn of options, as conf_json, that differ and need a new mount; `what` names
 * the request. Changes `old`. */
void mount_report_fixed(json_t *old, json_t *fresh, const char *what);

/*
 * `mount -o remount`: send the gpemu-fs that is mounted at `mountpoint` the
 * changes in m's command line. The exit status.
 */
int mount_remount(struct mount *m, const char *mountpoint);

#endif

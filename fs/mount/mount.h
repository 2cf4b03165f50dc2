/* SPDX-License-Identifier: MIT */
/* From options to a mount that serves, and back. */
#ifndef GPEMU_FS_MOUNT_MOUNT_H
#define GPEMU_FS_MOUNT_MOUNT_H

#include "fs/mount/options.h"

/* All that a mount is made of; torn down in the order of mount_fini. */
struct mount {
	struct options o;
	int argc; /* for a reload */
	char **argv;
	char *start_dir; /* which relative paths are relative to */
	const struct source_ops *source;
	void *source_state;
	struct tree tree;
	struct tick *tick;
	struct trace *trace;
	struct tiers tiers; /* empty: a policy and a size */
	struct server *server;
	pthread_mutex_t options_lock;
	struct group_map *groups;
	struct ctl ctl;
	struct front *front;
	struct signals *signals;
	struct jobs *jobs;
	struct warm *warm;
	char *mountpoint;
	char *fuse_options;
	int ready_fd; /* the daemon's end of the pipe, or -1 */
	bool ready;   /* atomic: the log is where --log has it */
};

/* Serve SOURCE at m->mountpoint until the end; the exit status. */
int mount_serve(struct mount *m, const char *source);
void mount_fini(struct mount *m);

/*
 * SIGHUP, as a job (fs/control/jobs.h): open the files written to once more,
 * and read
 * --config. Errors are logged and change nothing.
 */
void mount_reload(struct mount *m);

/* Is it the key of an option that can change while mounted? */
bool mount_is_live(const char *key);
/* Warn of the options, as conf_json, that are not the same in both and need a
 * new mount; `what` was asked for. Changes `old`. */
void mount_report_fixed(json_t *old, json_t *fresh, const char *what);

/*
 * `mount -o remount`: tell the gpemu-fs that is mounted at `mountpoint` what is
 * new in m's command line. The exit status.
 */
int mount_remount(struct mount *m, const char *mountpoint);

#endif

/* SPDX-License-Identifier: MIT */
/*
 * MOUNTPOINT/.gpemu: the state of the mount, and the commands to it.
 *
 *	stats       counters as JSON                         (read)
 *	stats.prom  the same as Prometheus text              (read)
 *	config      the effective configuration as YAML      (read)
 *	groups      which files are read together, one JSON array of
 *	            paths a line; empty without groups      (read)
 *	nic         the network card as JSON                  (read)
 *	control     one command a line                       (write)
 *	future      the accesses to come, as a loader announces them
 *	            (common/system/future.h)                 (write)
 *	importance  how much files matter, as a loader announces it
 *	            (common/system/importance.h)             (write)
 *
 * Listings of the root omit the directory, so that programs that walk the
 * dataset (ImageFolder, find) do not see it. A file's content is made when it
 * is opened; that of groups, which never changes, is made as it is read.
 *
 * Commands: `reset`, `epoch`, `drop-cache`, `resize SIZE`, `set KEY VALUE` with
 * the keys cache_policy, cache_size, tier, storage and bandwidth, `fault add
 * RULE` and `fault clear [ID]` (fs/layer/fault.h), `warm LIST`
 * (fs/control/warm.h), `reduce ...`.
 */
#ifndef GPEMU_FS_CONTROL_CTL_H
#define GPEMU_FS_CONTROL_CTL_H

#include <stdbool.h>
#include <stddef.h>

#include "common/conf/conf.h"
#include "fs/server/server.h"

#define CTL_DIR_NAME TREE_CONTROL_NAME

enum ctl_file {
	CTL_STATS,
	CTL_STATS_PROM,
	CTL_CONFIG,
	CTL_CONTROL,
	CTL_GROUPS,
	CTL_NIC,
	CTL_FUTURE,
	CTL_IMPORTANCE,
	CTL_N_FILES,
};

const char *ctl_name(enum ctl_file file);
bool ctl_writable(enum ctl_file file);
/* Permission bits. All users of the mount may read the counters. The other
 * files show paths of the mounter, and the content of folders that not all
 * users may enter. */
uint32_t ctl_mode(enum ctl_file file);
/* CTL_N_FILES: no such file. */
enum ctl_file ctl_lookup(const char *name);

struct nic;

struct ctl {
	struct server *server;
	/* the options in force; `set` changes them too */
	const struct conf_field *fields;
	void *options;
	char **storage, **cache_policy;	   /* within the options */
	struct units_capacity *cache_size; /* within the options */
	struct conf_list *tiers; /* within the options; NULL or empty: none */
	pthread_mutex_t *lock;	 /* guards the options */
	const char *dir;     /* absolute, base of relative paths; NULL: none */
	struct warm *warm;   /* NULL: no command `warm` */
	struct trace *trace; /* or NULL */
	struct nic *nic;     /* of --peers; NULL: none */
	uint64_t text_bytes; /* atomic: of what ctl_read returned */
	/* what a front end adds to the stats; NULL: nothing */
	void (*add_stats)(void *ctx, json_t *stats);
	void *add_ctx;
	const char *transport; /* atomic: as --transport; NULL: not yet known */
};

/* The transport in use from now on; `word` is static. */
void ctl_set_transport(struct ctl *ctl, const char *word);

/* Is its content made in pieces as it is read (ctl_read_at)? Else it is made at
 * the open (ctl_read). */
bool ctl_is_long(enum ctl_file file);
/* The content of a file, *ret_n bytes, to be freed by ctl_free. -ENOMEM;
 * -ENFILE: the texts of open files take too much memory. */
int ctl_read(struct ctl *ctl, enum ctl_file file, char **ret, size_t *ret_n);
void ctl_free(struct ctl *ctl, char *text, size_t n);
/* Up to `n` bytes at `offset`, malloc'ed; *ret_n: their number, 0 at the end.
 * -ENOMEM. */
int ctl_read_at(struct ctl *ctl, enum ctl_file file, uint64_t offset, size_t n,
		char **ret, size_t *ret_n);
/* The stats: of the server, transport, control files, warm-up and trace.
 * NULL: no memory. */
json_t *ctl_stats(struct ctl *ctl);
/* The stats as lines of the log, "stats: KEY VALUE". */
void ctl_log_stats(struct ctl *ctl);
/* May it be read while we serve? Not a pipe: the read would block until a
 * process writes to it. -EINVAL, or as stat(2); with a text. */
int ctl_check_file(const char *path, struct err *err);
/* Do the writes to this file make one whole, which ends with ctl_end? */
bool ctl_ends(enum ctl_file file);
/* May this write wait for a file, or for a command that does? */
bool ctl_may_wait(enum ctl_file file, const char *text, size_t n);
/* A write to a file that is ctl_writable: commands (ctl_command), a part of the
 * future (server_future), or server_importance. `writer` tells open files
 * apart. */
int ctl_write(struct ctl *ctl, enum ctl_file file, const void *writer,
	      uint64_t offset, const char *bytes, size_t n, struct err *err);
/* A file that ctl_ends was closed after writes; may wait. -EINVAL with a
 * text: they were not all. */
int ctl_end(struct ctl *ctl, const void *writer, struct err *err);
/*
 * Run the commands in `text`, `n` bytes, in order until one fails. Commands
 * that may wait run on one thread at a time, which also changes the options.
 * -EINVAL and other errors of the command, with a text.
 */
int ctl_command(struct ctl *ctl, const char *text, size_t n, struct err *err);

#endif

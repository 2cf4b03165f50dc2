/* SPDX-License-Identifier: MIT */
/*
 * MOUNTPOINT/.gpemu: what the mount says of itself, and how it is told.
 *
 *	stats       counters as JSON                         (read)
 *	stats.prom  the same as Prometheus text              (read)
 *	config      the effective configuration as YAML      (read)
 *	groups      which files are read together, a JSON array of their
 *	            paths a line; empty where none are      (read)
 *	control     one command a line                       (write)
 *
 * The directory does not show in a listing of the root, so that nobody who
 * walks the dataset (ImageFolder, find) trips over it. A file's content is
 * made when it is opened, that of groups, which never changes, as it is read.
 *
 * Commands: `reset`, `epoch`, `drop-cache`, `set KEY VALUE` with the keys
 * cache_policy, cache_size, tier and storage, `fault add RULE` and
 * `fault clear [ID]` (fs/layer/fault.h), `warm LIST` (fs/control/warm.h).
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
	CTL_N_FILES,
};

const char *ctl_name(enum ctl_file file);
bool ctl_writable(enum ctl_file file);
/* Permission bits. The counters are for all who may use the mount; the rest
 * says where the mounter's files are, and what is in folders that not all may
 * enter. */
uint32_t ctl_mode(enum ctl_file file);
/* CTL_N_FILES: no such file. */
enum ctl_file ctl_lookup(const char *name);

struct ctl {
	struct server *server;
	/* the options as they are in force; `set` changes them too */
	const struct conf_field *fields;
	void *options;
	char **storage, **cache_policy;	   /* within the options */
	struct units_capacity *cache_size; /* within the options */
	struct conf_list *tiers; /* within the options; NULL or empty: none */
	pthread_mutex_t *lock;	 /* guards the options */
	const char *dir;       /* absolute, for relative paths; NULL: stay so */
	struct warm *warm;     /* NULL: no such command */
	struct trace *trace;   /* or NULL */
	uint64_t text_bytes;   /* atomic: of what ctl_read returned */
	const char *transport; /* atomic: a word, as --transport; NULL yet */
};

/* How requests come, from now on; `word` stays. */
void ctl_set_transport(struct ctl *ctl, const char *word);

/* Is its content made piece by piece as it is read (ctl_read_at), or all of it
 * at the open (ctl_read)? */
bool ctl_is_long(enum ctl_file file);
/* The content of a file, *ret_n bytes, to be freed by ctl_free. -ENOMEM;
 * -ENFILE: those that are open take too much already. */
int ctl_read(struct ctl *ctl, enum ctl_file file, char **ret, size_t *ret_n);
void ctl_free(struct ctl *ctl, char *text, size_t n);
/* Up to `n` bytes at `offset`, malloc'ed, *ret_n of them, 0: the end. -ENOMEM.
 */
int ctl_read_at(struct ctl *ctl, enum ctl_file file, uint64_t offset, size_t n,
		char **ret, size_t *ret_n);
/* The stats: the server's, and those of what works beside it. NULL: no
 * memory. */
json_t *ctl_stats(struct ctl *ctl);
/* The stats as lines of the log, "stats: KEY VALUE". */
void ctl_log_stats(struct ctl *ctl);
/* May it be read while we serve? A pipe may not, it would keep us waiting for
 * whoever writes to it. -EINVAL, or as stat(2); with a text. */
int ctl_check_file(const char *path, struct err *err);
/* May these commands wait for a file, or for one that does? */
bool ctl_may_wait(const char *text, size_t n);
/*
 * Run the commands in `text`, `n` bytes, in order until one fails. Those that
 * may wait: by one thread at a time, the one that also changes the options.
 * -EINVAL and other errors of the command, with a text.
 */
int ctl_command(struct ctl *ctl, const char *text, size_t n, struct err *err);

#endif

/* SPDX-License-Identifier: MIT */
/* The options of gpemu-fs: command line, YAML, and -o of mount(8). */
#ifndef GPEMU_FS_MOUNT_OPTIONS_H
#define GPEMU_FS_MOUNT_OPTIONS_H

#include "common/program/cli.h"
#include "common/log.h"
#include "common/units.h"
#include "fs/front/front.h"

struct options {
	struct cli_common common;
	char *storage, *cache_policy, *mount_options, *hit_path;
	char *transport, *layers;
	struct units_capacity cache_size;
	bool cache_metadata;
	char *group, *group_order;
	uint64_t group_buffer;
	uint64_t memory;	 /* 0: the server's default */
	struct conf_list faults; /* of char * */
	double time_scale;	 /* NaN: not given */
	uint64_t spin;
	bool keep_awake;
	char *trace;	       /* or NULL */
	char *log, *log_level; /* log: NULL: by `foreground` */
	bool foreground, replace, selftest;
};

extern const struct cli_program options_program;

/* The defaults. -ENOMEM. */
int options_init(struct options *o);
void options_fini(struct options *o);

/*
 * What the option table cannot know: the words of --hit-path and --log-level,
 * the time scale where none was given (a self-test chooses its own), options
 * of a layer that --layers leaves out.
 * -EINVAL with a text.
 */
int options_settle(struct options *o, struct err *err);
/* The level that --log-level and -v ask for. */
enum log_level options_log_level(const struct options *o);
/* stderr or syslog, or neither: then o->log is the path of a file. */
bool options_log_is(const struct options *o, const char *word);

/* Paths that are used again later, as seen from `dir`. -ENOMEM. */
int options_absolute(struct options *o, const char *dir);

/* Is this one of the mount options (NULL: there are none)? */
bool options_has_word(const char *mount_options, const char *want);

/*
 * The mount options for FUSE, malloc'ed: without the words of fstab(5) that
 * are for mount(8) and systemd. NULL: there are none, or no memory.
 */
char *options_for_fuse(const struct options *o);

#endif

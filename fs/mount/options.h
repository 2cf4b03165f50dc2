/* SPDX-License-Identifier: MIT */
/* The options of gpemu-fs: command line, YAML, and -o of mount(8). */
#ifndef GPEMU_FS_MOUNT_OPTIONS_H
#define GPEMU_FS_MOUNT_OPTIONS_H

#include "common/program/cli.h"
#include "fs/front/front.h"
#include "fs/setup/setup_options.h"

struct options {
	struct cli_common common;
	struct setup_options base;
	char *mount_options, *hit_path, *transport;
	char *writable; /* or NULL: read-only */
	double writable_scale;
	uint64_t capacity; /* 0: that of the profile */
	char *peers;	   /* or NULL, as the next */
	char *peer_key;
	uint64_t node, peer_timeout;
	char *log; /* NULL: `foreground` decides */
	bool foreground, replace, selftest, read_only;
};

struct peer_net;

extern const struct cli_program options_program;

/* The defaults. -ENOMEM. */
int options_init(struct options *o);
void options_fini(struct options *o);

/* Is the log `word`, "stderr" or "syslog"? If neither, o->log is a path. */
bool options_log_is(const struct options *o, const char *word);

/* The nodes of --peers, with the card of --nic; call it with --peers only, and
 * peer_net_fini even after an error. Errors as peer_net_init and those of the
 * profile; with a text. */
int options_peers(const struct options *o, struct peer_net *ret,
		  struct err *err);

/* Make the paths that are used later absolute, relative to `dir`. -ENOMEM. */
int options_absolute(struct options *o, const char *dir);

/*
 * The mount options for FUSE, malloc'ed, without the words of fstab(5) for
 * mount(8) and systemd. NULL: no options, or no memory.
 */
char *options_for_fuse(const struct options *o);

#endif

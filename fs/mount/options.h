/* SPDX-License-Identifier: MIT */
/* The options of gpemu-fs: command line, YAML, and -o of mount(8). */
#ifndef GPEMU_FS_MOUNT_OPTIONS_H
#define GPEMU_FS_MOUNT_OPTIONS_H

#include "common/program/cli.h"
#include "common/log.h"
#include "common/units.h"
#include "fs/cache/tier.h"
#include "fs/front/front.h"

struct options {
	struct cli_common common;
	char *storage, *cache_policy, *mount_options, *hit_path;
	char *transport, *layers;
	/* Either a policy and a size, or tiers. Unused: NULL and NaN, or empty.
	 */
	struct units_capacity cache_size;
	struct conf_list tiers; /* of char *, each one tier */
	char *tier_admit;
	bool cache_metadata;
	char *cache_bytes;
	char *group, *group_order;
	uint64_t group_buffer;
	uint64_t prefetch, prefetch_depth;
	uint64_t memory;	 /* 0: the server's default */
	struct conf_list faults; /* of char * */
	double time_scale;	 /* NaN: not given */
	uint64_t spin;
	bool keep_awake;
	char *trace;	    /* or NULL */
	char *follow_links; /* or NULL: by allow_other */
	char *peers;	    /* or NULL, as the next */
	char *peer_key, *nic;
	uint64_t node, peer_timeout;
	char *log, *log_level; /* log NULL: `foreground` decides */
	bool foreground, replace, selftest, read_only;
};

struct peer_net;

extern const struct cli_program options_program;

/* The defaults. -ENOMEM. */
int options_init(struct options *o);
void options_fini(struct options *o);

/* Append the tiers of --tier; none with a policy and a size. Free with
 * tiers_fini. -EINVAL with a text, -ENOMEM. */
int options_tiers(const struct options *o, struct tiers *ret, struct err *err);
/* Append one argument of --tier. Errors as above. */
int options_tier(const char *text, struct tiers *ret, struct err *err);
/* Replace tier `i`, which must exist. -ENOMEM. */
int options_set_tier(struct options *o, size_t i, const struct tier *t);
enum tier_admit options_admit(const struct options *o);
/* --cache-bytes source */
bool options_bytes_in_source(const struct options *o);
/* Cache nothing. -ENOMEM. */
int options_no_cache(struct options *o);
/* The level that --log-level and -v set. */
enum log_level options_log_level(const struct options *o);
/* Is the log `word`, "stderr" or "syslog"? If neither, o->log is a path. */
bool options_log_is(const struct options *o, const char *word);

/* The nodes of --peers, with the card of --nic; call it with --peers only, and
 * peer_net_fini even after an error. Errors as peer_net_init and those of the
 * profile; with a text. */
int options_peers(const struct options *o, struct peer_net *ret,
		  struct err *err);

/* Make the paths that are used later absolute, relative to `dir`. -ENOMEM. */
int options_absolute(struct options *o, const char *dir);

/* Is `want` one of the mount options (NULL: none)? */
bool options_has_word(const char *mount_options, const char *want);

/*
 * The mount options for FUSE, malloc'ed, without the words of fstab(5) for
 * mount(8) and systemd. NULL: no options, or no memory.
 */
char *options_for_fuse(const struct options *o);

#endif

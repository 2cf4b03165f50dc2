/* SPDX-License-Identifier: MIT */
/* Options that all programs have which serve files through the stack of layers:
 * what they serve is read, cached, delayed and traced as these say. */
#ifndef GPEMU_FS_SETUP_SETUP_OPTIONS_H
#define GPEMU_FS_SETUP_SETUP_OPTIONS_H

#include "common/conf/conf.h"
#include "common/log.h"
#include "common/tick.h"
#include "emu/profile/profile.h"
#include "fs/config/fs_config.h"
#include "fs/server/layer.h"

struct setup_options {
	struct fs_config fs; /* setup_absolute: each item is one tier */
	char *layers;
	char *cache_bytes;
	char *group, *group_order;
	uint64_t group_buffer;
	uint64_t memory;	 /* 0: the server's default */
	struct conf_list faults; /* of char * */
	double time_scale;	 /* NaN: not given */
	uint64_t spin;
	bool keep_awake;
	char *trace;	    /* or NULL */
	char *follow_links; /* or NULL: the program's default */
	char *log_level;
};

/* The rows of these options, but for those of fs, in a table of the struct
 * `type`; the last is a text for the help. */
#define SETUP_FIELDS(type, member, links_default)                              \
	{ "cache_bytes",                                                       \
	  CONF_STRING,                                                         \
	  offsetof(type, member.cache_bytes),                                  \
	  .check = setup_check_bytes,                                          \
	  .arg = "memory|source",                                              \
	  .help = "keep the bytes of cached files in memory, or read them "    \
		  "from SOURCE again, so that a cache may be larger than "     \
		  "memory (default: memory)" },                                \
		{ "group",                                                     \
		  CONF_STRING,                                                 \
		  offsetof(type, member.group),                                \
		  .short_opt = 'g',                                            \
		  .arg = "N|auto",                                             \
		  .help = "read N files with every read of the device; auto "  \
			  "(or 0): the groups of the pack (default: 1)" },     \
		{ "group_order", CONF_STRING,                                  \
		  offsetof(type, member.group_order), .arg = "ORDER",          \
		  .help = "which files form a group: sequential, random, "     \
			  "diffclass or a FILE (default: sequential)" },       \
		{ "group_buffer", CONF_SIZE,                                   \
		  offsetof(type, member.group_buffer), .arg = "SIZE",          \
		  .help = "group buffer: memory for files that were fetched "  \
			  "with their group and not read yet (default: 64M, "  \
			  "or two groups)" },                                  \
		{ "memory", CONF_SIZE, offsetof(type, member.memory),          \
		  .arg = "SIZE",                                               \
		  .help = "memory for file contents outside the cache: in "    \
			  "flight, being read, group buffer (default: the "    \
			  "lesser of 256M and an eighth of the memory)" },     \
		{ "follow_links", CONF_STRING,                                 \
		  offsetof(type, member.follow_links),                         \
		  .arg = "none|source|DIR[:DIR]",                              \
		  .help = "follow symbolic links to targets below SOURCE or "  \
			  "a DIR (default: " links_default ")" },              \
		{ "layers",                                                    \
		  CONF_STRING,                                                 \
		  offsetof(type, member.layers),                               \
		  .check = setup_check_layers,                                 \
		  .arg = "LAYER[,LAYER]",                                      \
		  .help = "the stack of layers that a read passes, from the "  \
			  "top (default: " LAYERS_DEFAULT "; --list layer)" }, \
		{ "fault",                                                     \
		  CONF_LIST,                                                   \
		  offsetof(type, member.faults),                               \
		  .item = CONF_STRING,                                         \
		  .item_size = sizeof(char *),                                 \
		  .lone = true,                                                \
		  .check = setup_check_fault,                                  \
		  .arg = "RULE[;RULE]",                                        \
		  .help = "make operations fail or wait, such as "             \
			  "op=read,every=100,errno=EIO; may be given several " \
			  "times" },                                           \
		{ "time_scale",                                                \
		  CONF_DOUBLE,                                                 \
		  offsetof(type, member.time_scale),                           \
		  .arg = "X",                                                  \
		  .min = 1e-6,                                                 \
		  .max = 1e6,                                                  \
		  .help = "multiply every emulated duration by X (default: "   \
			  "1)" },                                              \
		{ "spin",                                                      \
		  CONF_DURATION,                                               \
		  offsetof(type, member.spin),                                 \
		  .arg = "DURATION",                                           \
		  .max = NS_PER_MS,                                            \
		  .help = "spin this long before a deadline instead of "       \
			  "sleeping (default: 120us)" },                       \
		{ "keep_awake", CONF_BOOL, offsetof(type, member.keep_awake),  \
		  .arg = "on|off",                                             \
		  .help = "keep idle processors awake near a deadline, where " \
			  "permitted (default: on)" },                         \
		{ "trace", CONF_STRING, offsetof(type, member.trace),          \
		  .arg = "FILE",                                               \
		  .help = "write a line for each operation, for "              \
			  "gpemu-cachesim" },                                  \
	{                                                                      \
		"log_level", CONF_STRING, offsetof(type, member.log_level),    \
			.arg = "LEVEL",                                        \
			.help = "error, warn, info or debug (default: info; "  \
				"debug with -v)"                               \
	}

/* Checks of the rows. */
int setup_check_bytes(const void *object, struct err *err);
int setup_check_layers(const void *object, struct err *err);
int setup_check_fault(const void *object, struct err *err);

/* The kinds of --list that go with the options. */
#define SETUP_KINDS                                      \
	{ "layer", .table = layer_table },               \
		{ "policy", .table = policy_table },     \
		{ "source", .table = source_table },     \
	{                                                \
		"storage", .print = profile_names_print, \
			   .which = PROFILE_STORAGE      \
	}

/* The defaults, with those of conf_free to end them. -ENOMEM. */
int setup_options_init(struct setup_options *o);
/* What does not go together, and the cache if none was given: `policy` with a
 * size of its own. -EINVAL with a text, -ENOMEM. */
int setup_settle(struct setup_options *o, const char *policy, struct err *err);
/* Does the stack have the layer that `option` needs? -EINVAL with a text. */
int setup_check_layer(const struct setup_options *o, const char *option,
		      const char *layer, struct err *err);
/* Is `want` one of the words, with commas between them (NULL: none)? */
bool setup_has_word(const char *words, const char *want);

/* The level that --log-level and -v set. */
enum log_level setup_log_level(const struct setup_options *o, bool verbose);

/* Make a path absolute, relative to `dir`; NULL stays. -ENOMEM. */
int setup_absolute_path(char **path, const char *dir);
/* The same for the paths that are used later. */
int setup_absolute(struct setup_options *o, const char *dir);

#endif

/* SPDX-License-Identifier: MIT */
/*
 * A part in a file of its own: a shared object with one plug-in, which an
 * option names by its path.
 *
 *	#include "common/conf/part.h"
 *	#include "fs/cache/policy.h"
 *
 *	const struct policy_ops policy_mine = { ... };
 *	PLUGIN_PART(policy, mine)
 *
 *	cc $(gpemu part flags) -o mine.so mine.c
 *	gpemu-cachesim --dataset imagenet --policies lru,./mine.so
 *
 * Functions that the part calls, and the table of its kind, are those of the
 * program that opens it.
 */
#ifndef GPEMU_COMMON_CONF_PART_H
#define GPEMU_COMMON_CONF_PART_H

#include <stdint.h>

#include "common/part_headers.h"
#include "common/plugin.h"

struct plugin_part {
	/* A hash of the headers that parts are built with; the first member in
	 * every version. */
	uint64_t headers;
	const struct plugin *const *table; /* of its kind */
	const struct plugin *plugin;
};

/* What a shared object exports. */
#define PLUGIN_PART(kind, word)                                             \
	extern const struct plugin_part gpemu_part;                         \
	const struct plugin_part gpemu_part = { PART_HEADERS, kind##_table, \
						&kind##_##word.plugin };

/*
 * May options that this thread reads name files from now on? No, until this
 * says so: a file runs code, so that only the command line and configuration of
 * the user may name it, and no peer. What was opened stays known, by its path
 * and by its name.
 */
void part_files_allow(bool allow);

/* May they name files that are not opened, since the options are compared with
 * others and used by another process? */
void part_files_keep(bool keep);
bool part_is_kept(const char *name);

/* How a configuration names this plug-in: by the path of its file, or NULL: by
 * its name. */
const char *part_path(const struct plugin *p);

#endif

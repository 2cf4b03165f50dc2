/* SPDX-License-Identifier: MIT */
/*
 * Common part of all plug-in kinds. A plug-in is one const vtable whose first
 * member is `struct plugin plugin`; the build collects the vtables of a kind
 * into a NULL-terminated table from one word each in a meson list.
 */
#ifndef GPEMU_COMMON_PLUGIN_H
#define GPEMU_COMMON_PLUGIN_H

#include <stdbool.h>
#include <stddef.h>

#include "common/err.h"

struct conf_field;

struct plugin {
	const char *name;    /* the word in the meson list */
	const char *summary; /* one line, for --list */
	size_t state_size;   /* the host allocates this many zeroed bytes */
	/*
	 * Its own options, as common/conf/conf.h has them: scalar fields of a
	 * struct of `options_size` bytes, each with its help. `defaults` is
	 * such a struct. NULL: it has none. The user sets them behind the name
	 * (common/conf/plugin_choice.h), and a hook gets them as such a
	 * struct, or NULL for the defaults.
	 */
	const struct conf_field *options;
	const void *defaults;
	size_t options_size;
};

/* The last three members: the options of a plug-in are `fields` of the struct
 * that `object`, its defaults, is. */
#define PLUGIN_OPTIONS(fields, object)              \
	.options = (fields), .defaults = &(object), \
	.options_size = sizeof(object)

/* The entry called `name`, ignoring '-' and '_', or the part in the file `name`
 * (common/conf/part.h); NULL with a text that lists the known ones. */
const struct plugin *plugin_find(const struct plugin *const table[],
				 const char *kind, const char *name,
				 struct err *err);
/* Where plugin_find looks first, if not NULL: NULL with a text ends the search.
 * Set by common/conf/part.c. */
extern const struct plugin *(*plugin_elsewhere)(
	const struct plugin *const table[], const char *name, struct err *err);
/* Is `text`, NAME or NAME:OPTIONS, a choice of the plug-in called `name`? */
bool plugin_is(const char *text, const char *name);
/* Where in "ANYTHING:NAME:KEY=VALUE,..." NAME begins: the last piece without
 * '='. 0: `text` has nothing before it. */
size_t plugin_last(const char *text);

#endif

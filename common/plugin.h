/* SPDX-License-Identifier: MIT */
/*
 * What all plug-in kinds share. A plug-in is one const vtable whose first
 * member is `struct plugin plugin`; the build collects the vtables of a kind
 * into a NULL-terminated table from one word each in a meson list.
 */
#ifndef GPEMU_COMMON_PLUGIN_H
#define GPEMU_COMMON_PLUGIN_H

#include <stddef.h>

#include "common/err.h"

struct plugin {
	const char *name;    /* the word in the meson list */
	const char *summary; /* one line, for --list */
	size_t state_size;   /* the host allocates this many zeroed bytes */
};

/* The entry called `name`, but for '-' and '_'; NULL and a text that lists the
 * known ones. */
const struct plugin *plugin_find(const struct plugin *const table[],
				 const char *kind, const char *name,
				 struct err *err);
/* For `check` of a conf_field: is the text at `object`, a char **, such a name?
 * -EINVAL with that text. */
int plugin_check(const struct plugin *const table[], const char *kind,
		 const void *object, struct err *err);

#endif

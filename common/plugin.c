/* SPDX-License-Identifier: MIT */
#include "common/plugin.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

const struct plugin *plugin_find(const struct plugin *const table[],
				 const char *kind, const char *name,
				 struct err *err)
{
	char known[256] = "";

	for (size_t i = 0; table[i]; i++) {
		size_t n = strlen(known);

		if (!strcmp(table[i]->name, name))
			return table[i];
		snprintf(known + n, sizeof(known) - n, "%s%s", n ? " " : "",
			 table[i]->name);
	}
	err_set(err, -EINVAL, "unknown %s '%s' (known: %s)", kind, name, known);
	return NULL;
}

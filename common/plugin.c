/* SPDX-License-Identifier: MIT */
#include "common/plugin.h"

#include <errno.h>
#include <string.h>

const struct plugin *plugin_find(const struct plugin *const table[],
				 const char *kind, const char *name,
				 struct err *err)
{
	char known[ERR_LIST] = "";

	for (size_t i = 0; table[i]; i++) {
		if (!strcmp(table[i]->name, name))
			return table[i];
		err_list(known, table[i]->name);
	}
	err_set(err, -EINVAL, "unknown %s '%s' (known: %s)", kind, name, known);
	return NULL;
}

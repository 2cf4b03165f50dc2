/* SPDX-License-Identifier: MIT */
#include "common/plugin.h"

#include <errno.h>
#include <stdbool.h>

/* Equal but for '-', which stands for '_'. */
static bool same_name(const char *name, const char *given)
{
	while (*name && (*name == *given || (*name == '_' && *given == '-')))
		name++, given++;
	return *name == *given;
}

const struct plugin *plugin_find(const struct plugin *const table[],
				 const char *kind, const char *name,
				 struct err *err)
{
	char known[ERR_LIST] = "";

	for (size_t i = 0; table[i]; i++) {
		if (same_name(table[i]->name, name))
			return table[i];
		err_list(known, table[i]->name);
	}
	err_set(err, -EINVAL, "unknown %s '%s' (known: %s)", kind, name, known);
	return NULL;
}

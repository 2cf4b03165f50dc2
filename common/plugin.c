/* SPDX-License-Identifier: MIT */
#include "common/plugin.h"

#include <errno.h>
#include <string.h>

#include "common/word.h"

static const char *skip_dashes(const char *s)
{
	return s + strspn(s, "-_");
}

/* Compares names without dashes: s3-fifo equals s3fifo. */
static bool same_name(const char *name, const char *given)
{
	name = skip_dashes(name);
	given = skip_dashes(given);
	while (*name && *name == *given) {
		name = skip_dashes(name + 1);
		given = skip_dashes(given + 1);
	}
	return *name == *given || (!*name && *given == ':');
}

bool plugin_is(const char *text, const char *name)
{
	return same_name(name, text);
}

size_t plugin_last(const char *text)
{
	size_t end = strlen(text), begin;

	for (;; end = begin - 1) {
		const char *colon = memrchr(text, ':', end);

		begin = colon ? (size_t)(colon - text) + 1 : 0;
		if (!begin || !memchr(text + begin, '=', end - begin))
			return begin;
	}
}

const struct plugin *(*plugin_elsewhere)(const struct plugin *const table[],
					 const char *name, struct err *err);

const struct plugin *plugin_find(const struct plugin *const table[],
				 const char *kind, const char *name,
				 struct err *err)
{
	struct word_list words = WORD_LIST(name, strcspn(name, ":"));
	struct err why = { 0 };
	const struct plugin *p =
		plugin_elsewhere ? plugin_elsewhere(table, name, &why) : NULL;

	if (p)
		return p;
	if (why.text[0]) {
		err_set(err, -EINVAL, "%s", why.text);
		return NULL;
	}
	for (size_t i = 0; table[i]; i++) {
		if (same_name(table[i]->name, name))
			return table[i];
		word_list_add(&words, table[i]->name);
	}
	word_unknown(&words, kind, err);
	return NULL;
}

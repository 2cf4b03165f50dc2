/* SPDX-License-Identifier: MIT */
#include "common/conf/part.h"

#include <ctype.h>
#include <dlfcn.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/util.h"

/* The files that were opened. They stay so: their vtables are in use. */
struct opened {
	struct opened *next;
	const struct plugin_part *part;
	char path[];
};

static struct opened *opened;
/* In this thread: meanwhile another one may read the text of a client. */
static _Thread_local bool allowed, kept;

/* As options, lists and records have it. */
static bool is_name(const char *s)
{
	size_t n = 0;

	while (s &&
	       (isalnum((unsigned char)s[n]) || s[n] == '-' || s[n] == '_'))
		n++;
	return s && isalnum((unsigned char)*s) && !s[n];
}

static int check_part(const struct plugin_part *p,
		      const struct plugin *const table[], const char *path,
		      struct err *err)
{
	if (!p)
		return err_set(err, -EINVAL,
			       "%s: no part of gpemu: it lacks PLUGIN_PART",
			       path);
	if (p->headers != PART_HEADERS)
		return err_set(err, -EINVAL,
			       "%s: built with the headers of another version "
			       "of gpemu: build it again",
			       path);
	if (!p->plugin || !is_name(p->plugin->name) || !p->plugin->summary)
		return err_set(
			err, -EINVAL,
			"%s: it has no name of letters, digits, - and _, "
			"or no summary",
			path);
	if (p->plugin->options &&
	    (!p->plugin->defaults || !p->plugin->options_size))
		return err_set(err, -EINVAL, "%s: its options have no defaults",
			       path);
	if (p->table != table)
		return err_set(err, -EINVAL, "%s: a part of another kind",
			       path);
	for (size_t i = 0; table[i]; i++)
		if (plugin_is(p->plugin->name, table[i]->name))
			return err_set(err, -EINVAL,
				       "%s: gpemu has a part called '%s'", path,
				       table[i]->name);
	return 0;
}

static int open_file(const struct plugin *const table[], const char *path,
		     struct opened **ret, struct err *err)
{
	struct opened *o = calloc(1, sizeof(*o) + strlen(path) + 1);
	void *library = o ? dlopen(path, RTLD_NOW | RTLD_LOCAL) : NULL;
	int r;

	if (!o)
		return err_set(err, -ENOMEM, "out of memory");
	if (library) {
		o->part = dlsym(library, "gpemu_part");
		r = check_part(o->part, table, path, err);
	} else {
		r = err_set(err, -EINVAL, "%s", dlerror());
	}
	if (r < 0) {
		if (library)
			dlclose(library);
		free(o);
		return r;
	}
	strcpy(o->path, path);
	o->next = opened;
	*ret = opened = o;
	return 0;
}

/* The part that was opened with this path or has this name; else, if files are
 * allowed, the one in the file. NULL without a text: `name` is no path. */
static const struct plugin *find_plugin(const struct plugin *const table[],
					const char *name, struct err *err)
{
	struct opened *o = opened;
	int r = 0;

	while (o && (o->part->table != table ||
		     (strcmp(o->path, name) != 0 &&
		      !plugin_is(name, o->part->plugin->name))))
		o = o->next;
	if (!o && strchr(name, '/'))
		r = allowed ? open_file(table, name, &o, err)
			    : err_set(err, -EPERM, "%s: not a name", name);
	return o && r == 0 ? o->part->plugin : NULL;
}

void part_files_keep(bool keep)
{
	kept = keep;
}

bool part_is_kept(const char *name)
{
	return kept && strchr(name, '/');
}

const char *part_path(const struct plugin *p)
{
	for (const struct opened *o = opened; o; o = o->next)
		if (o->part->plugin == p)
			return o->path;
	return NULL;
}

void part_files_allow(bool allow)
{
	allowed = allow;
	plugin_elsewhere = find_plugin;
}

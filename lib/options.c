/* SPDX-License-Identifier: MIT */
#include "lib/options.h"

#include <errno.h>
#include <string.h>

#include "common/util.h"
#include "loader/options/train_table.h"

/* Does "key=value" set `key`, in which '_' may be '-'? */
static bool sets(const char *option, const char *key)
{
	while (*key && (*key == *option || (*key == '_' && *option == '-')))
		key++, option++;
	return !*key && *option == '=';
}

bool options_have(const char *const options[], const char *key)
{
	for (; options && *options; options++)
		if (sets(*options, key))
			return true;
	return false;
}

static const struct conf_field *find_train_field(const char *option,
						 const char *const only[])
{
	const struct conf_field *f = train_fields;

	while (f->key && !sets(option, f->key))
		f++;
	if (!f->key || !only)
		return f->key ? f : NULL;
	while (*only && strcmp(*only, f->key))
		only++;
	return *only ? f : NULL;
}

/* Keys that only programs use: a library does not start processes, and its user
 * takes real batches. */
static bool for_programs(const struct conf_field *f)
{
	static const char *const keys[] = {
		"progress",    "mpi",	    "nodes",  "simulate",
		"fs",	       "fs_config", "caches", "shared_storage",
		"approximate", "mtbf",	    "restart"
	};

	for (size_t i = 0; i < ARRAY_SIZE(keys); i++)
		if (!strcmp(f->key, keys[i]))
			return true;
	return f->cli_only && strcmp(f->key, "config");
}

static int set(struct train_options *o, const char *option,
	       const struct conf_field *f, struct err *err)
{
	int r = conf_set(f, o, strchr(option, '=') + 1, err);

	if (r < 0)
		err_prefix(err, "%s", f->key);
	return r;
}

int options_set(struct train_options *o, const char *const options[],
		const char *const only[], struct err *err)
{
	const char *const none[] = { NULL };
	const char *const *at;
	int r = 0;

	if (!options)
		options = none;
	for (at = options; r == 0 && *at; at++) {
		const struct conf_field *f = find_train_field(*at, only);

		if (!f || for_programs(f))
			return err_set(err, -EINVAL, "%s: %s", *at,
				       !strchr(*at, '=')
					       ? "not of the form key=value"
					       : "unknown option");
		if (!strcmp(f->key, "config"))
			r = set(o, *at, f, err);
	}
	if (r == 0 && o->common.config)
		r = conf_load(o->common.config, train_fields, o, err);
	for (at = options; r == 0 && *at; at++) {
		const struct conf_field *f = find_train_field(*at, only);

		if (strcmp(f->key, "config"))
			r = set(o, *at, f, err);
	}
	return r;
}

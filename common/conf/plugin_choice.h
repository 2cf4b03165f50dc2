/* SPDX-License-Identifier: MIT */
/*
 * A plug-in as the user names it, with values for its own options:
 *
 *	NAME				slru
 *	NAME:KEY=VALUE,KEY=VALUE	s3fifo:small=0.2,uses=7
 *
 * The options are a table of fields in the plug-in (common/plugin.h), so that
 * a part with a parameter is still one file and one word. Dashes in names and
 * keys count for underscores. A piece without '=' goes on with the value
 * before it: "tar:payload=jpg,png" has one option.
 */
#ifndef GPEMU_COMMON_CONF_PLUGIN_CHOICE_H
#define GPEMU_COMMON_CONF_PLUGIN_CHOICE_H

#include <jansson.h>
#include <stdio.h>

#include "common/conf/conf.h"
#include "common/plugin.h"

struct plugin_choice {
	const struct plugin *plugin;
	void *options; /* owned, as plugin->options says; NULL: it has none */
};

/*
 * Unknown name or key, a value out of range, a key given twice: -EINVAL and a
 * text that names the plug-in, the option, and what there is. Free with
 * plugin_choice_fini, failed or not.
 */
int plugin_choose(const struct plugin *const table[], const char *kind,
		  const char *text, struct plugin_choice *ret, struct err *err);
void plugin_choice_fini(struct plugin_choice *c);
/* Just "KEY=VALUE,KEY=VALUE", into an object that the fields describe, those of
 * them that are scalars. The same errors, which name the key. */
int plugin_options_set(const struct conf_field *fields, void *options,
		       const char *text, struct err *err);
/* For `check` of a conf_field: is the text at `object`, a char **, a choice?
 * -EINVAL with that text. */
int plugin_choice_check(const struct plugin *const table[], const char *kind,
			const void *object, struct err *err);

/*
 * Where in a list "NAME:KEY=VALUE,KEY=VALUE,NAME" the first choice ends. A
 * piece with '=' and no ':' before it is an option of the name before.
 */
size_t plugin_choice_length(const char *list);

/*
 * Call `fn` with each choice of a list "NAME:KEY=VALUE,NAME", or with each of
 * the table for "all". Stops at the first that does not return 0.
 */
int plugin_choice_each(const struct plugin *const table[], const char *list,
		       int (*fn)(void *ctx, const char *choice,
				 struct err *err),
		       void *ctx, struct err *err);

/*
 * The shortest text that is the same choice: options that have their default
 * are left out. `options` of `p`, NULL: the defaults. Malloc'ed; NULL: no
 * memory.
 */
char *plugin_choice_text(const struct plugin *p, const void *options);
/* For records: {"name": NAME, "options": {...}} with the value of each. */
json_t *plugin_choice_json(const struct plugin *p, const void *options);
/* For --list: a line on each plug-in, with its options and their defaults. */
void plugin_table_print(const struct plugin *const table[], FILE *f);
/* A line on each option of a plug-in. */
void plugin_options_print(const struct plugin *p, FILE *f);

#endif

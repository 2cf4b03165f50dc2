/* SPDX-License-Identifier: MIT */
#include "fs/setup/setup_options.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/conf/part.h"
#include "common/util.h"
#include "common/word.h"
#include "emu/profile/profile.h"
#include "fs/layer/fault.h"
#include "fs/server/stack.h"

/* --- checks ------------------------------------------------------------- */

int setup_check_fault(const void *object, struct err *err)
{
	const char *text = *(char *const *)object;
	struct fault_rule *rules;
	size_t n;
	int r = fault_rules_parse(text, strlen(text), &rules, &n, err);

	if (r == 0)
		fault_rules_free(rules, n);
	return r;
}

int setup_check_bytes(const void *object, struct err *err)
{
	static const char *const words[] = { "memory", "source" };
	int i = WORD_FIND(words, "location of cached bytes",
			  *(char *const *)object, err);

	return i < 0 ? i : 0;
}

int setup_check_layers(const void *object, struct err *err)
{
	const char *words = *(char *const *)object;

	return part_is_kept(words) ? 0 : stack_check_layers(words, err);
}

/* --- options ------------------------------------------------------------ */

int setup_options_init(struct setup_options *o)
{
	*o = (struct setup_options){ .time_scale = NAN,
				     .spin = TICK_DEFAULT_SPIN_NS,
				     .keep_awake = true,
				     .cache_bytes = strdup("memory"),
				     .layers = strdup(LAYERS_DEFAULT),
				     .group = strdup("1"),
				     .group_order = strdup("sequential"),
				     .log_level = strdup("info") };
	if (fs_config_init(&o->fs) < 0)
		return -ENOMEM;
	return o->cache_bytes && o->layers && o->group && o->group_order &&
			       o->log_level
		       ? 0
		       : -ENOMEM;
}

bool setup_has_word(const char *words, const char *want)
{
	_cleanup_free_ char *copy = words ? strdup(words) : NULL;
	char *save, *word;

	for (word = copy ? strtok_r(copy, ",", &save) : NULL; word;
	     word = strtok_r(NULL, ",", &save))
		if (!strcmp(word, want))
			return true;
	return false;
}

int setup_check_layer(const struct setup_options *o, const char *option,
		      const char *word, struct err *err)
{
	return setup_has_word(o->layers, word)
		       ? 0
		       : err_set(err, -EINVAL,
				 "%s needs the layer '%s', which --layers "
				 "leaves out",
				 option, word);
}

int setup_settle(struct setup_options *o, const char *policy, struct err *err)
{
	enum log_level level;
	int r = log_level_parse(o->log_level, &level, err);

	if (r == 0)
		r = fs_config_settle(&o->fs, policy, err);
	if (r == 0 && o->trace)
		r = setup_check_layer(o, "--trace", "trace", err);
	if (r == 0 && o->fs.tiers.n)
		r = setup_check_layer(o, "--tier", "cache", err);
	if (r == 0 && o->faults.n)
		r = setup_check_layer(o, "--fault", "fault", err);
	if (r == 0 && strcmp(o->group, "1"))
		r = setup_check_layer(o, "--group", "group", err);
	return r;
}

enum log_level setup_log_level(const struct setup_options *o, bool verbose)
{
	enum log_level level = LOG_LEVEL_INFO;

	log_level_parse(o->log_level, &level, NULL);
	return verbose ? LOG_LEVEL_DEBUG : level;
}

/* --- paths -------------------------------------------------------------- */

int setup_absolute_path(char **path, const char *dir)
{
	char *full;

	if (!*path || **path == '/')
		return 0;
	if (asprintf(&full, "%s/%s", dir, *path) < 0)
		return -ENOMEM;
	free(*path);
	*path = full;
	return 0;
}

/* One tier in each item; makes its paths absolute, relative to `dir`. */
static int absolute_tiers(struct setup_options *o, const char *dir)
{
	struct tiers t = { 0 };
	int r = fs_config_tiers(&o->fs, &t, NULL);
	char **items = r == 0 && t.n ? reallocarray(o->fs.tiers.items, t.n,
						    sizeof(*items))
				     : NULL;

	if (r == 0 && t.n && !items)
		r = -ENOMEM;
	for (size_t i = o->fs.tiers.n; items && i < t.n; i++)
		items[i] = NULL;
	if (items)
		o->fs.tiers = (struct conf_list){ items, t.n };
	for (size_t i = 0; r == 0 && i < t.n; i++) {
		if (t.v[i].storage && profile_is_path(t.v[i].storage))
			r = setup_absolute_path(&t.v[i].storage, dir);
		if (r == 0)
			r = fs_config_set_tier(&o->fs, i, &t.v[i]);
	}
	tiers_fini(&t);
	return r;
}

int setup_absolute(struct setup_options *o, const char *dir)
{
	int r = setup_absolute_path(&o->trace, dir);

	if (r == 0 && profile_is_path(o->fs.storage))
		r = setup_absolute_path(&o->fs.storage, dir);
	if (r == 0 && o->fs.nic && profile_is_path(o->fs.nic))
		r = setup_absolute_path(&o->fs.nic, dir);
	return r == 0 ? absolute_tiers(o, dir) : r;
}

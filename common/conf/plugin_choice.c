/* SPDX-License-Identifier: MIT */
#include "common/conf/plugin_choice.h"

#include <errno.h>
#include <string.h>

#include "common/conf/part.h"
#include "common/util.h"
#include "common/word.h"

static bool same_key(const char *key, const char *given, size_t n)
{
	size_t i = 0;

	while (i < n &&
	       (key[i] == given[i] || (key[i] == '_' && given[i] == '-')))
		i++;
	return i == n && !key[n];
}

static const struct conf_field *find_option(const struct conf_field *fields,
					    const char *key, size_t n,
					    struct err *err)
{
	struct word_list words = WORD_LIST(key, n);

	for (const struct conf_field *f = fields; f && f->key; f++) {
		if (f->type > CONF_CAPACITY)
			continue;
		if (same_key(f->key, key, n))
			return f;
		word_list_add(&words, f->key);
	}
	if (fields)
		word_unknown(&words, "option", err);
	else
		err_set(err, -EINVAL, "unknown option '%.*s' (it has none)",
			(int)n, key);
	return NULL;
}

/* A piece and those behind it that go on with its value. */
static size_t option_length(const char *s)
{
	size_t n = strcspn(s, ",");

	while (s[n]) {
		size_t more = strcspn(s + n + 1, ",=");

		if (s[n + 1 + more] == '=')
			break;
		n += 1 + more;
	}
	return n;
}

/* `given`: the keys so far. */
static int set_option(const struct conf_field *fields, void *options,
		      char *option, char *given, struct err *err)
{
	size_t n = strcspn(option, "=");
	const struct conf_field *f = find_option(fields, option, n, err);
	int r;

	if (!f)
		return -EINVAL;
	if (!option[n])
		return err_set(err, -EINVAL, "%s has no value", f->key);
	if (given[f - fields]++)
		return err_set(err, -EINVAL, "%s is given twice", f->key);
	r = conf_set(f, options, option + n + 1, err);
	if (r < 0)
		err_prefix(err, "%s", f->key);
	return r;
}

/* A copy of the defaults, which owns its texts. */
static int copy_defaults(struct plugin_choice *c)
{
	const struct plugin *p = c->plugin;
	int r = 0;

	if (!p->options)
		return 0;
	c->options = malloc(p->options_size);
	if (!c->options)
		return -ENOMEM;
	memcpy(c->options, p->defaults, p->options_size);
	for (const struct conf_field *f = p->options; f->key; f++) {
		char **text = (char **)((char *)c->options + f->offset);

		if (f->type != CONF_STRING || !*text)
			continue;
		*text = strdup(*text);
		if (!*text)
			r = -ENOMEM; /* the others are copied all the same */
	}
	return r;
}

int plugin_options_set(const struct conf_field *fields, void *options,
		       const char *text, struct err *err)
{
	_cleanup_free_ char *given = NULL;
	size_t n = 0;
	int r = 0;

	for (const struct conf_field *f = fields; f && f->key; f++)
		n++;
	given = calloc(1, n + 1);
	if (!given)
		return err_set(err, -ENOMEM, "out of memory");
	while (r == 0 && *text) {
		size_t length = option_length(text);
		_cleanup_free_ char *option = strndup(text, length);

		r = option ? set_option(fields, options, option, given, err)
			   : -ENOMEM;
		text += length + (text[length] == ',');
	}
	return r;
}

int plugin_choose(const struct plugin *const table[], const char *kind,
		  const char *text, struct plugin_choice *ret, struct err *err)
{
	size_t n = strcspn(text, ":");
	_cleanup_free_ char *name = strndup(text, n);
	int r;

	*ret = (struct plugin_choice){ 0 };
	if (!name)
		return err_set(err, -ENOMEM, "out of memory");
	ret->plugin = plugin_find(table, kind, name, err);
	if (!ret->plugin)
		return -EINVAL;
	r = copy_defaults(ret);
	if (r < 0)
		return err_set(err, r, "out of memory");
	r = plugin_options_set(ret->plugin->options, ret->options,
			       text + n + (text[n] == ':'), err);
	if (r < 0)
		err_prefix(err, "%s %s", kind, ret->plugin->name);
	return r;
}

void plugin_choice_fini(struct plugin_choice *c)
{
	if (c->options)
		conf_free(c->plugin->options, c->options);
	free(c->options);
	*c = (struct plugin_choice){ 0 };
}

int plugin_choice_check(const struct plugin *const table[], const char *kind,
			const void *object, struct err *err)
{
	const char *text = *(char *const *)object;
	struct plugin_choice c;
	int r;

	if (part_is_kept(text))
		return 0;
	r = plugin_choose(table, kind, text, &c, err);
	plugin_choice_fini(&c);
	return r;
}

size_t plugin_choice_length(const char *list)
{
	size_t n = strcspn(list, ",");

	while (list[n]) {
		size_t more = strcspn(list + n + 1, ",:=");

		if (list[n + 1 + more] != '=')
			break;
		n += 1 + strcspn(list + n + 1, ",");
	}
	return n;
}

int plugin_choice_each(const struct plugin *const table[], const char *list,
		       int (*fn)(void *ctx, const char *choice,
				 struct err *err),
		       void *ctx, struct err *err)
{
	int r = 0;

	if (!strcmp(list, "all")) {
		for (size_t i = 0; r == 0 && table[i]; i++)
			r = fn(ctx, table[i]->name, err);
		return r;
	}
	for (;;) {
		size_t n = plugin_choice_length(list);
		_cleanup_free_ char *one = strndup(list, n);

		r = one ? fn(ctx, one, err) : -ENOMEM;
		if (r || !list[n])
			return r;
		list += n + 1;
	}
}

/* --- the way out ---------------------------------------------------------- */

static json_t *options_json(const struct plugin *p, const void *options)
{
	if (!p->options)
		return json_object();
	return conf_json(p->options, options ? options : p->defaults);
}

/* As it reads back. */
static void print_value(const json_t *v, FILE *f)
{
	if (json_is_string(v))
		fputs(json_string_value(v), f);
	else if (json_is_boolean(v))
		fputs(json_is_true(v) ? "on" : "off", f);
	else if (json_is_integer(v))
		fprintf(f, "%" JSON_INTEGER_FORMAT, json_integer_value(v));
	else
		fprintf(f, "%.15g", json_real_value(v));
}

char *plugin_choice_text(const struct plugin *p, const void *options)
{
	json_auto_t *given = options_json(p, options);
	json_auto_t *usual = options_json(p, NULL);
	char *text = NULL;
	size_t n = 0;
	FILE *f = open_memstream(&text, &n);
	const char *key;
	json_t *v;
	char before = ':';

	if (!f)
		return NULL;
	fputs(p->name, f);
	json_object_foreach (given, key, v) {
		if (json_equal(v, json_object_get(usual, key)))
			continue;
		fprintf(f, "%c%s=", before, key);
		print_value(v, f);
		before = ',';
	}
	if (fclose(f) == 0)
		return text;
	free(text);
	return NULL;
}

json_t *plugin_choice_json(const struct plugin *p, const void *options)
{
	return json_pack("{s:s, s:o}", "name", p->name, "options",
			 options_json(p, options));
}

void plugin_table_print(const struct plugin *const table[], FILE *f)
{
	for (size_t i = 0; table[i]; i++) {
		json_auto_t *usual = options_json(table[i], NULL);
		const char *key, *before = " [";
		json_t *v;

		fprintf(f, "%-12s %s", table[i]->name, table[i]->summary);
		json_object_foreach (usual, key, v) {
			fprintf(f, "%s%s=", before, key);
			print_value(v, f);
			before = ",";
		}
		fputs(*before == ',' ? "]\n" : "\n", f);
	}
}

void plugin_options_print(const struct plugin *p, FILE *f)
{
	for (const struct conf_field *o = p->options; o && o->key; o++) {
		int n = fprintf(f, "%s=%s", o->key, o->arg ? o->arg : "VALUE");

		fprintf(f, "%*s%s\n", n < 20 ? 20 - n : 1, "", o->help);
	}
}

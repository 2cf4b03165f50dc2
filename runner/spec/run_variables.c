/* SPDX-License-Identifier: MIT */
#include "runner/spec/run_variables.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "common/util.h"

size_t variables_next(const char *s, const char **ret)
{
	for (; (s = strchr(s, '{')); s++) {
		size_t n = strspn(s + 1, "abcdefghijklmnopqrstuvwxyz"
					 "0123456789_");

		if (n && s[n + 1] == '}') {
			*ret = s + 1;
			return n;
		}
	}
	return 0;
}

/* What gpemu-run itself gives a name; NULL: nothing. */
static const char *own_value(const struct variables *v, const char *name,
			     size_t n)
{
	const struct {
		const char *name, *value;
	} own[] = { { "mount", v->mnt },
		    { "record", v->record },
		    { "bin", v->bin },
		    { "share", v->share },
		    { "seed", v->seed },
		    { "time_scale", v->scale },
		    { "gpud", v->socket },
		    { "prepd", v->prepd },
		    { "prepd_key", v->prepd_key } };

	for (size_t i = 0; i < ARRAY_SIZE(own); i++)
		if (util_is(name, n, own[i].name))
			return own[i].value;
	return NULL;
}

/* Values that differ between runs stand for themselves. */
static const struct variables fixed = { .mnt = "{mount}",
					.record = "{record}",
					.bin = "{bin}",
					.share = "{share}",
					.socket = "{gpud}",
					.prepd = "{prepd}",
					.prepd_key = "{prepd_key}" };

bool variables_is_own(const char *name, size_t n)
{
	return own_value(&fixed, name, n) != NULL;
}

/* The value at a point; NULL: none. */
static const char *setting_at(const struct workload *w, size_t point,
			      const char *name, size_t n)
{
	_cleanup_free_ char *text = strndup(name, n);

	return text ? workload_setting(w, point, text) : NULL;
}

size_t variables_next_setting(const struct workload *w, size_t point,
			      const json_t *keys, const char *s,
			      const char **ret)
{
	for (; (s = strchr(s, '{')); s++) {
		size_t n = strcspn(s + 1, "{}");

		if (!n || s[n + 1] != '}' || variables_is_own(s + 1, n) ||
		    json_object_getn(keys, s + 1, n) ||
		    !setting_at(w, point, s + 1, n))
			continue;
		*ret = s + 1;
		return n;
	}
	return 0;
}

char *variables_expand_settings(const struct workload *w, size_t point,
				const json_t *keys, const char *text)
{
	const char *name;
	char *expanded = NULL;
	size_t n, size;
	FILE *f = open_memstream(&expanded, &size);

	while (f && (n = variables_next_setting(w, point, keys, text, &name))) {
		fwrite(text, 1, (size_t)(name - 1 - text), f);
		fputs(setting_at(w, point, name, n), f);
		text = name + n + 1;
	}
	if (f) {
		fputs(text, f);
		fclose(f);
	}
	return expanded;
}

void variables_set_numbers(struct variables *v, const struct workload *w,
			   const struct cell *cell)
{
	snprintf(v->seed, sizeof(v->seed), "%" PRIu64, cell->seed);
	snprintf(v->scale, sizeof(v->scale), "%.15g", w->time_scale);
}

/* The value of {name}; "" if no key of this cell has it. */
static const char *value_of(const struct variables *v, const char *name,
			    size_t n)
{
	const char *found = own_value(v, name, n);

	if (!found)
		found = json_string_value(json_object_getn(v->exec, name, n));
	return found ? found : "";
}

char *variables_expand(const char *word, const struct variables *v)
{
	const char *name;
	char *text = NULL;
	size_t n, size;
	FILE *f = open_memstream(&text, &size);

	while (f && (n = variables_next(word, &name))) {
		fwrite(word, 1, (size_t)(name - 1 - word), f);
		fputs(value_of(v, name, n), f);
		word = name + n + 1;
	}
	if (f) {
		fputs(word, f);
		fclose(f);
	}
	return text;
}

char *variables_expand_fixed(const struct workload *w, const struct cell *cell,
			     size_t job, const char *text)
{
	struct variables v = fixed;

	v.exec = cell->jobs[job].exec;
	variables_set_numbers(&v, w, cell);
	return variables_expand(text, &v);
}

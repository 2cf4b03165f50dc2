/* SPDX-License-Identifier: MIT */
#include "common/text/template.h"

#include <assert.h>
#include <stdbool.h>
#include <string.h>

#include "common/util.h"

/* --- values ----------------------------------------------------------- */

void template_escape(const char *s, FILE *f)
{
	for (; s && *s; s++) {
		switch (*s) {
		case '&': fputs("&amp;", f); break;
		case '<': fputs("&lt;", f); break;
		case '>': fputs("&gt;", f); break;
		case '"': fputs("&quot;", f); break;
		default:
			/* HTML allows no other control characters */
			if ((unsigned char)*s >= ' ' || *s == '\n' ||
			    *s == '\t')
				fputc(*s, f);
		}
	}
}

/* In readable form: texts without quotes, "a: 1, b: [2, 3]". */
static void put_value(const json_t *j, FILE *f)
{
	const char *between = "", *key;
	json_t *v;
	size_t i;

	if (json_is_string(j)) {
		template_escape(json_string_value(j), f);
	} else if (json_is_object(j)) {
		json_object_foreach ((json_t *)j, key, v) {
			fputs(between, f);
			template_escape(key, f);
			fputs(": ", f);
			put_value(v, f);
			between = ", ";
		}
	} else if (json_is_array(j)) {
		fputc('[', f);
		json_array_foreach ((json_t *)j, i, v) {
			fputs(i ? ", " : "", f);
			put_value(v, f);
		}
		fputc(']', f);
	} else {
		_cleanup_free_ char *text = json_dumps(j, JSON_ENCODE_ANY);

		template_escape(text, f);
	}
}

static bool is_there(const json_t *j)
{
	return j && !json_is_null(j) && !json_is_false(j) &&
	       !(json_is_integer(j) && !json_integer_value(j)) &&
	       !(json_is_string(j) && !json_string_length(j)) &&
	       !(json_is_array(j) && !json_array_size(j)) &&
	       !(json_is_object(j) && !json_object_size(j));
}

/* --- templates -------------------------------------------------------- */

/* The document, or an item of a section of it. */
struct scope {
	const json_t *value;
	const struct scope *outer;
	const struct template *all;
};

struct tag {
	char kind;		 /* # ? ^ / > &, or 0 */
	char key[64];		 /* arbitrary: longer than any of ours */
	const char *begin, *end; /* what stands before it ends at `begin` */
};

/* The first tag of the text; false: there is none. */
static bool next_tag(const char *text, struct tag *ret)
{
	const char *close;

	ret->begin = strstr(text, "{{");
	close = ret->begin ? strstr(ret->begin, "}}") : NULL;
	if (!close)
		return false;
	ret->kind = strchr("#?^/>&", ret->begin[2]) ? ret->begin[2] : 0;
	snprintf(ret->key, sizeof(ret->key), "%.*s",
		 (int)(close - ret->begin) - 2 - !!ret->kind,
		 ret->begin + 2 + !!ret->kind);
	ret->end = close + 2;
	if (ret->kind && ret->kind != '&' && *ret->end == '\n')
		ret->end++;
	return true;
}

static const json_t *look_up(const struct scope *s, const char *key)
{
	size_t n = strcspn(key, ".");
	const json_t *j;

	if (!strcmp(key, "."))
		return s->value;
	while (s && !json_object_getn(s->value, key, n))
		s = s->outer;
	j = s ? json_object_getn(s->value, key, n) : NULL;
	for (key += n; *key; key += n) {
		n = strcspn(++key, ".");
		j = json_object_getn(j, key, n);
	}
	return j;
}

/* The tag that closes the section in which the text begins. */
static struct tag end_of(const char *text)
{
	struct tag t;

	for (int depth = 1; depth; text = t.end) {
		bool found = next_tag(text, &t);

		assert(found);
		(void)found;
		depth += t.kind && strchr("#?^", t.kind);
		depth -= t.kind == '/';
	}
	return t;
}

static void fill_text(const char *text, const char *end, const struct scope *s,
		      FILE *f);

/* What stands between the tags of a section. */
static void fill_section(const struct tag *t, const char *end,
			 const struct scope *s, FILE *f)
{
	const json_t *j = look_up(s, t->key);
	struct scope in = { .value = j, .outer = s, .all = s->all };
	size_t i;

	if (is_there(j) == (t->kind == '^'))
		return;
	if (t->kind != '#') {
		fill_text(t->end, end, s, f);
	} else if (json_is_array(j)) {
		json_array_foreach ((json_t *)j, i, in.value)
			fill_text(t->end, end, &in, f);
	} else {
		fill_text(t->end, end, &in, f);
	}
}

static const char *find_template(const struct template *all, const char *name)
{
	while (all->name && strcmp(all->name, name))
		all++;
	assert(all->name);
	return all->text;
}

static void fill_text(const char *text, const char *end, const struct scope *s,
		      FILE *f)
{
	struct tag t, close;

	while (next_tag(text, &t) && t.begin < end) {
		const json_t *j = look_up(s, t.key);
		const char *other;

		fwrite(text, 1, (size_t)(t.begin - text), f);
		text = t.end;
		switch (t.kind) {
		case 0:
			if (j && !json_is_null(j))
				put_value(j, f);
			break;
		case '&':
			if (json_is_string(j))
				fputs(json_string_value(j), f);
			break;
		case '>':
			other = find_template(s->all, t.key);
			fill_text(other, other + strlen(other), s, f);
			break;
		default:
			close = end_of(text);
			fill_section(&t, close.begin, s, f);
			text = close.end;
		}
	}
	fwrite(text, 1, (size_t)(end - text), f);
}

void template_fill(const struct template *all, const char *name,
		   const json_t *doc, FILE *f)
{
	struct scope s = { .value = doc, .all = all };
	const char *text = find_template(all, name);

	fill_text(text, text + strlen(text), &s, f);
}

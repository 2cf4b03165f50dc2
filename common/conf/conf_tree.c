/* SPDX-License-Identifier: MIT */
#include "common/conf/conf_tree.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <yaml.h>

#include "common/util.h"

/* arbitrary: deeper than any configuration, but safe for the stack */
enum { MAX_DEPTH = 32 };

struct parse {
	yaml_parser_t yaml;
	yaml_event_t event; /* the current one, owned */
	const char *name;
	struct err *err;
};

const char *conf_node_name(const struct conf_node *node, const char *name)
{
	return node->file ? node->file : name;
}

int conf_node_error(const struct conf_node *node, const char *name,
		    struct err *err, const char *fmt, ...)
{
	char text[400];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	return err_set(err, -EINVAL, "%s:%u:%u: %s", conf_node_name(node, name),
		       node->line, node->column, text);
}

static int fail_at(struct parse *p, const yaml_mark_t *mark, const char *what)
{
	return err_set(p->err, -EINVAL, "%s:%zu:%zu: %s", p->name,
		       mark->line + 1, mark->column + 1, what);
}

static int next_event(struct parse *p)
{
	yaml_event_delete(&p->event);
	if (yaml_parser_parse(&p->yaml, &p->event))
		return 0;
	if (p->yaml.error == YAML_MEMORY_ERROR)
		return err_set(p->err, -ENOMEM, "%s: out of memory", p->name);
	/* a reader error (bad UTF-8) has an offset and no mark */
	return fail_at(p, &p->yaml.problem_mark,
		       p->yaml.problem ? p->yaml.problem : "not YAML");
}

void conf_node_free(struct conf_node *node)
{
	if (!node)
		return;
	for (size_t i = 0; i < node->n; i++)
		conf_node_free(node->items[i]);
	free(node->items);
	free(node->key);
	free(node->value);
	free(node);
}

const struct conf_node *conf_node_get(const struct conf_node *map,
				      const char *key)
{
	for (size_t i = 0; map->kind == CONF_KIND_MAPPING && i < map->n; i++)
		if (!strcmp(map->items[i]->key, key))
			return map->items[i];
	return NULL;
}

static char *copy_text(const char *s, bool *ret_failed)
{
	char *copy = s ? strdup(s) : NULL;

	*ret_failed = *ret_failed || (s && !copy);
	return copy;
}

struct conf_node *conf_node_copy(const struct conf_node *node)
{
	_cleanup_conf_node_ struct conf_node *copy = malloc(sizeof(*copy));
	bool failed = false;

	if (!copy)
		return NULL;
	*copy = *node;
	copy->key = copy_text(node->key, &failed);
	copy->value = copy_text(node->value, &failed);
	copy->items = calloc(MAX(node->n, 1u), sizeof(*copy->items));
	failed = failed || !copy->items;
	for (copy->n = 0; !failed && copy->n < node->n; copy->n++) {
		copy->items[copy->n] = conf_node_copy(node->items[copy->n]);
		failed = !copy->items[copy->n];
	}
	return failed ? NULL : TAKE_PTR(copy);
}

static int append(struct conf_node *parent, struct conf_node *child)
{
	/* grows at 0, 1, 2, 4, ...: whenever n is a power of two */
	if ((parent->n & (parent->n - 1)) == 0) {
		size_t capacity = parent->n ? 2 * parent->n : 1;
		struct conf_node **items =
			realloc(parent->items, capacity * sizeof(*items));

		if (!items)
			return -ENOMEM;
		parent->items = items;
	}
	parent->items[parent->n++] = child;
	return 0;
}

static int scalar_text(struct parse *p, char **ret)
{
	const char *s = (const char *)p->event.data.scalar.value;

	if (strlen(s) != p->event.data.scalar.length)
		return fail_at(p, &p->event.start_mark,
			       "a scalar with a NUL byte");
	*ret = strdup(s);
	return *ret ? 0 : -ENOMEM;
}

static int parse_node(struct parse *p, int depth, struct conf_node **ret);

static int by_key(const void *a, const void *b)
{
	const struct conf_node *x = *(struct conf_node *const *)a;
	const struct conf_node *y = *(struct conf_node *const *)b;
	int order = strcmp(x->key, y->key);

	if (!order)
		order = (x->key_line > y->key_line) -
			(x->key_line < y->key_line);
	return order ? order
		     : (x->key_column > y->key_column) -
			       (x->key_column < y->key_column);
}

/* Sorted, as profiles have mappings of two thousand keys. */
static int no_duplicates(struct parse *p, const struct conf_node *node)
{
	size_t size = sizeof(*node->items);
	_cleanup_free_ struct conf_node **sorted = calloc(node->n + 1, size);

	if (!sorted)
		return -ENOMEM;
	for (size_t i = 0; i < node->n; i++)
		sorted[i] = node->items[i];
	qsort(sorted, node->n, size, by_key);
	for (size_t i = 1; i < node->n; i++)
		if (!strcmp(sorted[i - 1]->key, sorted[i]->key))
			return err_set(p->err, -EINVAL,
				       "%s:%u:%u: duplicate key '%s'", p->name,
				       sorted[i]->key_line,
				       sorted[i]->key_column, sorted[i]->key);
	return 0;
}

static int parse_items(struct parse *p, int depth, struct conf_node *node,
		       yaml_event_type_t end)
{
	_cleanup_free_ char *key = NULL;
	struct conf_node *child;
	yaml_mark_t mark;
	int r;

	while ((r = next_event(p)) == 0 && p->event.type != end) {
		mark = p->event.start_mark;
		if (node->kind == CONF_KIND_MAPPING) {
			if (p->event.type != YAML_SCALAR_EVENT)
				return fail_at(p, &mark,
					       "a key must be a word");
			r = scalar_text(p, &key);
			if (r < 0)
				return r;
			r = next_event(p);
			if (r < 0)
				return r;
		}
		r = parse_node(p, depth + 1, &child);
		if (r < 0)
			return r;
		child->key = TAKE_PTR(key);
		child->key_line = (unsigned)mark.line + 1;
		child->key_column = (unsigned)mark.column + 1;
		r = append(node, child);
		if (r < 0) {
			conf_node_free(child);
			return r;
		}
	}
	return r < 0 || node->kind != CONF_KIND_MAPPING
		       ? r
		       : no_duplicates(p, node);
}

static bool has_extras(const yaml_event_t *e)
{
	switch (e->type) {
	case YAML_SCALAR_EVENT:
		return e->data.scalar.anchor || e->data.scalar.tag;
	case YAML_SEQUENCE_START_EVENT:
		return e->data.sequence_start.anchor ||
		       e->data.sequence_start.tag;
	case YAML_MAPPING_START_EVENT:
		return e->data.mapping_start.anchor ||
		       e->data.mapping_start.tag;
	default: return e->type == YAML_ALIAS_EVENT;
	}
}

/* The node that starts at the current event. */
static int parse_node(struct parse *p, int depth, struct conf_node **ret)
{
	_cleanup_conf_node_ struct conf_node *node = calloc(1, sizeof(*node));
	yaml_mark_t mark = p->event.start_mark;
	int r = 0;

	if (!node)
		return -ENOMEM;
	if (depth > MAX_DEPTH)
		return fail_at(p, &mark, "nested too deeply");
	if (has_extras(&p->event))
		return fail_at(p, &mark,
			       "anchors, aliases and tags are not supported");
	node->line = (unsigned)mark.line + 1;
	node->column = (unsigned)mark.column + 1;
	switch (p->event.type) {
	case YAML_SCALAR_EVENT:
		node->quoted = p->event.data.scalar.style !=
			       YAML_PLAIN_SCALAR_STYLE;
		r = scalar_text(p, &node->value);
		break;
	case YAML_SEQUENCE_START_EVENT:
		node->kind = CONF_KIND_SEQUENCE;
		r = parse_items(p, depth, node, YAML_SEQUENCE_END_EVENT);
		break;
	case YAML_MAPPING_START_EVENT:
		node->kind = CONF_KIND_MAPPING;
		r = parse_items(p, depth, node, YAML_MAPPING_END_EVENT);
		break;
	default: return fail_at(p, &mark, "unexpected YAML");
	}
	if (r < 0)
		return r;
	*ret = TAKE_PTR(node);
	return 0;
}

static int parse_document(struct parse *p, struct conf_node **ret)
{
	int r = next_event(p); /* stream start */

	if (r == 0)
		r = next_event(p); /* document start, or stream end */
	if (r < 0)
		return r;
	if (p->event.type == YAML_STREAM_END_EVENT) {
		*ret = calloc(1, sizeof(**ret));
		if (!*ret)
			return -ENOMEM;
		(*ret)->kind = CONF_KIND_MAPPING;
		(*ret)->line = (*ret)->column = 1;
		return 0;
	}
	r = next_event(p);
	if (r == 0)
		r = parse_node(p, 0, ret);
	if (r < 0)
		return r;
	r = next_event(p); /* document end */
	if (r == 0)
		r = next_event(p);
	if (r == 0 && p->event.type != YAML_STREAM_END_EVENT)
		r = fail_at(p, &p->event.start_mark, "more than one document");
	return r;
}

int conf_tree_parse(const char *bytes, size_t n, const char *name,
		    struct conf_node **ret, struct err *err)
{
	_cleanup_conf_node_ struct conf_node *node = NULL;
	struct parse p = { .name = name, .err = err };

	if (!yaml_parser_initialize(&p.yaml))
		return err_set(err, -ENOMEM, "%s: out of memory", name);
	yaml_parser_set_input_string(&p.yaml, (const unsigned char *)bytes, n);
	int r = parse_document(&p, &node);

	yaml_event_delete(&p.event);
	yaml_parser_delete(&p.yaml);
	if (r < 0)
		return err_set(err, r, "%s: %s", name, strerror(-r));
	*ret = TAKE_PTR(node);
	return 0;
}

int conf_tree_load(const char *path, struct conf_node **ret, struct err *err)
{
	/* arbitrary: ten times the largest profile; stops /dev/zero */
	enum { LIMIT = 16 << 20 };
	_cleanup_free_ char *bytes = NULL;
	size_t n = 0;
	int r = util_read_file(path, LIMIT, &bytes, &n);

	if (r < 0)
		return err_set(err, r, "%s: %s", path, strerror(-r));
	return conf_tree_parse(bytes, n, path, ret, err);
}

/* SPDX-License-Identifier: MIT */
#include "common/conf/conf.h"

#include <errno.h>
#include <math.h>
#include <string.h>

#include "common/units.h"
#include "common/util.h"
#include "common/word.h"

struct decode {
	const char *name;
	struct err *err;
	size_t n_bad; /* errors after which it went on (err_also) */
};

static int decode_value(struct decode *d, const struct conf_node *node,
			const struct conf_field *field, enum conf_type type,
			void *at);
static int decode_record(struct decode *d, const struct conf_node *node,
			 const struct conf_field *fields, void *object);
static void free_value(const struct conf_field *f, enum conf_type type,
		       void *at);

/* --- scalars ---------------------------------------------------------- */

static int parse_bool(const char *s, bool *ret)
{
	static const char *const yes[] = { "true", "on", "yes" };
	static const char *const no[] = { "false", "off", "no" };

	for (size_t i = 0; i < ARRAY_SIZE(yes); i++) {
		if (!strcmp(s, yes[i]) || !strcmp(s, no[i])) {
			*ret = !strcmp(s, yes[i]);
			return 0;
		}
	}
	return -EINVAL;
}

static int parse_int(const char *s, int64_t *ret)
{
	char *end;

	if (!s[0] || !strchr("+-0123456789", s[0]))
		return -EINVAL;
	errno = 0;
	*ret = strtoll(s, &end, 10);
	return *end || end == s ? -EINVAL : -errno;
}

static int parse_uint(const char *s, uint64_t *ret)
{
	char *end;

	if (s[0] < '0' || s[0] > '9')
		return -EINVAL;
	errno = 0;
	*ret = strtoull(s, &end, 10);
	/* 2^63: JSON, which shows it, has int64_t */
	if (!*end && !errno && *ret > INT64_MAX)
		return -ERANGE;
	return *end ? -EINVAL : -errno;
}

static int set_string(const char *s, char **ret)
{
	char *copy = strdup(s);

	if (!copy)
		return -ENOMEM;
	free(*ret);
	*ret = copy;
	return 0;
}

/* Describes a valid value of this type, for messages. */
static const char *expected(enum conf_type type)
{
	switch (type) {
	case CONF_BOOL: return "on or off";
	case CONF_INT: return "a whole number";
	case CONF_UINT: return "a non-negative integer";
	case CONF_DOUBLE: return "a number";
	case CONF_SIZE: return "a size such as 512K, 4M or 8G";
	case CONF_DURATION:
		return "a duration with its unit, such as 80us or 5ms";
	case CONF_CAPACITY:
		return "a size such as 8G, a percentage such as 35%, or auto";
	case CONF_STRING: return "a text";
	case CONF_RECORD:
	case CONF_MAP: return "a mapping";
	case CONF_ROW:
	case CONF_LIST: return "a sequence";
	case CONF_TREE: break;
	}
	return "a value";
}

static int parse_scalar(const char *s, enum conf_type type, void *at,
			double *ret_number)
{
	int r;

	*ret_number = NAN;
	switch (type) {
	case CONF_BOOL: return parse_bool(s, at);
	case CONF_INT:
		r = parse_int(s, at);
		*ret_number = (double)*(int64_t *)at;
		return r;
	case CONF_UINT: r = parse_uint(s, at); break;
	case CONF_SIZE: r = units_parse_size(s, at); break;
	case CONF_DURATION: r = units_parse_duration(s, at); break;
	case CONF_DOUBLE:
		r = units_parse_double(s, at);
		*ret_number = *(double *)at;
		return r;
	case CONF_CAPACITY: return units_parse_capacity(s, at);
	case CONF_STRING: return set_string(s, at);
	default: return -EINVAL;
	}
	*ret_number = (double)*(uint64_t *)at;
	return r;
}

static int set_scalar(const struct conf_field *field, enum conf_type type,
		      void *at, const char *s, struct err *err)
{
	char size[UNITS_TEXT];
	double v;
	int r = parse_scalar(s, type, at, &v);

	if (r == -ENOMEM)
		return err_set(err, r, "out of memory");
	if (r == -ERANGE)
		return err_set(err, -EINVAL, "'%s' is out of range", s);
	if (r < 0 && units_size_hint(s, size) &&
	    (type == CONF_SIZE || type == CONF_CAPACITY))
		return err_set(err, -EINVAL,
			       "'%s' is not a size: write %s (units are powers "
			       "of 1024)",
			       s, size);
	if (r < 0)
		return err_set(err, -EINVAL, "'%s' is not %s", s,
			       expected(type));
	if (!isnan(v) && (field->min != 0 || field->max != 0) &&
	    (v < field->min || v > field->max))
		return err_set(err, -EINVAL, "%s is outside %.15g..%.15g", s,
			       field->min, field->max);
	return field->check ? field->check(at, err) : 0;
}

static int append_scalar(const struct conf_field *field, struct conf_list *list,
			 const char *s, struct err *err)
{
	char *items = realloc(list->items, (list->n + 1) * field->item_size);
	char *item;

	if (!items)
		return err_set(err, -ENOMEM, "out of memory");
	list->items = items;
	item = items + list->n++ * field->item_size;
	memset(item, 0, field->item_size);
	return set_scalar(field, field->item, item, s, err);
}

int conf_set(const struct conf_field *field, void *object, const char *value,
	     struct err *err)
{
	void *at = (char *)object + field->offset;

	if (field->type == CONF_LIST)
		return append_scalar(field, at, value, err);
	return set_scalar(field, field->type, at, value, err);
}

/* --- structures ------------------------------------------------------- */

/* 0: no error, or one after which the rest is decoded. */
static int go_on(struct decode *d, int r)
{
	if (r != -EINVAL)
		return r;
	r = err_also(d->err, r);
	d->n_bad += r == 0;
	return r;
}

/* `bad`: d->n_bad before the object was decoded; with errors in it, it is not
 * complete. */
static int run_check(struct decode *d, const struct conf_node *node,
		     const struct conf_field *field, const void *object,
		     size_t bad)
{
	struct err why = { 0 };
	int r = field->check && d->n_bad == bad ? field->check(object, &why)
						: 0;

	return r < 0 ? conf_node_error(node, d->name, d->err, "%s", why.text)
		     : 0;
}

static int decode_row(struct decode *d, const struct conf_node *node,
		      const struct conf_field *fields, void *object)
{
	size_t i = 0;
	int r;

	for (; i < node->n && fields[i].key; i++) {
		r = decode_value(d, node->items[i], &fields[i], fields[i].type,
				 (char *)object + fields[i].offset);
		if (r < 0)
			return r;
	}
	if (i < node->n)
		return conf_node_error(node->items[i], d->name, d->err,
				       "a row of more than %zu values", i);
	if (fields[i].key && fields[i].required)
		return conf_node_error(node, d->name, d->err,
				       "a row without '%s'", fields[i].key);
	return 0;
}

/* The key of a map's item, then the rest of it. */
static int decode_map_item(struct decode *d, const struct conf_node *node,
			   const struct conf_field *field, void *object)
{
	int r = set_string(node->key,
			   (char **)((char *)object + field->fields->offset));

	if (r < 0)
		return r;
	if (node->kind != CONF_KIND_MAPPING)
		return conf_node_error(node, d->name, d->err,
				       "'%s' is not a mapping", node->key);
	return decode_record(d, node, field->fields + 1, object);
}

static int decode_items(struct decode *d, const struct conf_node *node,
			const struct conf_field *field, enum conf_type type,
			struct conf_list *list)
{
	int r;

	free(list->items);
	*list = (struct conf_list){ .items = calloc(node->n ? node->n : 1,
						    field->item_size) };
	if (!list->items)
		return err_set(d->err, -ENOMEM, "%s: out of memory", d->name);
	for (size_t i = 0; i < node->n; i++) {
		void *item = (char *)list->items + i * field->item_size;
		size_t bad = d->n_bad;

		list->n = i + 1; /* lets conf_free release a partial item */
		if (type == CONF_MAP)
			r = decode_map_item(d, node->items[i], field, item);
		else
			r = decode_value(d, node->items[i], field, field->item,
					 item);
		if (r == 0 && type == CONF_MAP)
			r = run_check(d, node->items[i], field, item, bad);
		r = go_on(d, r);
		if (r < 0)
			return r;
	}
	return 0;
}

static enum conf_kind kind_of(enum conf_type type)
{
	switch (type) {
	case CONF_RECORD:
	case CONF_MAP: return CONF_KIND_MAPPING;
	case CONF_ROW:
	case CONF_LIST: return CONF_KIND_SEQUENCE;
	default: return CONF_KIND_SCALAR;
	}
}

static int decode_scalar(struct decode *d, const struct conf_node *node,
			 const struct conf_field *field, enum conf_type type,
			 void *at)
{
	struct err why = { 0 };
	int r = set_scalar(field, type, at, node->value, &why);

	if (r < 0)
		return conf_node_error(node, d->name, d->err, "%s: %s",
				       field->key, why.text);
	return 0;
}

/* A list of one. */
static int decode_lone(struct decode *d, const struct conf_node *node,
		       const struct conf_field *field, struct conf_list *list)
{
	struct err why = { 0 };
	int r;

	free_value(field, CONF_LIST, list);
	r = append_scalar(field, list, node->value, &why);
	return r < 0 ? conf_node_error(node, d->name, d->err, "%s: %s",
				       field->key, why.text)
		     : 0;
}

static int decode_value(struct decode *d, const struct conf_node *node,
			const struct conf_field *field, enum conf_type type,
			void *at)
{
	size_t bad = d->n_bad;
	int r;

	if (type == CONF_LIST && node->kind == CONF_KIND_SCALAR && field->lone)
		return decode_lone(d, node, field, at);
	if (type == CONF_TREE) {
		conf_node_free(*(struct conf_node **)at);
		*(struct conf_node **)at = conf_node_copy(node);
		return *(struct conf_node **)at ? 0 : -ENOMEM;
	}
	if (node->kind != kind_of(type))
		return conf_node_error(node, d->name, d->err, "%s must be %s",
				       field->key, expected(type));
	switch (type) {
	case CONF_LIST:
	case CONF_MAP: return decode_items(d, node, field, type, at);
	case CONF_RECORD:
		r = decode_record(d, node, field->fields, at);
		return r < 0 ? r : run_check(d, node, field, at, bad);
	case CONF_ROW:
		r = decode_row(d, node, field->fields, at);
		return r < 0 ? r : run_check(d, node, field, at, bad);
	default: return decode_scalar(d, node, field, type, at);
	}
}

static const struct conf_field *find_field(const struct conf_field *fields,
					   const char *key)
{
	for (; fields->key; fields++)
		if (!fields->cli_only && !strcmp(fields->key, key))
			return fields;
	return NULL;
}

static int unknown_key(struct decode *d, const struct conf_node *item,
		       const struct conf_field *fields)
{
	struct word_list words = WORD_LIST(item->key, strlen(item->key));

	for (; fields->key; fields++)
		if (!fields->cli_only)
			word_list_add(&words, fields->key);
	return err_set(d->err, -EINVAL, "%s:%u:%u: unknown key '%s'%s",
		       conf_node_name(item, d->name), item->key_line,
		       item->key_column, item->key, words.hint);
}

static int decode_item(struct decode *d, const struct conf_node *item,
		       const struct conf_field *fields, void *object)
{
	const struct conf_field *f = find_field(fields, item->key);

	return f ? decode_value(d, item, f, f->type, (char *)object + f->offset)
		 : unknown_key(d, item, fields);
}

static int decode_record(struct decode *d, const struct conf_node *node,
			 const struct conf_field *fields, void *object)
{
	int r = 0;

	for (size_t i = 0; r == 0 && i < node->n; i++)
		r = go_on(d, decode_item(d, node->items[i], fields, object));
	for (const struct conf_field *f = fields; r == 0 && f->key; f++)
		if (f->required && !conf_node_get(node, f->key))
			r = go_on(d,
				  conf_node_error(node, d->name, d->err,
						  "'%s' is missing", f->key));
	return r;
}

int conf_decode(const struct conf_node *node, const char *name,
		const struct conf_field *fields, void *object, struct err *err)
{
	struct decode d = { .name = name, .err = err };
	int r;

	if (node->kind != CONF_KIND_MAPPING)
		return conf_node_error(node, name, err, "not a mapping");
	r = decode_record(&d, node, fields, object);
	return r == 0 && d.n_bad ? -EINVAL : r;
}

int conf_parse(const char *bytes, size_t n, const char *name,
	       const struct conf_field *fields, void *object, struct err *err)
{
	_cleanup_conf_node_ struct conf_node *node = NULL;
	int r = conf_tree_parse(bytes, n, name, &node, err);

	return r < 0 ? r : conf_decode(node, name, fields, object, err);
}

int conf_load(const char *path, const struct conf_field *fields, void *object,
	      struct err *err)
{
	_cleanup_conf_node_ struct conf_node *node = NULL;
	int r = conf_tree_load(path, &node, err);

	return r < 0 ? r : conf_decode(node, path, fields, object, err);
}

/* --- release ---------------------------------------------------------- */

static void free_value(const struct conf_field *f, enum conf_type type,
		       void *at)
{
	struct conf_list *list = at;

	switch (type) {
	case CONF_STRING:
		free(*(char **)at);
		*(char **)at = NULL;
		break;
	case CONF_TREE:
		conf_node_free(*(struct conf_node **)at);
		*(struct conf_node **)at = NULL;
		break;
	case CONF_RECORD:
	case CONF_ROW: conf_free(f->fields, at); break;
	case CONF_LIST:
	case CONF_MAP:
		for (size_t i = 0; i < list->n; i++)
			free_value(f, type == CONF_MAP ? CONF_RECORD : f->item,
				   (char *)list->items + i * f->item_size);
		free(list->items);
		*list = (struct conf_list){ 0 };
		break;
	default: break;
	}
}

int conf_check_absolute(const void *object, struct err *err)
{
	const char *s = *(char *const *)object;

	return s[0] == '/' ? 0
			   : err_set(err, -EINVAL,
				     "'%s' is not an absolute path", s);
}

void conf_free(const struct conf_field *fields, void *object)
{
	for (const struct conf_field *f = fields; f->key; f++)
		free_value(f, f->type, (char *)object + f->offset);
}

/* SPDX-License-Identifier: MIT */
/* Output: struct -> JSON by the field table, JSON -> YAML by libyaml. */
#include <errno.h>
#include <math.h>
#include <string.h>
#include <yaml.h>

#include "common/conf/conf.h"
#include "common/json.h"
#include "common/units.h"
#include "common/util.h"

static json_t *value_json(const struct conf_field *f, enum conf_type type,
			  const void *at);

static json_t *tree_json(const struct conf_node *node)
{
	json_t *j;

	if (!node)
		return NULL;
	if (node->kind == CONF_KIND_SCALAR)
		return json_bytes(node->value);
	j = node->kind == CONF_KIND_MAPPING ? json_object() : json_array();
	for (size_t i = 0; i < node->n; i++) {
		json_t *item = tree_json(node->items[i]);

		if (node->kind == CONF_KIND_MAPPING)
			json_object_set_new(j, node->items[i]->key, item);
		else
			json_array_append_new(j, item);
	}
	return j;
}

static json_t *row_json(const struct conf_field *fields, const void *object)
{
	json_t *j = json_array();

	for (const struct conf_field *f = fields; f->key; f++)
		json_array_append_new(
			j, value_json(f, f->type,
				      (const char *)object + f->offset));
	return j;
}

static json_t *list_json(const struct conf_field *f, enum conf_type type,
			 const struct conf_list *list)
{
	json_t *j = type == CONF_MAP ? json_object() : json_array();

	for (size_t i = 0; i < list->n; i++) {
		const char *item = (const char *)list->items + i * f->item_size;

		if (type == CONF_LIST) {
			json_array_append_new(j, value_json(f, f->item, item));
			continue;
		}
		const char *key = *(char *const *)(item + f->fields->offset);

		json_object_set_new(j, key, conf_json(f->fields + 1, item));
	}
	return j;
}

static json_t *value_json(const struct conf_field *f, enum conf_type type,
			  const void *at)
{
	char buf[UNITS_TEXT];

	switch (type) {
	case CONF_BOOL: return json_boolean(*(const bool *)at);
	case CONF_INT: return json_integer(*(const int64_t *)at);
	case CONF_UINT:
		return json_integer((json_int_t) * (const uint64_t *)at);
	case CONF_DOUBLE: return json_real(*(const double *)at);
	case CONF_STRING: return json_bytes(*(char *const *)at);
	case CONF_SIZE:
		return json_string(
			units_exact_size(*(const uint64_t *)at, buf));
	case CONF_DURATION:
		return json_string(
			units_exact_duration(*(const uint64_t *)at, buf));
	case CONF_CAPACITY:
		return isnan(((const struct units_capacity *)at)->fraction)
			       ? NULL
			       : json_string(units_exact_capacity(at, buf));
	case CONF_RECORD: return conf_json(f->fields, at);
	case CONF_ROW: return row_json(f->fields, at);
	case CONF_LIST:
	case CONF_MAP: return list_json(f, type, at);
	case CONF_TREE: return tree_json(*(struct conf_node *const *)at);
	}
	return NULL;
}

json_t *conf_json(const struct conf_field *fields, const void *object)
{
	json_t *j = json_object();

	for (const struct conf_field *f = fields; j && f->key; f++) {
		json_t *v = f->cli_only ? NULL
					: value_json(f, f->type,
						     (const char *)object +
							     f->offset);

		if (v)
			json_object_set_new(j, f->key, v);
	}
	return j;
}

/* --- keys ------------------------------------------------------------- */

static const char *type_name(enum conf_type type)
{
	switch (type) {
	case CONF_BOOL: return "boolean";
	case CONF_INT:
	case CONF_UINT: return "integer";
	case CONF_DOUBLE: return "number";
	case CONF_STRING: return "text";
	case CONF_SIZE: return "size";
	case CONF_DURATION: return "duration";
	case CONF_CAPACITY: return "share or size";
	case CONF_ROW:
	case CONF_LIST: return "list";
	default: return "mapping";
	}
}

static const char *bound(const struct conf_field *f, double value,
			 char buf[UNITS_TEXT])
{
	if (f->type == CONF_DURATION)
		return units_exact_duration((uint64_t)value, buf);
	if (f->type == CONF_SIZE)
		return units_exact_size((uint64_t)value, buf);
	snprintf(buf, UNITS_TEXT, "%.15g", value);
	return buf;
}

static void print_key(const struct conf_field *f, const char *key,
		      const void *at, FILE *out)
{
	char type[80], low[UNITS_TEXT], high[UNITS_TEXT], number[UNITS_TEXT];
	json_auto_t *value = at && f->type <= CONF_CAPACITY
				     ? value_json(f, f->type, at)
				     : NULL;
	const char *known = "-";

	snprintf(type, sizeof(type), "%s", type_name(f->type));
	if (f->type == CONF_LIST && f->item <= CONF_CAPACITY)
		snprintf(type, sizeof(type), "list of %s", type_name(f->item));
	if (f->min != 0 || f->max != 0)
		snprintf(type, sizeof(type), "%s, %s to %s", type_name(f->type),
			 bound(f, f->min, low), bound(f, f->max, high));
	if (json_is_string(value))
		known = json_string_value(value);
	else if (json_is_boolean(value))
		known = json_is_true(value) ? "true" : "false";
	else if (value)
		known = bound(f, json_number_value(value), number);
	fprintf(out, "%-26s %-26s %s\n", key, type,
		f->required ? "required" : known);
}

/* `object`: NULL within maps and lists, whose items have no defaults. */
static void print_keys(const struct conf_field *fields, const char *prefix,
		       const void *object, FILE *out)
{
	for (const struct conf_field *f = fields; f->key; f++) {
		const char *at = object ? (const char *)object + f->offset
					: NULL;
		char key[160];

		if (f->cli_only)
			continue;
		snprintf(key, sizeof(key), "%s%s", prefix, f->key);
		print_key(f, key, at, out);
		if (!f->fields)
			continue;
		snprintf(key, sizeof(key), "%s%s%s.", prefix, f->key,
			 f->type == CONF_MAP	? ".NAME"
			 : f->type == CONF_LIST ? "[]"
						: "");
		/* the first field of a map is NAME itself */
		print_keys(f->fields + (f->type == CONF_MAP), key,
			   f->type == CONF_RECORD ? at : NULL, out);
	}
}

void conf_print_keys(const struct conf_field *fields, const void *object,
		     FILE *f)
{
	print_keys(fields, "", object, f);
}

/* --- YAML ------------------------------------------------------------- */

static int emit(yaml_emitter_t *e, yaml_event_t *event, int made)
{
	return made && yaml_emitter_emit(e, event) ? 0 : -EIO;
}

static int emit_scalar(yaml_emitter_t *e, const char *s)
{
	yaml_event_t event;

	return emit(e, &event,
		    yaml_scalar_event_initialize(
			    &event, NULL, NULL, (const yaml_char_t *)s,
			    (int)strlen(s), 1, 1, YAML_ANY_SCALAR_STYLE));
}

static int emit_json(yaml_emitter_t *e, json_t *j)
{
	yaml_event_t ev;
	const char *key;
	json_t *item;
	char text[64];
	size_t i;
	int r;

	switch (json_typeof(j)) {
	case JSON_OBJECT:
		r = emit(e, &ev,
			 yaml_mapping_start_event_initialize(
				 &ev, NULL, NULL, 1, YAML_BLOCK_MAPPING_STYLE));
		json_object_foreach (j, key, item) {
			if (r == 0)
				r = emit_scalar(e, key);
			if (r == 0)
				r = emit_json(e, item);
		}
		return r < 0 ? r
			     : emit(e, &ev,
				    yaml_mapping_end_event_initialize(&ev));
	case JSON_ARRAY:
		r = emit(e, &ev,
			 yaml_sequence_start_event_initialize(
				 &ev, NULL, NULL, 1, YAML_FLOW_SEQUENCE_STYLE));
		json_array_foreach (j, i, item) {
			if (r == 0)
				r = emit_json(e, item);
		}
		return r < 0 ? r
			     : emit(e, &ev,
				    yaml_sequence_end_event_initialize(&ev));
	case JSON_INTEGER:
		snprintf(text, sizeof(text), "%" JSON_INTEGER_FORMAT,
			 json_integer_value(j));
		return emit_scalar(e, text);
	case JSON_REAL:
		snprintf(text, sizeof(text), "%.15g", json_real_value(j));
		return emit_scalar(e, text);
	case JSON_STRING: return emit_scalar(e, json_string_value(j));
	default: return emit_scalar(e, json_is_true(j) ? "true" : "false");
	}
}

int conf_dump(const struct conf_field *fields, const void *object, FILE *f)
{
	json_auto_t *j = conf_json(fields, object);
	yaml_emitter_t e;
	yaml_event_t ev;
	int r;

	if (!j || !yaml_emitter_initialize(&e))
		return -ENOMEM;
	yaml_emitter_set_output_file(&e, f);
	yaml_emitter_set_unicode(&e, 1);
	r = emit(&e, &ev,
		 yaml_stream_start_event_initialize(&ev, YAML_UTF8_ENCODING));
	if (r == 0)
		r = emit(&e, &ev,
			 yaml_document_start_event_initialize(&ev, NULL, NULL,
							      NULL, 1));
	if (r == 0)
		r = emit_json(&e, j);
	if (r == 0)
		r = emit(&e, &ev, yaml_document_end_event_initialize(&ev, 1));
	if (r == 0)
		r = emit(&e, &ev, yaml_stream_end_event_initialize(&ev));
	yaml_emitter_delete(&e);
	return r;
}

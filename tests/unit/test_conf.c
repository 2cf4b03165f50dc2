/* SPDX-License-Identifier: MIT */
#include "tests/unit/test.h"

#include <errno.h>
#include <math.h>
#include <string.h>

#include "common/conf/conf.h"
#include "common/json.h"
#include "common/units.h"

struct row {
	uint64_t batch;
	double ms;
	double mib;
};
static const struct conf_field row_fields[] = {
	{ "batch", CONF_UINT, offsetof(struct row, batch), .required = true,
	  .min = 1, .max = 1000 },
	{ "ms", CONF_DOUBLE, offsetof(struct row, ms), .required = true,
	  .min = 0, .max = 1e6 },
	{ "mib", CONF_DOUBLE, offsetof(struct row, mib) },
	{ 0 },
};
struct model {
	char *name;
	struct conf_list rows;
};
static int check_model(const void *object, struct err *err)
{
	const struct model *m = object;

	return m->rows.n ? 0 : err_set(err, -EINVAL, "no rows");
}
static const struct conf_field model_fields[] = {
	{ "name", CONF_STRING, offsetof(struct model, name) },
	{ "rows", CONF_LIST, offsetof(struct model, rows), .item = CONF_ROW,
	  .item_size = sizeof(struct row), .fields = row_fields },
	{ 0 },
};
static int check_word(const void *object, struct err *err)
{
	const char *word = *(char *const *)object;

	return strcmp(word, "bad") ? 0 : err_set(err, -EINVAL, "a bad word");
}
struct config {
	bool flag;
	int64_t offset;
	uint64_t size, duration;
	struct units_capacity cache;
	char *text;
	struct conf_list words, models;
	struct conf_node *tree;
};
static const struct conf_field fields[] = {
	{ "flag", CONF_BOOL, offsetof(struct config, flag) },
	{ "offset", CONF_INT, offsetof(struct config, offset) },
	{ "size", CONF_SIZE, offsetof(struct config, size) },
	{ "duration", CONF_DURATION, offsetof(struct config, duration) },
	{ "cache", CONF_CAPACITY, offsetof(struct config, cache) },
	{ "text", CONF_STRING, offsetof(struct config, text) },
	{ "words", CONF_LIST, offsetof(struct config, words),
	  .item = CONF_STRING, .item_size = sizeof(char *), .lone = true,
	  .check = check_word },
	{ "models", CONF_MAP, offsetof(struct config, models),
	  .item_size = sizeof(struct model), .fields = model_fields,
	  .check = check_model },
	{ "tree", CONF_TREE, offsetof(struct config, tree) },
	{ 0 },
};

static int parse(const char *yaml, struct config *c, struct err *err)
{
	*c = (struct config){ 0 };
	*err = (struct err){ 0 };
	return conf_parse(yaml, strlen(yaml), "t.yaml", fields, c, err);
}

static const char *const GOOD =
	"flag: on\noffset: -3\nsize: 4M\nduration: 80us\ncache: 35%\n"
	"text: 'a: b'\nwords: [x, y]\n"
	"models:\n  resnet50:\n    rows:\n      - [1, 10.5]\n"
	"      - [64, 206.25, 5599]\n"
	"tree: {a: [1, 2], b: c}\n";

static void every_type_is_read(void **state)
{
	struct config c;
	struct err err;

	(void)state;
	assert_int_equal(parse(GOOD, &c, &err), 0);
	assert_true(c.flag);
	assert_int_equal(c.offset, -3);
	assert_int_equal(c.size, 4 * MIB);
	assert_int_equal(c.duration, 80000);
	assert_true(c.cache.fraction == .35);
	assert_string_equal(c.text, "a: b");
	assert_int_equal(c.words.n, 2);
	assert_string_equal(((char **)c.words.items)[1], "y");
	const struct model *m = c.models.items;

	assert_string_equal(m->name, "resnet50");
	assert_int_equal(m->rows.n, 2);
	assert_true(((struct row *)m->rows.items)[1].ms == 206.25);
	assert_int_equal(conf_node_get(c.tree, "a")->n, 2);
	conf_free(fields, &c);
}

static void a_scalar_is_a_list_of_one(void **state)
{
	struct config c;
	struct err err;

	(void)state;
	assert_int_equal(parse("words: x\n", &c, &err), 0);
	assert_int_equal(c.words.n, 1);
	assert_string_equal(((char **)c.words.items)[0], "x");
	/* it replaces what the list had */
	assert_int_equal(conf_parse("words: y\n", 9, "t", fields, &c, &err), 0);
	assert_int_equal(c.words.n, 1);
	assert_string_equal(((char **)c.words.items)[0], "y");
	conf_free(fields, &c);
	assert_int_equal(parse("models: {m: {rows: 3}}\n", &c, &err), -EINVAL);
	conf_free(fields, &c);
}

static void what_was_not_given_is_not_written(void **state)
{
	struct config c = { .cache = { .fraction = NAN } };
	json_auto_t *none = conf_json(fields, &c);

	(void)state;
	assert_null(json_object_get(none, "cache"));
	assert_null(json_object_get(none, "text"));
	c.cache.fraction = .5;
	json_auto_t *half = conf_json(fields, &c);

	assert_string_equal(json_string_value(json_object_get(half, "cache")),
			    "50%");
}

static void what_is_dumped_reads_back(void **state)
{
	struct config c, again;
	struct err err;
	char *text;
	size_t n;
	FILE *f = open_memstream(&text, &n);

	(void)state;
	assert_int_equal(parse(GOOD, &c, &err), 0);
	assert_int_equal(conf_dump(fields, &c, f), 0);
	fclose(f);
	if (parse(text, &again, &err) < 0)
		fail_msg("%s\n%s", err.text, text);
	json_auto_t *a = conf_json(fields, &c);
	json_auto_t *b = conf_json(fields, &again);

	assert_true(json_equal(a, b));
	conf_free(fields, &c);
	conf_free(fields, &again);
	free(text);
}

static void whole_numbers_are_those_of_json(void **state)
{
	const struct conf_field field = { "n", CONF_UINT, 0 };
	struct err err = { 0 };
	uint64_t n = 0;

	(void)state;
	assert_int_equal(conf_set(&field, &n, "9223372036854775807", &err), 0);
	assert_true(n == INT64_MAX);
	assert_int_equal(conf_set(&field, &n, "9223372036854775808", &err),
			 -EINVAL);
	assert_string_equal(err.text, "'9223372036854775808' is out of range");
}

static void errors_say_where(void **state)
{
	static const struct {
		const char *yaml, *text;
	} bad[] = {
		{ "flag: on\nflga: on\n",
		  "t.yaml:2:1: unknown key 'flga'; did you mean 'flag'?" },
		{ "flag: on\nflag: on\n", "t.yaml:2:1: duplicate key 'flag'" },
		{ "duration: 80\n", "t.yaml:1:11: duration: '80' is not a "
				    "duration with its unit, such as 80us or "
				    "5ms" },
		{ "size: [4M]\n", "t.yaml:1:7: size must be a size such as "
				  "512K, 4M or 8G" },
		{ "models: {m: {rows: [[0, 1]]}}\n",
		  "t.yaml:1:22: batch: 0 is outside 1..1000" },
		{ "models: {m: {rows: [[1]]}}\n",
		  "t.yaml:1:21: a row without 'ms'" },
		{ "models: {m: {rows: [[1, 1, 1, 1]]}}\n",
		  "t.yaml:1:31: a row of more than 3 values" },
		{ "models: {m: {rows: []}}\n", "t.yaml:1:13: no rows" },
		{ "words: [good, bad]\n", "t.yaml:1:15: words: a bad word" },
		{ "words: bad\n", "t.yaml:1:8: words: a bad word" },
		{ "a: &x 1\n", "t.yaml:1:4: anchors, aliases and tags are not "
			       "supported" },
		{ "a: 1\n---\nb: 1\n", NULL },
		{ "a: [1\n", NULL },
		{ "- 1\n", "t.yaml:1:1: not a mapping" },
		{ "\xff\xfe\xff", NULL },
	};
	struct config c;
	struct err err;

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
		assert_int_equal(parse(bad[i].yaml, &c, &err), -EINVAL);
		if (bad[i].text)
			assert_string_equal(err.text, bad[i].text);
		assert_memory_equal(err.text, "t.yaml:", 7);
		conf_free(fields, &c);
	}
}

static const struct conf_field *field(const char *key)
{
	const struct conf_field *f = fields;

	while (strcmp(f->key, key))
		f++;
	return f;
}

static void a_list_is_set_item_by_item(void **state)
{
	struct config c = { 0 };
	struct err err = { 0 };

	(void)state;
	assert_int_equal(conf_set(field("words"), &c, "x", &err), 0);
	assert_int_equal(conf_set(field("words"), &c, "y", &err), 0);
	assert_int_equal(c.words.n, 2);
	assert_string_equal(((char **)c.words.items)[0], "x");
	assert_string_equal(((char **)c.words.items)[1], "y");
	assert_int_equal(conf_set(field("words"), &c, "bad", &err), -EINVAL);
	assert_string_equal(err.text, "a bad word");
	conf_free(fields, &c);
}

static void nesting_has_a_limit(void **state)
{
	char yaml[4096] = "tree: ";
	struct config c;
	struct err err;

	(void)state;
	memset(yaml + 6, '[', 1000);
	assert_int_equal(parse(yaml, &c, &err), -EINVAL);
	conf_free(fields, &c);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_type_is_read),
		cmocka_unit_test(a_scalar_is_a_list_of_one),
		cmocka_unit_test(what_was_not_given_is_not_written),
		cmocka_unit_test(what_is_dumped_reads_back),
		cmocka_unit_test(whole_numbers_are_those_of_json),
		cmocka_unit_test(errors_say_where),
		cmocka_unit_test(a_list_is_set_item_by_item),
		cmocka_unit_test(nesting_has_a_limit),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

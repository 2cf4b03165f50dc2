/* SPDX-License-Identifier: MIT */
/* A configuration with a field of every type: written out and read back, it is
 * the same. */
#include <math.h>
#include <string.h>

#include "common/conf/conf.h"
#include "common/units.h"
#include "tests/fuzz/fuzz.h"

struct row {
	uint64_t n;
	double x;
};

struct named {
	char *name;
	int64_t i;
};

struct all {
	bool b;
	int64_t i;
	uint64_t u, size, duration;
	double x;
	char *s;
	struct units_capacity capacity;
	struct named record;
	struct row row;
	struct conf_list words, rows, map;
};

static const struct conf_field row_fields[] = {
	{ "n", CONF_UINT, offsetof(struct row, n), .required = true },
	{ "x", CONF_DOUBLE, offsetof(struct row, x) },
	{ 0 },
};

static const struct conf_field named_fields[] = {
	{ "name", CONF_STRING, offsetof(struct named, name) },
	{ "i", CONF_INT, offsetof(struct named, i), .min = -5, .max = 1e6 },
	{ 0 },
};

static const struct conf_field fields[] = {
	{ "b", CONF_BOOL, offsetof(struct all, b) },
	{ "i", CONF_INT, offsetof(struct all, i) },
	{ "u", CONF_UINT, offsetof(struct all, u) },
	{ "x", CONF_DOUBLE, offsetof(struct all, x) },
	{ "s", CONF_STRING, offsetof(struct all, s) },
	{ "size", CONF_SIZE, offsetof(struct all, size) },
	{ "duration", CONF_DURATION, offsetof(struct all, duration) },
	{ "capacity", CONF_CAPACITY, offsetof(struct all, capacity) },
	{ "record", CONF_RECORD, offsetof(struct all, record),
	  .fields = named_fields },
	{ "row", CONF_ROW, offsetof(struct all, row), .fields = row_fields },
	{ "words", CONF_LIST, offsetof(struct all, words), .item = CONF_STRING,
	  .item_size = sizeof(char *) },
	{ "rows", CONF_LIST, offsetof(struct all, rows), .item = CONF_ROW,
	  .item_size = sizeof(struct row), .fields = row_fields },
	{ "map", CONF_MAP, offsetof(struct all, map), .fields = named_fields,
	  .item_size = sizeof(struct named) },
	{ 0 },
};

static char *dump(const struct all *a, size_t *ret_n)
{
	char *text = NULL;
	FILE *f = open_memstream(&text, ret_n);

	PROMISED(f && conf_dump(fields, a, f) == 0);
	fclose(f);
	return text;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	struct all a = { .x = NAN }, b = { .x = NAN };
	struct err err = { 0 };
	size_t n_a, n_b;
	int r = conf_parse((const char *)data, n, "x", fields, &a, &err);

	PROMISED(r == 0 || (r < 0 && !strncmp(err.text, "x:", 2)));
	if (r == 0) {
		char *text = dump(&a, &n_a), *again;

		if (conf_parse(text, n_a, "y", fields, &b, &err) < 0)
			fprintf(stderr, "%s\n%s\n", err.text, text);
		PROMISED(!err.text[0]);
		again = dump(&b, &n_b);
		PROMISED(n_a == n_b && !memcmp(text, again, n_a));
		free(text);
		free(again);
	}
	conf_free(fields, &a);
	conf_free(fields, &b);
	return 0;
}

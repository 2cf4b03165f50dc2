/* SPDX-License-Identifier: MIT */
/*
 * Configuration by tables of fields: one table says how a struct is read from
 * YAML, from a command line (common/program/cli.h), and written back.
 *
 *	struct disk { char *name; uint64_t latency_ns; double bw; };
 *	static const struct conf_field disk_fields[] = {
 *		{ CONF_KEY(name, CONF_STRING, struct disk), .required = true,
 *		  .help = "what it is" },
 *		{ "latency", CONF_DURATION, offsetof(struct disk, latency_ns) },
 *		{ "mb_per_s", CONF_DOUBLE, offsetof(struct disk, bw),
 *		  .min = 0.001, .max = 1e6 },
 *		{ 0 },
 *	};
 *
 * The caller fills the struct with the defaults (strings with strdup) before
 * conf_decode; after it, failed or not, conf_free releases what it owns.
 * Unknown key, duplicate key, wrong type, missing unit, out of range, missing
 * required key: -EINVAL and a text "name:line:column: what"; with `all` of
 * struct err every such error, and no text.
 */
#ifndef GPEMU_COMMON_CONF_CONF_H
#define GPEMU_COMMON_CONF_CONF_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "common/conf/conf_tree.h"
#include "common/err.h"

enum conf_type {
	CONF_BOOL,     /* bool: true/false, on/off, yes/no */
	CONF_INT,      /* int64_t */
	CONF_UINT,     /* uint64_t */
	CONF_DOUBLE,   /* double, finite; a default of NaN is "not given" */
	CONF_STRING,   /* char *, owned; may stay NULL */
	CONF_SIZE,     /* uint64_t bytes, units_parse_size */
	CONF_DURATION, /* uint64_t ns, units_parse_duration */
	CONF_CAPACITY, /* struct units_capacity; a default whose fraction is
			* NaN is "not given" */
	CONF_RECORD,   /* a struct in place: `fields` */
	CONF_ROW,      /* a struct in place, in YAML a sequence in the order of
			* `fields`: "[64, 61.2, 145.1]"; trailing fields that
			* are not required may be left out */
	CONF_LIST,     /* struct conf_list; each item as `item` says */
	CONF_MAP,      /* struct conf_list of structs, in YAML a mapping; the
			* first of `fields` is a CONF_STRING for the key */
	CONF_TREE,     /* struct conf_node *, owned: whatever stands there */
};

struct conf_list {
	void *items;
	size_t n;
};

struct conf_field {
	const char *key;
	enum conf_type type;
	size_t offset;
	const char *help;
	/* numbers (and sizes in bytes, durations in ns): inclusive bounds,
	 * unchecked while both are 0 */
	double min, max;
	bool required;
	/* CONF_RECORD, CONF_ROW, CONF_MAP, and lists of these */
	const struct conf_field *fields;
	enum conf_type item; /* CONF_LIST: type of the items */
	size_t item_size;    /* CONF_LIST and CONF_MAP: sizeof one item */
	bool lone; /* CONF_LIST of scalars: one scalar is a list of one */
	/* Called with a scalar, a struct (CONF_RECORD, CONF_ROW) or an item
	 * that was just decoded: -EINVAL with a text, to which the place is
	 * added. */
	int (*check)(const void *object, struct err *err);
	const char *profile; /* CONF_STRING: of which kind it names one */
	/* Command line (common/program/cli.h): a short option, what --help
	 * calls the argument (NULL on a bool: a plain flag), not in YAML. */
	char short_opt;
	const char *arg;
	bool cli_only;
	/* Under which heading --help shows this field and those after it, until
	 * the next group; "": under the general one, as without any */
	const char *group;
};

/*
 * The first values of a field whose key is the name of its member:
 *
 *	{ CONF_KEY(name, CONF_STRING, struct disk), .required = true },
 */
#define CONF_KEY(member, type, object) #member, type, offsetof(object, member)

/* bytes -> struct; safe on any input. */
int conf_parse(const char *bytes, size_t n, const char *name,
	       const struct conf_field *fields, void *object, struct err *err);
/* path -> struct. */
int conf_load(const char *path, const struct conf_field *fields, void *object,
	      struct err *err);
/* tree -> struct, for a part of a document. */
int conf_decode(const struct conf_node *node, const char *name,
		const struct conf_field *fields, void *object, struct err *err);
/* One scalar into one field, or as one more into a list of scalars; the text
 * says what is wrong, not where. */
int conf_set(const struct conf_field *field, void *object, const char *value,
	     struct err *err);
/*
 * Define a `check` that is another function with its first arguments:
 *
 *	CONF_CHECK(check_order, plugin_choice_check, order_table, "order")
 */
#define CONF_CHECK(name, fn, ...)                            \
	static int name(const void *object, struct err *err) \
	{                                                    \
		return fn(__VA_ARGS__, object, err);         \
	}

/* A `check` of a CONF_STRING: an absolute path. */
int conf_check_absolute(const void *object, struct err *err);
/* Release what the struct owns and zero those members. */
void conf_free(const struct conf_field *fields, void *object);

/*
 * The struct as JSON: sizes and durations as text that reads back exactly;
 * cli_only fields, NULL strings and NaN left out. NULL: no memory.
 */
json_t *conf_json(const struct conf_field *fields, const void *object);
/*
 * A line for each key, its type with its range, and its default, which
 * `object` holds: "cell_timeout  duration, 1s to 1d  10m". Keys within others
 * are written base.fs, mounts.NAME.fs and plot[].x; "required" and "-" (none)
 * stand for a default.
 */
void conf_print_keys(const struct conf_field *fields, const void *object,
		     FILE *f);
/* The struct as YAML that conf_load reads back. */
int conf_dump(const struct conf_field *fields, const void *object, FILE *f);

#endif

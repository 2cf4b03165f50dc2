/* SPDX-License-Identifier: MIT */
/* Reading and writing records; built with jansson (json_auto_t owns). */
#ifndef GPEMU_COMMON_JSON_H
#define GPEMU_COMMON_JSON_H

#include <stdint.h>
#include <stdio.h>

#include <jansson.h>

#include "common/err.h"

/*
 * Write `j` and a newline to `path` ("-": stdout), indented by two. A file is
 * replaced atomically (temporary file, then rename); a pipe, a device or a link
 * is written in place. -errno with a text naming the path.
 */
int json_write(const json_t *j, const char *path, struct err *err);
/* The same for a file in the program's own folder: replaces whatever is there.
 */
int json_replace(const json_t *j, const char *path, struct err *err);
/* Check early that json_write could create the file: the folder exists and is
 * writable. -errno with a text. */
int json_check(const char *path, struct err *err);
/*
 * A string of any bytes: a path, an option, an error text. UTF-8 is unchanged;
 * otherwise each invalid byte becomes \xHH, and a backslash \\. NULL: for NULL,
 * or no memory.
 */
json_t *json_bytes(const char *bytes);
/* Write "key: text" and a newline as YAML: a JSON string is a double-quoted one
 * there. Any bytes, as json_bytes has them. */
void json_put_yaml(FILE *f, const char *key, const char *text);
/* The same text, to be released with free(); NULL: no memory. */
char *json_text(const json_t *j);
/* The text of a key of the object `j`; "": it has none. */
const char *json_get_text(const json_t *j, const char *key);
/* The number of a key of the object `j`; 0: it has none. */
double json_get_number(const json_t *j, const char *key);
/* A member of the object `j`, which replaces one of that name; a text is
 * UTF-8. Without memory it is left out, as is a NULL. */
void json_add_integer(json_t *j, const char *key, uint64_t value);
void json_add_real(json_t *j, const char *key, double value);
void json_add_text(json_t *j, const char *key, const char *value);
/* This program, for the head of a record: {version, git}, its release and its
 * commit. NULL: no memory. */
json_t *json_version(void);
/* Read a file; -EINVAL with "path:line:column: what". */
int json_read(const char *path, json_t **ret, struct err *err);

#endif

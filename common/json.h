/* SPDX-License-Identifier: MIT */
/* Records in and out; the building itself is jansson's (json_auto_t owns). */
#ifndef GPEMU_COMMON_JSON_H
#define GPEMU_COMMON_JSON_H

#include <jansson.h>

#include "common/err.h"

/*
 * Write `j` and a newline to `path` ("-": stdout), indented by two. A file
 * appears whole or not at all (written beside, then renamed); a pipe,
 * a device or a link is written to. -errno with a text naming the path.
 */
int json_write(const json_t *j, const char *path, struct err *err);
/* The same of a file of one's own folder: whatever is there is replaced. */
int json_replace(const json_t *j, const char *path, struct err *err);
/* Before the work: would that find its folder, and may write there? -errno
 * with a text. */
int json_check(const char *path, struct err *err);
/*
 * A string of any bytes: a path, an option, the text of an error. As it is
 * when it is UTF-8; else each byte that is of no character becomes \xHH, and
 * a backslash \\. NULL: of NULL, or no memory.
 */
json_t *json_bytes(const char *bytes);
/* The same text, to be released with free(); NULL: no memory. */
char *json_text(const json_t *j);
/* Read a file; -EINVAL with "path:line:column: what". */
int json_read(const char *path, json_t **ret, struct err *err);

#endif

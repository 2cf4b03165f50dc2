/* SPDX-License-Identifier: MIT */
/*
 * Pages of HTML: a template of templates/NAME.html (common/text/template.h),
 * filled from a JSON document. Tables as text.
 */
#ifndef GPEMU_RUNNER_PAGE_RUN_PAGE_H
#define GPEMU_RUNNER_PAGE_RUN_PAGE_H

#include <jansson.h>
#include <stdbool.h>
#include <stdio.h>

#include "common/err.h"

/* Fill the template `name`; for tests too. */
void page_fill(const char *name, const json_t *doc, FILE *f);
/* The same to FOLDER/FILE, atomically. `doc` NULL: -ENOMEM. -errno with a text.
 */
int page_write(const char *folder, const char *file, const char *name,
	       const json_t *doc, struct err *err);

/*
 * Print a text to FOLDER/FILE, atomically, in lines of any length (width 0),
 * and to the terminal in its width. `file` NULL, `quiet`: without the one, the
 * other. -ENOMEM; -errno with a text.
 */
typedef void (*page_print_fn)(const void *ctx, size_t width, FILE *f);
int page_print(const char *folder, const char *file, bool quiet,
	       page_print_fn print, const void *ctx, struct err *err);

/*
 * The <svg> element of an SVG file, with ids and references to them prefixed by
 * `prefix`, so that one page can hold several; `label` is its description.
 * NULL: no such file, or no <svg> in it.
 */
json_t *page_svg(const char *path, const char *prefix, const char *label);

#endif

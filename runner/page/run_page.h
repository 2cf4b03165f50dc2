/* SPDX-License-Identifier: MIT */
/*
 * Pages of HTML: a template of templates/NAME.html (common/text/template.h),
 * filled from a JSON document.
 */
#ifndef GPEMU_RUNNER_PAGE_RUN_PAGE_H
#define GPEMU_RUNNER_PAGE_RUN_PAGE_H

#include <jansson.h>
#include <stdio.h>

#include "common/err.h"

/* Fill the template `name`; for tests too. */
void page_fill(const char *name, const json_t *doc, FILE *f);
/* The same to FOLDER/FILE, atomically. `doc` NULL: -ENOMEM. -errno with a text.
 */
int page_write(const char *folder, const char *file, const char *name,
	       const json_t *doc, struct err *err);

/*
 * The <svg> element of an SVG file, with ids and references to them prefixed by
 * `prefix`, so that one page can hold several; `label` is its description.
 * NULL: no such file, or no <svg> in it.
 */
json_t *page_svg(const char *path, const char *prefix, const char *label);

#endif

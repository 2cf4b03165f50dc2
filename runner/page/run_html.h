/* SPDX-License-Identifier: MIT */
/* Pieces of HTML: escaped text, an SVG file inlined. */
#ifndef GPEMU_RUNNER_PAGE_RUN_HTML_H
#define GPEMU_RUNNER_PAGE_RUN_HTML_H

#include <jansson.h>
#include <stdio.h>

/* `s` with & < > " written as entities; NULL is nothing. */
void html_text(FILE *f, const char *s);
/* printf, escaped. */
void html_printf(FILE *f, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));
/* A JSON value in readable form: texts without quotes, {a: 1, b: 2}. */
void html_json(FILE *f, const json_t *j);
/*
 * The <svg> element of an SVG file, with ids and references to them prefixed by
 * `prefix`, so that one page can hold several; `label` is its description. 0;
 * -ENOENT: no such file, or no <svg> in it.
 */
int html_svg(FILE *f, const char *path, const char *prefix, const char *label);

/* A page up to its first line under the title: head, style sheet, <header>
 * with an open <p>. */
void html_head(FILE *f, const char *name, const char *title);
/* A word in a box: `kind` is pass, fail, open, not or none. */
void html_badge(FILE *f, const char *kind, const char *text);

#endif

/* SPDX-License-Identifier: MIT */
/*
 * Templates of texts: files that `embed` makes a part of the program, filled
 * from a JSON document.
 *
 *	{{key}}		the text, escaped as in HTML
 *	{{&key}}	the same unescaped
 *	{{#key}} {{/key}}	what is between, for each item of the array
 *	{{?key}} {{/key}}	once, where {{#key}} is used at all
 *	{{^key}} {{/key}}	where it is not
 *	{{>name}}	another template
 *
 * The innermost section that has the key gives it; "a.b" is a member of a
 * member, "." the item itself. Numbers and objects have a readable form, null
 * has none. {{#key}} is used once with what is no array, and not at all for
 * null, false, 0, "", [] and {}. A line end behind a tag of a section or a
 * template is left out.
 */
#ifndef GPEMU_COMMON_TEXT_TEMPLATE_H
#define GPEMU_COMMON_TEXT_TEMPLATE_H

#include <jansson.h>
#include <stdio.h>

struct template
{
	const char *name, *text;
};

/* Fill the template `name` of `all`, which end with one without a name. */
void template_fill(const struct template *all, const char *name,
		   const json_t *doc, FILE *f);
/* A text with & < > " as entities; NULL is nothing. */
void template_escape(const char *s, FILE *f);

#endif

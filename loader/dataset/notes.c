/* SPDX-License-Identifier: MIT */
#include "loader/dataset/notes.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/json.h"
#include "common/util.h"

static void add_name(struct note *n, const char *name)
{
	/* all of it is kept, as the index has it */
	char own[NOTE_NAME] = "";

	if (n->name[NOTE_NAMES - 1][0])
		return;
	snprintf(own, sizeof(own), "%s", name);
	for (size_t i = 0; i < NOTE_NAMES; i++) {
		if (!strcmp(n->name[i], own))
			return;
		if (!n->name[i][0]) {
			memcpy(n->name[i], own, sizeof(own));
			return;
		}
	}
}

/* The note with this key, or a new one; NULL: no memory. */
static struct note *note_of(struct notes *s, const char *key, const char *text)
{
	struct note *n;

	for (size_t i = 0; i < s->n; i++)
		if (!strcmp(s->note[i].key, key))
			return &s->note[i];
	if (util_reserve(&s->note, &s->capacity, s->n + 1, sizeof(*n)) < 0)
		return NULL;
	n = &s->note[s->n++];
	*n = (struct note){ 0 };
	snprintf(n->key, sizeof(n->key), "%s", key);
	snprintf(n->text, sizeof(n->text), "%s", text);
	return n;
}

int notes_add(struct notes *s, const struct note_kind *kind, uint64_t n,
	      const char *name)
{
	struct note *at = note_of(s, kind->key, kind->text ? kind->text : "");

	if (!at)
		return -ENOMEM;
	at->n += n;
	if (name)
		add_name(at, name);
	return 0;
}

int notes_merge(struct notes *s, const struct notes *from)
{
	for (size_t i = 0; i < from->n; i++) {
		const struct note *more = &from->note[i];
		struct note *at = note_of(s, more->key, more->text);

		if (!at)
			return -ENOMEM;
		at->n += more->n;
		for (size_t k = 0; k < NOTE_NAMES && more->name[k][0]; k++)
			add_name(at, more->name[k]);
	}
	return 0;
}

bool note_is_valid(const struct note *n)
{
	bool ends = !n->key[NOTE_KEY - 1] && !n->text[NOTE_TEXT - 1];

	for (size_t i = 0; i < NOTE_NAMES; i++)
		ends = ends && !n->name[i][NOTE_NAME - 1];
	return ends && n->n <= INT64_MAX;
}

void notes_fini(struct notes *s)
{
	free(s->note);
	*s = (struct notes){ 0 };
}

char *note_text(const struct note *n)
{
	char names[NOTE_NAMES * (NOTE_NAME + 2) + 8] = "";
	size_t at = 0, k = 0;

	if (!n->text[0])
		return NULL;
	for (; k < NOTE_NAMES && n->name[k][0]; k++)
		at += (size_t)sprintf(names + at, "%s%s", k ? ", " : " (",
				      n->name[k]);
	if (k)
		strcpy(names + at, n->n > k ? ", ...)" : ")");
	return util_text("%s: %" PRIu64 "%s", n->text, n->n, names);
}

json_t *notes_json(const struct notes *s)
{
	json_t *all = json_array();

	for (size_t i = 0; i < s->n; i++) {
		const struct note *n = &s->note[i];
		_cleanup_free_ char *text = note_text(n);
		json_t *names = json_array();

		for (size_t k = 0; k < NOTE_NAMES && n->name[k][0]; k++)
			json_array_append_new(names, json_bytes(n->name[k]));
		json_array_append_new(
			all,
			json_pack("{s:s, s:I, s:o, s:o}", "what", n->key, "n",
				  (json_int_t)n->n, "names", names, "shown",
				  text ? json_bytes(text) : json_null()));
	}
	return all;
}

/* SPDX-License-Identifier: MIT */
/*
 * What a dataset was found to be: how many files were left aside, which
 * features hold the images, how many samples have no label. A format counts
 * such things by kind while it lists; the record has them all, and those that
 * a user should know are shown once (notes_text).
 *
 * A note has a fixed size and no pointers: the index of a dataset keeps it as
 * it is.
 */
#ifndef GPEMU_LOADER_DATASET_NOTES_H
#define GPEMU_LOADER_DATASET_NOTES_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A kind; const, beside the code that counts it. */
struct note_kind {
	/* its name in the record */
	const char *key;
	/* What is counted, for people: "files left aside". NULL: for the
	 * record only. */
	const char *text;
};

enum {
	NOTE_NAMES = 3,	 /* arbitrary: enough to recognise a pattern */
	NOTE_NAME = 104, /* bytes with the NUL; longer names are cut */
	NOTE_KEY = 32,
	NOTE_TEXT = 160,
	/* kinds in one dataset. arbitrary: more than the formats have */
	NOTES_MOST = 32,
};

struct note {
	uint64_t n;
	char key[NOTE_KEY];
	char text[NOTE_TEXT]; /* "": for the record only */
	/* the first that differ; "": no more */
	char name[NOTE_NAMES][NOTE_NAME];
};

struct notes {
	struct note *note;
	size_t n, capacity;
};

/* Count `n` more of a kind, for example `name` (NULL: none). -ENOMEM. */
int notes_add(struct notes *s, const struct note_kind *kind, uint64_t n,
	      const char *name);
/* Add those of another list, by their keys. -ENOMEM. */
int notes_merge(struct notes *s, const struct notes *from);
/* Is it well-formed? Of bytes that nobody has checked. */
bool note_is_valid(const struct note *n);
/* Frees them. */
void notes_fini(struct notes *s);

/* For people, one line: "files left aside: 4 (a, b, c, ...)". NULL: the note is
 * for the record only. malloc'ed; also NULL without memory. */
char *note_text(const struct note *n);
/* [{"what","n","names","shown"}]; shown: the text for people, or null. */
json_t *notes_json(const struct notes *s);

#endif

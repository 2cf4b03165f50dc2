/* SPDX-License-Identifier: MIT */
/* Words of a list: the values of an option or of a profile's field, the names
 * of plug-ins, profiles, models, keys and options. */
#ifndef GPEMU_COMMON_WORD_H
#define GPEMU_COMMON_WORD_H

#include <stddef.h>

#include "common/err.h"
#include "common/util.h"

/* arbitrary: longer than any name; longer words have no near one */
enum { WORD_ROOM = 64 };

/*
 * The known words as they are compared with an unknown one, for the message
 * about it. Begin with WORD_LIST.
 */
struct word_list {
	const char *given;
	size_t length;	 /* of `given`, which may go on behind it */
	size_t distance; /* of the nearest so far: slips, then letters */
	char hint[128];	 /* "; did you mean 'train'?", or "" */
	char known[ERR_LIST];
};

/* At most two slips; of three letters one: arbitrary, `png` is no `jpeg`. */
#define WORD_LIST(word, n)                                  \
	{                                                   \
		.given = (word), .length = (n),             \
		.distance = WORD_ROOM * MIN(3, (n) / 2 + 1) \
	}

/*
 * One more known word. The hint names the word that a user of the field may
 * have meant: another name for the same (`random` is our order `shuffle`), a
 * word that begins like that, or one at most two slips away. Case, '-' and '_'
 * do not count.
 */
void word_list_add(struct word_list *l, const char *word);

/* -EINVAL, and "unknown --allreduce 'tre'; did you mean 'tree'? (known: auto
 * ring tree)". */
int word_unknown(const struct word_list *l, const char *kind, struct err *err);

/* Which of `n` words is `word`, letter by letter. Errors as word_unknown(). */
int word_find(const char *const *words, size_t n, const char *kind,
	      const char *word, struct err *err);

/* The same of an array, indexed by an enumeration whose members it names. */
#define WORD_FIND(words, kind, word, err) \
	word_find(words, ARRAY_SIZE(words), kind, word, err)
/* The same, written to the enumeration at `ret` if it is found. 0. */
#define WORD_INTO(words, kind, word, ret, err)                   \
	({                                                       \
		int word_i_ = WORD_FIND(words, kind, word, err); \
		if (word_i_ >= 0)                                \
			*(ret) = (__typeof__(*(ret)))word_i_;    \
		MIN(word_i_, 0);                                 \
	})

#endif

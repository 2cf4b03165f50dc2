/* SPDX-License-Identifier: MIT */
/* Words of a fixed list: the values of an option or of a profile's field. */
#ifndef GPEMU_COMMON_WORD_H
#define GPEMU_COMMON_WORD_H

#include <stddef.h>

#include "common/err.h"
#include "common/util.h"

/*
 * Which of `n` words is `word`, letter by letter. -EINVAL, and a text that
 * says what it should be, a `kind`, and lists the words:
 * "unknown --allreduce 'star' (known: auto ring tree)".
 */
int word_find(const char *const *words, size_t n, const char *kind,
	      const char *word, struct err *err);

/* The same of an array, indexed by an enumeration whose members it names. */
#define WORD_FIND(words, kind, word, err) \
	word_find(words, ARRAY_SIZE(words), kind, word, err)

#endif

/* SPDX-License-Identifier: MIT */
#include "common/word.h"

#include <errno.h>
#include <string.h>

int word_find(const char *const *words, size_t n, const char *kind,
	      const char *word, struct err *err)
{
	char known[ERR_LIST] = "";

	for (size_t i = 0; i < n; i++) {
		if (!strcmp(words[i], word))
			return (int)i;
		err_list(known, words[i]);
	}
	return err_set(err, -EINVAL, "unknown %s '%s' (known: %s)", kind, word,
		       known);
}

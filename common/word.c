/* SPDX-License-Identifier: MIT */
#include "common/word.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

/* Words of the field, and ours for the same. A row counts where ours is among
 * the known ones. */
static const struct {
	const char *theirs, *ours, *note;
} synonyms[] = {
	{ "random", "shuffle", " (a new random order each epoch)" },
	{ "randomsampler", "shuffle", "" },
	{ "distributedsampler", "torch", "" },
	{ "pytorch", "torch", "" },
	{ "pytorch", "sync", " (its shuffle is --order torch)" },
	{ "torch", "sync", " (its shuffle is --order torch)" },
	{ "dataloader", "sync", " (PyTorch's way)" },
	{ "iouring", "async", "" },
	{ "uring", "async", "" },
	{ "webdataset", "tar", " (the shards of WebDataset)" },
	{ "wds", "tar", " (the shards of WebDataset)" },
	{ "imagefolder", "files", "" },
	{ "batchsize", "batch", "" },
	{ "numworkers", "workers", "" },
	{ "prefetchfactor", "prefetch", "" },
	{ "pinmemory", "pin", "" },
	{ "shuffle", "order", "" },
	{ "sampler", "order", "" },
	{ "ssd", "sata-ssd", "" },
	{ "s3", "s3-standard", "" },
	{ "gp3", "ebs-gp3", "" },
};

/* In lower case, without dashes; 0: too long. */
static size_t plain(const char *word, size_t n, char ret[WORD_ROOM])
{
	size_t k = 0;

	for (size_t i = 0; i < n; i++) {
		if (strchr("-_", word[i]))
			continue;
		if (k == WORD_ROOM - 1)
			return 0;
		ret[k++] = (char)tolower((unsigned char)word[i]);
	}
	ret[k] = 0;
	return k;
}

/* Damerau's distance of words: letters to insert, delete, replace, or swap with
 * their neighbour. */
static size_t distance(const char *a, const char *b)
{
	size_t n = strlen(b), rows[3][WORD_ROOM];

	for (size_t k = 0; k <= n; k++)
		rows[0][k] = k;
	for (size_t i = 1; i <= strlen(a); i++) {
		size_t *row = rows[i % 3], *last = rows[(i - 1) % 3];

		row[0] = i;
		for (size_t k = 1; k <= n; k++) {
			row[k] = MIN(last[k], row[k - 1]) + 1;
			row[k] = MIN(row[k],
				     last[k - 1] + (a[i - 1] != b[k - 1]));
			if (i > 1 && k > 1 && a[i - 1] == b[k - 2] &&
			    a[i - 2] == b[k - 1])
				row[k] = MIN(row[k],
					     rows[(i - 2) % 3][k - 2] + 1);
		}
	}
	return rows[strlen(a) % 3][n];
}

/* The note on a pair of synonyms, or NULL. */
static const char *synonym(const char *theirs, const char *ours)
{
	for (size_t i = 0; i < ARRAY_SIZE(synonyms); i++)
		if (!strcmp(synonyms[i].theirs, theirs) &&
		    !strcmp(synonyms[i].ours, ours))
			return synonyms[i].note;
	return NULL;
}

void word_list_add(struct word_list *l, const char *word)
{
	char given[WORD_ROOM], known[WORD_ROOM];
	const char *note;
	size_t n = plain(l->given, l->length, given), m, d;

	err_list(l->known, word);
	m = plain(word, strlen(word), known);
	if (!n || !m)
		return;
	note = synonym(given, word + strspn(word, "-"));
	d = note || !strncmp(given, known, n) ? 0 : distance(given, known);
	/* of two that are equally near, the shorter one */
	d = note ? 0 : d * WORD_ROOM + m + 1;
	if (d >= l->distance)
		return;
	l->distance = d;
	snprintf(l->hint, sizeof(l->hint), "; did you mean '%s'%s?", word,
		 note ? note : "");
}

int word_unknown(const struct word_list *l, const char *kind, struct err *err)
{
	return err_set(err, -EINVAL, "unknown %s '%.*s'%s (known: %s)", kind,
		       (int)l->length, l->given, l->hint, l->known);
}

int word_find(const char *const *words, size_t n, const char *kind,
	      const char *word, struct err *err)
{
	struct word_list list = WORD_LIST(word, strlen(word));

	for (size_t i = 0; i < n; i++) {
		if (!strcmp(words[i], word))
			return (int)i;
		word_list_add(&list, words[i]);
	}
	return word_unknown(&list, kind, err);
}

/* SPDX-License-Identifier: MIT */
/* What an object store sends: a page of a listing, an error, a range; and a
 * file with profiles of AWS. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "store/account.h"
#include "store/answer.h"
#include "tests/fuzz/fuzz.h"

static int found(void *ctx, const struct answer_object *o)
{
	size_t *n = ctx;

	if (!o->key[0] || strlen(o->key) > ANSWER_KEY)
		abort();
	return ++*n > 1000;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	size_t count = 0;
	struct answer_page page = { .found = found, .ctx = &count };
	struct account_profile profile = { 0 };
	struct answer_error error;
	struct err err = { 0 };
	uint64_t range[3];
	char *text = malloc(n + 1);

	memcpy(text, data, n);
	text[n] = 0;
	answer_page(text, n, &page, &err);
	answer_error(text, n, &error);
	answer_range(text, &range[0], &range[1], &range[2]);
	answer_tag(text, n);
	account_parse(text, n, "f", "default", true, &profile, &err);
	free(text);
	return 0;
}

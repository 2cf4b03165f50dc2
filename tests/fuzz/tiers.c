/* SPDX-License-Identifier: MIT */
/* Tiers: parsed and written out, they parse to the same. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fs/cache/tier.h"
#include "tests/fuzz/fuzz.h"

static int check(const void *storage, struct err *err)
{
	const char *name = *(char *const *)storage;

	return name[0] ? 0 : err_set(err, -EINVAL, "no name");
}

static void write_tier(const struct tier *t, FILE *f)
{
	char size[UNITS_TEXT];

	fprintf(f, "%s:", tier_storage(t));
	for (size_t i = 0; i < t->n_policies; i++)
		fprintf(f, "%s%s", i ? "," : "", t->policies[i].text);
	for (size_t i = 0; i < t->n_sizes; i++)
		fprintf(f, "%s%s", i ? "," : ":",
			units_exact_capacity(&t->sizes[i], size));
	fputc(' ', f);
}

static char *written(const struct tiers *t)
{
	char *text = NULL;
	size_t n;
	FILE *f = open_memstream(&text, &n);

	PROMISED(f);
	for (size_t i = 0; i < t->n; i++)
		write_tier(&t->v[i], f);
	fclose(f);
	return text;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	struct tiers a = { 0 }, b = { 0 };
	char *text = strndup((const char *)data, n), *first, *second;
	struct err err = { 0 };
	bool lists = n % 2;
	int r = tiers_parse(text, lists, check, &a, &err);

	PROMISED(r == 0 || (r < 0 && !strncmp(err.text, "column ", 7)));
	PROMISED(a.n <= TIERS_MAX);
	if (r == 0) {
		for (size_t i = 0; i < a.n && !lists; i++)
			PROMISED(a.v[i].n_policies == 1 && a.v[i].n_sizes == 1);
		first = written(&a);
		PROMISED(tiers_parse(first, true, check, &b, &err) == 0);
		second = written(&b);
		PROMISED(!strcmp(first, second));
		free(first);
		free(second);
	}
	tiers_fini(&a);
	tiers_fini(&b);
	free(text);
	return 0;
}

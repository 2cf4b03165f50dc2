/* SPDX-License-Identifier: MIT */
/* A file that defines groups of files: each file is in one group. */
#include <string.h>

#include "common/pack/grouping.h"
#include "tests/fuzz/file.h"

enum { FILES = 6 };

static uint32_t find(const void *ctx, const char *path)
{
	(void)ctx;
	return strlen(path) == 1 && path[0] >= 'a' && path[0] < 'a' + FILES
		       ? (uint32_t)(path[0] - 'a')
		       : UINT32_MAX;
}

static void check(const struct grouping *g)
{
	uint32_t seen = 0;

	PROMISED(g->n_files == FILES && g->n_groups <= FILES);
	PROMISED(g->first[0] == 0 && g->first[g->n_groups] == FILES);
	for (uint32_t i = 0; i < g->n_groups; i++)
		PROMISED(g->first[i] < g->first[i + 1]);
	for (uint32_t i = 0; i < FILES; i++)
		seen |= 1u << g->file[i];
	PROMISED(seen == (1u << FILES) - 1);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	static const uint64_t bytes[FILES] = {
		1, 2, 0, GROUPING_ALONE + 1, 4, 5
	};
	static const uint32_t class[FILES];
	const struct grouping_files files = { .n = FILES,
					      .bytes = bytes,
					      .class = class,
					      .find = find,
					      .skip_unknown = n % 2 };
	struct grouping g;
	struct err err = { 0 };
	char name[32];
	int r;

	fuzz_file(data, n, name);
	r = grouping_new(&files, 1 + n % 4, name, 1, &g, &err);
	PROMISED(r == 0 || (r < 0 && err.text[0]));
	if (r == 0) {
		check(&g);
		grouping_free(&g);
	}
	return 0;
}

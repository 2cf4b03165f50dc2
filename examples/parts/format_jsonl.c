/* SPDX-License-Identifier: MIT */
/*
 * An example of a dataset format: files of lines, each line a sample, as the
 * JSON Lines that text datasets come in. Empty lines are none.
 *
 * To try it: copy it to loader/format, and add 'jsonl' to the formats in
 * loader/meson.build. `gpemu-train --data DIR` then knows it by its name.
 */
#include "loader/dataset/format.h"

#include <errno.h>
#include <string.h>

#include "common/util.h"

static int add_line(struct dataset_part *ret, uint64_t from, uint64_t to)
{
	return to > from
		       ? part_add(ret, NULL, 0, from, to - from, PART_BY_FOLDER)
		       : 0;
}

static int scan(struct peek *p, const void *options, struct dataset_part *ret,
		struct err *err)
{
	uint64_t line = 0;
	const uint8_t *v;
	int r = 0;

	(void)options;
	for (uint64_t at = 0; r == 0 && at < p->size; at += PEEK_MOST) {
		size_t n = MIN((uint64_t)PEEK_MOST, p->size - at);

		r = peek_get(p, at, n, &v);
		for (size_t i = 0; r == 0 && i < n; i++) {
			if (v[i] != '\n')
				continue;
			r = add_line(ret, line, at + i);
			line = at + i + 1;
		}
	}
	if (r == 0)
		r = add_line(ret, line, p->size);
	return r < 0 ? err_set(err, r, "%s", strerror(-r)) : 0;
}

static bool named(const char *name)
{
	size_t n = strlen(name);

	return n > 6 && !strcmp(name + n - 6, ".jsonl");
}

static bool looks(const uint8_t *head, size_t n)
{
	return n >= 2 && head[0] == '{' && head[1] == '"';
}

const struct format_ops format_jsonl = {
	.plugin = { .name = "jsonl",
		    .summary = "files of lines: each is a "
			       "sample" },
	.named = named,
	.looks = looks,
	.scan = scan,
};

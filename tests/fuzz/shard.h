/* SPDX-License-Identifier: MIT */
/* One shard of a format: accepted samples lie inside the file. */
#ifndef GPEMU_TESTS_FUZZ_SHARD_H
#define GPEMU_TESTS_FUZZ_SHARD_H

#include <string.h>

#include "common/conf/plugin_choice.h"
#include "loader/dataset/format.h"
#include "tests/fuzz/fuzz.h"

static void check_part(const struct dataset_part *p, uint64_t size)
{
	for (size_t i = 0; i < p->n; i++) {
		const struct part_sample *s = &p->sample[i];

		PROMISED(s->offset <= size && s->size <= size - s->offset);
		PROMISED(s->group < (p->n_groups ? p->n_groups : 1));
		if (s->name == PART_NO_NAME)
			continue;
		PROMISED(s->name < p->names_n);
		PROMISED(s->name + strlen(p->names + s->name) < p->names_n);
	}
}

/* `choice`: the format, with options. */
static inline void scan_choice(const struct format_ops *f, const char *choice,
			       const uint8_t *data, size_t n)
{
	const struct plugin *const table[] = { &f->plugin, NULL };
	struct plugin_choice c;
	struct err err = { 0 };
	struct dataset_part part = { 0 };
	struct peek p;
	int r;

	if (f->looks)
		f->looks(data, n < FORMAT_HEAD ? n : FORMAT_HEAD);
	peek_init_memory(&p, data, n);
	PROMISED(plugin_choose(table, "format", choice, &c, &err) == 0);
	r = f->scan(&p, c.options, &part, &err);
	plugin_choice_fini(&c);
	PROMISED(r == 0 || (r < 0 && err.text[0]));
	check_part(&part, n);
	for (size_t i = 0; i < part.notes.n; i++)
		PROMISED(note_is_valid(&part.notes.note[i]));
	part_fini(&part);
}

/* `choice`: with options of its own, for every other input. */
static inline void scan_shard(const struct format_ops *f, const char *choice,
			      const uint8_t *data, size_t n)
{
	/* all formats have defaults */
	scan_choice(f, n % 2 ? choice : f->plugin.name, data, n);
}

#endif

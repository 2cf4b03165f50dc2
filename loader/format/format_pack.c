/* SPDX-License-Identifier: MIT */
/*
 * Packs of gpemu-data (docs/pack-format.md): a member is a sample. The groups
 * are the pack's, so that orders can read adjacent samples together. The
 * samples are those of the packed tree, as format `files` lists them, but in
 * the order of their offsets.
 */
#include "loader/dataset/format.h"

#include <string.h>

#include "common/pack/pack.h"
#include "common/util.h"
#include "loader/dataset/images.h"

static int scan(struct peek *p, const void *options, struct dataset_part *ret,
		struct err *err)
{
	_cleanup_(pack_fini) struct pack k;
	int r = pack_load(p->fd, p->size, &k, err);
	uint32_t g = 0;

	(void)options;
	for (uint32_t i = 0; r == 0 && i < k.n_files; i++) {
		const struct pack_file *f = &k.files[i];

		while (i >= k.first[g + 1])
			g++;
		/* files beside class folders are not samples */
		if (k.n_classes && f->class == PACK_NO_CLASS) {
			r = notes_add(&ret->notes, &note_files_aside, 1,
				      f->path);
			continue;
		}
		r = part_add(ret, f->path, strlen(f->path), f->offset, f->bytes,
			     PART_BY_FOLDER);
		if (r == 0)
			ret->sample[ret->n - 1].group = g;
	}
	ret->n_groups = r < 0 ? 0 : k.n_groups;
	return r < 0 ? err_set(err, r, "%s", strerror(-r)) : 0;
}

static bool named(const char *name)
{
	return util_ends_in(name, ".pack");
}

static bool looks(const uint8_t *head, size_t n)
{
	return n >= 8 && !memcmp(head, PACK_MAGIC, 8);
}

const struct format_ops format_pack = {
	.plugin = { .name = "pack",
		    .summary = "packs of gpemu-data: samples in groups that "
			       "lie together" },
	.named = named,
	.looks = looks,
	.whole_files = true,
	.scan = scan,
};

/* SPDX-License-Identifier: MIT */
#include "loader/sim/sim_data.h"

#include <errno.h>
#include <limits.h>
#include <string.h>

#include "common/util.h"
#include "fs/source/listing.h"
#include "fs/source/source.h"
#include "loader/dataset/detect.h"
#include "loader/dataset/images.h"

/* A real run ends at a loop, and fails to read the others. */
static const struct note_kind note_links = {
	"links_not_followed", "dangling links and loops of links, skipped"
};

static int set_sizes(struct sim_data *d, struct dataset *ret)
{
	ret->dirfd = -1;
	ret->size = calloc(d->n + 1, sizeof(*ret->size));
	if (!ret->size)
		return -ENOMEM;
	ret->n = d->n;
	for (size_t i = 0; i < d->n; i++) {
		d->file[i] = tree_file(&d->tree, d->file[i]);
		ret->size[i] = d->tree.nodes[d->file[i]].bytes;
		ret->bytes += ret->size[i];
		ret->largest = MAX(ret->largest, ret->size[i]);
	}
	return 0;
}

/* By names, before they become files; the samples of a class are listed
 * together. */
static int set_labels(const struct sim_data *d, struct dataset *ret)
{
	ret->label = calloc(d->n + 1, sizeof(*ret->label));
	if (!ret->label)
		return -ENOMEM;
	ret->n_classes = 1;
	for (size_t i = 1; i < d->n; i++) {
		ret->n_classes += tree_label(&d->tree, d->file[i]) !=
				  tree_label(&d->tree, d->file[i - 1]);
		ret->label[i] = ret->n_classes - 1;
	}
	return 0;
}

static int note_left(const struct tree *t, size_t aside, struct notes *notes)
{
	uint64_t links = tree_links_left(&t->links);
	char path[PATH_MAX];
	int r = 0;

	if (aside)
		r = notes_add(notes, &note_files_aside, aside, NULL);
	if (r < 0 || !links)
		return r;
	r = tree_path(t, t->links.first, path, sizeof(path));
	return notes_add(notes, &note_links, links, r < 0 ? NULL : path);
}

int sim_data_open(const char *source, struct sim_data *d,
		  struct dataset *ret_data, struct err *err)
{
	const struct source_ops *ops;
	size_t aside = 0;
	const char *arg;
	int r;

	ops = source_of(source, &arg, err);
	if (!ops)
		return -EINVAL;
	r = source_list(ops, arg, &d->tree, err);
	if (r == 0)
		r = listing_make(&d->tree, &d->file, &d->n, &aside);
	if (r == 0)
		r = note_left(&d->tree, aside, &ret_data->notes);
	if (r == 0 && !d->n)
		r = err_set(err, -ENODATA, "%s: contains no samples", source);
	if (r == 0)
		r = set_labels(d, ret_data);
	if (r == 0)
		r = set_sizes(d, ret_data);
	return r < 0 ? err_set(err, r, "%s: %s", source, strerror(-r)) : 0;
}

int sim_data_format(const struct sim_data *d, const char *source,
		    const struct format_ops **ret, struct err *err)
{
	struct detect names = { 0 };
	int r;

	for (size_t i = 0; i < d->n; i++)
		detect_name(&names, tree_name(&d->tree, d->file[i]));
	/* further names: links, whose blob has no extension */
	for (uint32_t i = 0; d->tree.n_again && i < d->tree.n_nodes; i++)
		if (tree_file(&d->tree, i) != i)
			detect_name(&names, tree_name(&d->tree, i));
	r = detect_format(&names, ret, err);
	if (r < 0)
		err_prefix(err, "%s", source);
	return r;
}

int sim_data_shards(struct sim_data *d, const struct dataset *data,
		    const char *source, struct err *err)
{
	d->shard = calloc(data->n_containers + 1, sizeof(*d->shard));
	if (!d->shard)
		return err_set(err, -ENOMEM, "out of memory");
	for (uint32_t i = 0; i < data->n_containers; i++) {
		const char *path = data->names + data->origin[i].path;

		d->shard[i] = tree_find(&d->tree, path);
		if (d->shard[i] == TREE_NONE)
			return err_set(err, -ESTALE, "%s/%s: has changed",
				       source, path);
		d->shard[i] = tree_file(&d->tree, d->shard[i]);
	}
	return 0;
}

void sim_data_close(struct sim_data *d)
{
	free(d->file);
	free(d->shard);
	tree_fini(&d->tree);
	*d = (struct sim_data){ 0 };
}

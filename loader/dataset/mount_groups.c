/* SPDX-License-Identifier: MIT */
#include "loader/dataset/mount.h"

#include <errno.h>
#include <string.h>

#include "common/pack/grouping.h"
#include "common/util.h"

/* The samples by path, and the prefix of their paths in the mount. */
struct names {
	const struct dataset *data;
	uint32_t *sorted; /* data->n */
	const char *prefix;
	size_t prefix_len;
};

static int by_path(const void *a, const void *b, void *data)
{
	return strcmp(dataset_path(data, *(const uint32_t *)a),
		      dataset_path(data, *(const uint32_t *)b));
}

static uint32_t find(const void *ctx, const char *path)
{
	const struct names *n = ctx;
	size_t from = 0, to = n->data->n;

	if (strncmp(path, n->prefix, n->prefix_len) != 0)
		return UINT32_MAX;
	path += n->prefix_len;
	while (from < to) {
		size_t mid = from + (to - from) / 2;
		uint32_t sample = n->sorted[mid];
		int c = strcmp(path, dataset_path(n->data, sample));

		if (c == 0)
			return sample;
		if (c < 0)
			to = mid;
		else
			from = mid + 1;
	}
	return UINT32_MAX;
}

/* Below the mount's root: "class1/", or "" for the root itself. */
static char *prefix_of(const struct mount *m, const char *dir)
{
	_cleanup_free_ char *at = realpath(dir, NULL);
	size_t root = strlen(m->dir) - strlen("/.gpemu");
	char *ret;

	if (!at)
		return NULL;
	if (strlen(at) <= root)
		return strdup("");
	return asprintf(&ret, "%s/", at + root + 1) < 0 ? NULL : ret;
}

static int take_over(const struct grouping *g, struct dataset *d)
{
	uint32_t *group;

	if (g->n_groups == d->n) /* one file per group: no groups */
		return 0;
	group = calloc(d->n, sizeof(*group));
	if (!group)
		return -ENOMEM;
	for (uint32_t k = 0; k < g->n_groups; k++)
		for (uint32_t i = g->first[k]; i < g->first[k + 1]; i++)
			group[g->file[i]] = k;
	d->group = group;
	d->n_groups = g->n_groups;
	return 0;
}

int mount_groups(const struct mount *m, const char *dir, struct dataset *d,
		 struct err *err)
{
	_cleanup_free_ char *prefix = NULL, *path = NULL;
	_cleanup_free_ uint32_t *sorted = NULL;
	struct grouping_files files = { .n = (uint32_t)d->n,
					.bytes = d->size,
					.class = d->label,
					.find = find,
					.skip_unknown = true };
	struct grouping groups;
	struct names names;
	int r;

	if (!m->dir || d->group || d->container)
		return 0;
	prefix = prefix_of(m, dir);
	sorted = calloc(d->n, sizeof(*sorted));
	if (!prefix || !sorted || asprintf(&path, "%s/groups", m->dir) < 0)
		return err_set(err, -ENOMEM, "out of memory for groups");
	for (uint32_t i = 0; i < d->n; i++)
		sorted[i] = i;
	qsort_r(sorted, d->n, sizeof(*sorted), by_path, d);
	names = (struct names){ d, sorted, prefix, strlen(prefix) };
	files.ctx = &names;
	r = grouping_new(&files, 1, path, 0, &groups, err);
	if (r < 0)
		return r;
	r = take_over(&groups, d);
	grouping_free(&groups);
	return r < 0 ? err_set(err, r, "out of memory for groups") : 0;
}

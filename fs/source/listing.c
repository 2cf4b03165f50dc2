/* SPDX-License-Identifier: MIT */
#include "fs/source/listing.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "common/system/image_file.h"
#include "common/util.h"

struct folder {
	char *path; /* "" of the root */
	uint32_t node;
};

static int by_path(const void *a, const void *b)
{
	const struct folder *x = a, *y = b;

	size_t n = strcspn(x->path, "/"), m = strcspn(y->path, "/");
	int c = strncmp(x->path, y->path, MIN(n, m));

	/* the folder of the class first: "a/b" is before "a-c" */
	if (c == 0 && n != m)
		return n < m ? -1 : 1;
	return c ? c : strcmp(x->path, y->path);
}

static bool hidden(const char *path)
{
	return path[0] == '.' || strstr(path, "/.");
}

/* All folders that are not hidden, sorted. */
static int find_folders(const struct tree *t, struct folder *v, size_t *n)
{
	char path[PATH_MAX];

	for (uint32_t node = 0; node < t->n_nodes; node++) {
		int r = 0;

		if (!S_ISDIR(t->nodes[node].mode))
			continue;
		path[0] = 0;
		if (node != TREE_ROOT)
			r = tree_path(t, node, path, sizeof(path));
		if (r < 0)
			return r;
		if (hidden(path))
			continue;
		v[*n] = (struct folder){ strdup(path), node };
		if (!v[(*n)++].path)
			return -ENOMEM;
	}
	qsort(v, *n, sizeof(*v), by_path);
	return 0;
}

static bool is_image(const struct tree *t, uint32_t node)
{
	return image_file_named(tree_name(t, node)) == IMAGE_FILE_YES;
}

/* Only the images, where they are the majority; returns how many stay. */
static size_t images_only(const struct tree *t, uint32_t *files, size_t n)
{
	size_t images = 0, kept = 0;

	for (size_t i = 0; i < n; i++)
		images += is_image(t, files[i]);
	if (images <= n / 2)
		return n;
	for (size_t i = 0; i < n; i++)
		if (is_image(t, files[i]))
			files[kept++] = files[i];
	return kept;
}

/* Visible files of one folder; `files` NULL: only their number. */
static size_t files_of(const struct tree *t, uint32_t node, uint32_t *files)
{
	const struct tree_node *d = &t->nodes[node];
	size_t n = 0;

	/* children are sorted by name */
	for (uint32_t k = 0; k < d->n_children; k++) {
		uint32_t child = d->first_child + k;

		if (!S_ISREG(t->nodes[child].mode) ||
		    tree_name(t, child)[0] == '.')
			continue;
		if (files)
			files[n] = child;
		n++;
	}
	return n;
}

int listing_make(const struct tree *t, uint32_t **ret, size_t *ret_n,
		 size_t *ret_aside)
{
	_cleanup_free_ uint32_t *files =
		calloc(t->n_files + t->n_again + 1, sizeof(*files));
	_cleanup_free_ struct folder *v =
		calloc(t->n_nodes - t->n_files - t->n_again + 1, sizeof(*v));
	size_t n = 0, n_files = 0;
	int r = files && v ? find_folders(t, v, &n) : -ENOMEM;

	/* files in the root count without other folders only */
	for (size_t i = n > 1; r == 0 && i < n; i++)
		n_files += files_of(t, v[i].node, files + n_files);
	for (size_t i = 0; i < n; i++)
		free(v[i].path);
	if (r < 0)
		return r;
	*ret_n = images_only(t, files, n_files);
	*ret_aside = n_files - *ret_n;
	*ret_aside += n > 1 ? files_of(t, TREE_ROOT, NULL) : 0;
	*ret = TAKE_PTR(files);
	return 0;
}

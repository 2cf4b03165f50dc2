/* SPDX-License-Identifier: MIT */
#include "loader/dataset/dataset.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <xxhash.h>

#include "common/util.h"
#include "store/bucket.h"

void dataset_close(struct dataset *d)
{
	if (d->dirfd >= 0)
		close(d->dirfd);
	bucket_free(d->bucket);
	free(d->tag);
	free(d->root);
	for (uint32_t i = 0; d->container_fd && i < d->n_containers; i++)
		close(d->container_fd[i]);
	free(d->container_fd);
	notes_fini(&d->notes);
	if (!d->block) {
		free(d->names);
		free(d->path);
		free(d->size);
		free(d->label);
		free(d->container);
		free(d->offset);
		free(d->group);
		free(d->origin);
	}
	free(d->block);
	*d = (struct dataset){ .dirfd = -1 };
}

uint64_t dataset_fingerprint(const struct dataset *d)
{
	uint64_t h = XXH3_64bits(&d->n, sizeof(d->n));

	for (size_t i = 0; i < d->n; i++) {
		const char *path = dataset_path(d, i);

		h = XXH3_64bits_withSeed(path, strlen(path), h);
	}
	return XXH3_64bits_withSeed(d->size, d->n * sizeof(*d->size), h);
}

const char *dataset_name(const struct dataset *d, size_t i, char *buf, size_t n)
{
	const char *slash = !strcmp(d->root, "/") ? "" : "/", *shard;
	size_t first = i;

	if (!d->container) {
		snprintf(buf, n, "%s%s%s", d->root, slash, dataset_path(d, i));
		return buf;
	}
	shard = d->names + d->origin[d->container[i]].path;
	if (shard != dataset_path(d, i)) {
		snprintf(buf, n, "%s%s%s/%s", d->root, slash, shard,
			 dataset_path(d, i));
		return buf;
	}
	while (first && d->container[first - 1] == d->container[i])
		first--;
	snprintf(buf, n, "%s%s%s#%zu", d->root, slash, shard, i - first);
	return buf;
}

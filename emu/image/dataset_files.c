/* SPDX-License-Identifier: MIT */
#include "emu/image/dataset_files.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>

#include "common/rng.h"
#include "common/util.h"
#include "emu/image/image.h"

/* arbitrary: a class of fewer is hardly one */
enum { FILES_PER_CLASS = 10 };

uint64_t dataset_files_classes(const struct dataset_profile *p, uint64_t files)
{
	return MIN(MAX(p->classes, 1), MAX(files / FILES_PER_CLASS, 1));
}

void dataset_files_folder(uint64_t class, char buf[DATASET_FILES_PATH])
{
	snprintf(buf, DATASET_FILES_PATH, "class_%04" PRIu64, class);
}

void dataset_files_name(const struct dataset_files *d, uint64_t i,
			char buf[DATASET_FILES_PATH])
{
	snprintf(buf, DATASET_FILES_PATH, "img_%08" PRIu64 ".%s", i,
		 d->jpeg ? "JPEG" : "bin");
}

void dataset_files_path(const struct dataset_files *d, uint64_t i,
			char buf[DATASET_FILES_PATH])
{
	uint64_t class =
		(uint64_t)((unsigned __int128)i * d->classes / d->files);

	snprintf(buf, DATASET_FILES_PATH,
		 "class_%04" PRIu64 "/img_%08" PRIu64 ".%s", class, i,
		 d->jpeg ? "JPEG" : "bin");
}

uint64_t dataset_files_first(const struct dataset_files *d, uint64_t class)
{
	/* the least i with i * classes / files >= class */
	unsigned __int128 n = (unsigned __int128)class * d->files;

	return (uint64_t)((n + d->classes - 1) / d->classes);
}

int dataset_files_sizes(const struct dataset_files *d,
			const struct dataset_profile *p, uint64_t **ret,
			struct err *err)
{
	_cleanup_free_ uint32_t *rank = calloc(d->files, sizeof(*rank));
	_cleanup_free_ uint64_t *sizes = calloc(d->files, sizeof(*sizes));
	struct rng rng = rng_stream(d->seed, "data.sizes", 0);
	uint64_t least = d->jpeg ? IMAGE_LEAST : 0;

	if (!rank || !sizes)
		return err_set(err, -ENOMEM, "%" PRIu64 " files: out of memory",
			       d->files);
	rng_permutation_u32(&rng, rank, d->files);
	for (uint64_t i = 0; i < d->files; i++) {
		double q = (rank[i] + .5) / (double)d->files;
		double bytes = dataset_profile_quantile(p, q) * d->scale;

		sizes[i] = (uint64_t)llround(bytes);
		if (sizes[i] < least)
			return err_set(err, -EINVAL,
				       "a file of %" PRIu64 " bytes cannot be "
				       "a JPEG (%" PRIu64 " at least)",
				       sizes[i], least);
	}
	*ret = TAKE_PTR(sizes);
	return 0;
}

void dataset_files_random(const struct dataset_files *d, uint64_t i,
			  uint64_t offset, void *buf, size_t n)
{
	rng_bytes_at(rng_key(d->seed, "data.file", i), offset, buf, n);
}

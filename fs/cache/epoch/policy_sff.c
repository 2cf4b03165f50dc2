/* SPDX-License-Identifier: MIT */
/*
 * Small file first: cache the smallest files of the dataset, never evict. Of
 * all fixed sets of a given size in bytes this one holds the most files. Where
 * a miss costs a latency plus bytes over bandwidth, it also saves the most time
 * per cached byte (GPEmu, Wang et al., VLDB 2025, section on small-file-first
 * caching; there MinIO plus a static size threshold).
 *
 * The threshold is the largest size s such that all files smaller than s fit
 * together. Files of exactly s share the remaining bytes. If all files have one
 * size, that is the whole cache, and the policy becomes MinIO.
 */
#include "fs/cache/policy.h"

struct sff {
	uint64_t threshold; /* s */
	uint64_t left;	    /* bytes still free for files of exactly s */
};

static int sff_init(void *state, const struct policy_params *params,
		    struct err *err)
{
	struct sff *s = state;
	uint64_t smaller = 0;
	size_t i = 0;

	(void)err;
	while (i < params->n_files) {
		uint64_t size = params->file_bytes[i], group = 0;

		if (smaller > params->capacity_bytes)
			break;
		s->threshold = size;
		s->left = params->capacity_bytes - smaller;
		for (; i < params->n_files && params->file_bytes[i] == size;
		     i++)
			group += size;
		smaller += group;
	}
	return 0;
}

static bool sff_admit(void *state, const struct cache_object *object,
		      struct cache_entry *ghost)
{
	struct sff *s = state;

	(void)ghost;
	if (object->file_bytes != s->threshold)
		return object->file_bytes < s->threshold;
	return object->bytes <= s->left;
}

static void sff_inserted(void *state, struct cache_entry *entry,
			 const struct cache_object *object)
{
	struct sff *s = state;
	uint64_t *at_threshold = cache_entry_data(entry);

	if (object->file_bytes != s->threshold)
		return;
	*at_threshold = object->bytes;
	s->left -= object->bytes;
}

static void sff_removed(void *state, struct cache_entry *entry)
{
	struct sff *s = state;
	const uint64_t *at_threshold = cache_entry_data(entry);

	s->left += *at_threshold;
}

const struct policy_ops policy_sff = {
	.plugin = { .name = "sff",
		    .summary = "small files first, never evict (GPEmu)",
		    .state_size = sizeof(struct sff) },
	/* the bytes that the entry took from `left` */
	.entry_size = sizeof(uint64_t),
	.init = sff_init,
	.admit = sff_admit,
	.inserted = sff_inserted,
	.removed = sff_removed,
};

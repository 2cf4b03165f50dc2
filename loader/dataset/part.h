/* SPDX-License-Identifier: MIT */
/*
 * A part: the samples of one folder or shard, as a format finds them. A builder
 * appends parts to a dataset, in order.
 */
#ifndef GPEMU_LOADER_DATASET_PART_H
#define GPEMU_LOADER_DATASET_PART_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/err.h"
#include "loader/dataset/dataset.h"

/* As a label: the class is the first folder of the sample's name. */
#define PART_BY_FOLDER UINT32_MAX

struct part_sample {
	uint64_t offset, size; /* in the shard; of files, offset is 0 */
	uint32_t name;	       /* in `names`; PART_NO_NAME */
	uint32_t label;
	uint32_t group; /* below n_groups */
};

/* The sample has its shard's name. */
#define PART_NO_NAME UINT32_MAX

struct dataset_part {
	struct part_sample *sample;
	size_t n, capacity;
	char *names; /* each ends with a NUL */
	size_t names_n, names_capacity;
	uint32_t n_groups;		  /* 0: the same as 1 */
	uint32_t token_bytes, token_from; /* as struct dataset */
	struct notes notes;
};

/* `name` NULL: PART_NO_NAME. -ENOMEM; -E2BIG: too many for 32 bits. */
int part_add(struct dataset_part *p, const char *name, size_t name_n,
	     uint64_t offset, uint64_t size, uint32_t label);
/* After the last sample of a format whose samples have labels: note the shard
 * at `path` (NULL: unknown) if none has one, not even a folder as its class.
 * -ENOMEM. */
int part_note_labels(struct dataset_part *p, const char *path);
void part_fini(struct dataset_part *p);

/* A dataset being built; the caller owns `d` and empties it on failure. */
struct builder {
	struct dataset *d;
	size_t capacity, names_capacity, origin_capacity;
	bool by_folder; /* some labels are PART_BY_FOLDER */
	bool labelled;	/* some labels are numbers */
};

/* Add an origin; its number is d->n_origins - 1. -ENOMEM. */
int builder_origin(struct builder *b, const char *path,
		   const struct origin *like, struct err *err);
/*
 * Append a part: of whole files, or of the container added last as an origin.
 * -ENOMEM; -E2BIG: too many samples for 32 bits; -EINVAL: tokens of another
 * size than before, or with a header and before without.
 */
int builder_files(struct builder *b, const struct dataset_part *p,
		  struct err *err);
int builder_container(struct builder *b, const struct dataset_part *p,
		      struct err *err);
/* After the last part: resolve PART_BY_FOLDER, count classes and bytes, release
 * spare memory. -ENODATA: no sample. */
int builder_finish(struct builder *b, struct err *err);

#endif

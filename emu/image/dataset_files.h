/* SPDX-License-Identifier: MIT */
/*
 * The files of a made dataset: their names, sizes and random bytes, as
 * functions of (profile, number of files, seed) alone. `gpemu-data make`
 * writes them, the source `synth` of gpemu-fs makes them up on read.
 */
#ifndef GPEMU_EMU_IMAGE_DATASET_FILES_H
#define GPEMU_EMU_IMAGE_DATASET_FILES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/err.h"
#include "emu/profile/profile_dataset.h"

/* Bytes of the paths that are written below, at most. */
enum { DATASET_FILES_PATH = 64 };

struct dataset_files {
	uint64_t files;
	uint64_t classes; /* 1..files */
	uint64_t seed;
	double scale; /* on every size */
	bool jpeg;    /* else random bytes */
};

/* How many class folders `files` files get: the profile's, but fewer where
 * there would be less than 10 files in each. */
uint64_t dataset_files_classes(const struct dataset_profile *p, uint64_t files);

/* "class_0007/img_00001234.JPEG", for file `i`; its parts alone. */
void dataset_files_path(const struct dataset_files *d, uint64_t i,
			char buf[DATASET_FILES_PATH]);
void dataset_files_folder(uint64_t class, char buf[DATASET_FILES_PATH]);
void dataset_files_name(const struct dataset_files *d, uint64_t i,
			char buf[DATASET_FILES_PATH]);
/* The first file of a class; that of class `classes` is `files`. */
uint64_t dataset_files_first(const struct dataset_files *d, uint64_t class);

/*
 * The size of each file: a random permutation of evenly spaced quantiles of
 * the profile, so that the set as a whole follows it exactly. malloc'ed.
 * -ENOMEM; -EINVAL: too small for the content.
 */
int dataset_files_sizes(const struct dataset_files *d,
			const struct dataset_profile *p, uint64_t **ret,
			struct err *err);

/* Bytes [offset, offset + n) of file `i` where the content is random. */
void dataset_files_random(const struct dataset_files *d, uint64_t i,
			  uint64_t offset, void *buf, size_t n);

#endif

/* SPDX-License-Identifier: MIT */
/*
 * The options of `gpemu-data make`, and the file that records them in the
 * folder it made: DIR/.gpemu-data.json. While it says "complete": false the
 * folder is being filled, or was left incomplete.
 */
#ifndef GPEMU_LOADER_DATA_DATA_RECIPE_H
#define GPEMU_LOADER_DATA_DATA_RECIPE_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "common/err.h"
#include "emu/image/dataset_files.h"

#define DATA_RECIPE_FILE ".gpemu-data.json"

enum { DATA_DECILES = 9 };

struct data_recipe {
	char *dataset;
	char *content; /* "jpeg" or "random" */
	char *from;    /* folder of JPEGs, or NULL: synthesised */
	uint64_t files;
	uint64_t classes;
	double scale_bytes;
	uint64_t seed;
};

enum data_state {
	DATA_NEW,	 /* empty, or only files that begin with . */
	DATA_FOREIGN,	 /* files, but no recipe */
	DATA_OTHER,	 /* made by another recipe */
	DATA_INCOMPLETE, /* made by this recipe, incomplete */
	DATA_COMPLETE,	 /* made by this recipe */
};

/* The files that the recipe describes. */
struct dataset_files data_recipe_files(const struct data_recipe *r);
/* As dataset_files_sizes; the text says what to do about sizes that are too
 * small. */
int data_recipe_sizes(const struct data_recipe *r,
		      const struct dataset_profile *p, uint64_t **ret,
		      struct err *err);

/* The state of a folder. -errno with a text; -EINVAL: its recipe is damaged. */
int data_recipe_state(const struct data_recipe *r, const char *dir,
		      enum data_state *ret, struct err *err);
/* Write the recipe into the folder. */
int data_recipe_write(const struct data_recipe *r, const char *dir,
		      const uint64_t *sizes, bool complete, struct err *err);

/* Sort sizes in place; then a quantile (0..1) of the sorted sizes; n > 0. */
void data_sizes_sort(uint64_t *sizes, uint64_t n);
double data_sizes_quantile(const uint64_t *sorted, uint64_t n, double q);
/* [10 %, 20 %, ... 90 %]; NULL: no memory. */
json_t *data_sizes_deciles(const uint64_t *sorted, uint64_t n);

#endif

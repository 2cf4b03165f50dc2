/* SPDX-License-Identifier: MIT */
#include "loader/data/data_recipe.h"

#include <dirent.h>
#include <errno.h>
#include <string.h>

#include "common/json.h"
#include "common/util.h"
#include "common/version.h"

/*
 * Increment whenever the same recipe makes other bytes, so that folders of an
 * older program are not taken for this one's.
 */
enum { GENERATION_JPEG = 1, GENERATION_RANDOM = 2 };

static bool is_jpeg(const struct data_recipe *r)
{
	return !strcmp(r->content, "jpeg");
}

struct dataset_files data_recipe_files(const struct data_recipe *r)
{
	return (struct dataset_files){ .files = r->files,
				       .classes = r->classes,
				       .seed = r->seed,
				       .scale = r->scale_bytes,
				       .jpeg = is_jpeg(r) };
}

int data_recipe_sizes(const struct data_recipe *r,
		      const struct dataset_profile *p, uint64_t **ret,
		      struct err *err)
{
	struct dataset_files files = data_recipe_files(r);
	struct err why = { 0 };
	int e = dataset_files_sizes(&files, p, ret, &why);

	if (e == -EINVAL)
		return err_set(err, e,
			       "%s: raise --scale-bytes or take "
			       "--content random",
			       why.text);
	return e < 0 ? err_set(err, e, "%s", why.text) : 0;
}

static json_t *recipe_json(const struct data_recipe *r)
{
	char scale[32];

	/* as text: a JSON number may lose its last bits */
	snprintf(scale, sizeof(scale), "%.12g", r->scale_bytes);
	return json_pack("{s:o,s:s,s:o*,s:I,s:I,s:s,s:I,s:i}", "dataset",
			 json_bytes(r->dataset), "content", r->content, "from",
			 json_bytes(r->from), "files", (json_int_t)r->files,
			 "classes", (json_int_t)r->classes, "scale_bytes",
			 scale, "seed", (json_int_t)r->seed, "generation",
			 is_jpeg(r) ? GENERATION_JPEG : GENERATION_RANDOM);
}

/* 1: the folder has files that a loader would see; 0: none, or no folder. */
static int has_files(const char *dir, struct err *err)
{
	DIR *d = opendir(dir);
	struct dirent *e;

	if (!d && errno == ENOENT)
		return 0;
	if (!d)
		return err_set(err, -errno, "%s: %s", dir, strerror(errno));
	do
		e = readdir(d);
	while (e && e->d_name[0] == '.');
	closedir(d);
	return e != NULL;
}

int data_recipe_state(const struct data_recipe *r, const char *dir,
		      enum data_state *ret, struct err *err)
{
	_cleanup_free_ char *path = NULL;
	json_auto_t *here = NULL, *mine = recipe_json(r);
	const json_t *recipe, *complete;
	int n = has_files(dir, err);

	if (n < 0)
		return n;
	if (!mine || asprintf(&path, "%s/" DATA_RECIPE_FILE, dir) < 0)
		return -ENOMEM;
	*ret = n ? DATA_FOREIGN : DATA_NEW;
	if (access(path, F_OK) < 0)
		return 0;
	n = json_read(path, &here, err);
	if (n < 0)
		return n;
	recipe = json_object_get(here, "recipe");
	complete = json_object_get(here, "complete");
	if (!recipe || !json_is_boolean(complete))
		return err_set(err, -EINVAL, "%s: not a recipe", path);
	if (!json_equal(recipe, mine))
		*ret = DATA_OTHER;
	else
		*ret = json_is_true(complete) ? DATA_COMPLETE : DATA_INCOMPLETE;
	return 0;
}

int data_recipe_write(const struct data_recipe *r, const char *dir,
		      const uint64_t *sizes, bool complete, struct err *err)
{
	_cleanup_free_ uint64_t *sorted = calloc(r->files, sizeof(*sorted));
	_cleanup_free_ char *path = NULL;
	json_auto_t *j = NULL;
	uint64_t bytes = 0;

	if (!sorted || asprintf(&path, "%s/" DATA_RECIPE_FILE, dir) < 0)
		return -ENOMEM;
	memcpy(sorted, sizes, r->files * sizeof(*sorted));
	data_sizes_sort(sorted, r->files);
	for (uint64_t i = 0; i < r->files; i++)
		bytes += sizes[i];
	j = json_pack("{s:s,s:o,s:b,s:I,s:o}", "gpemu", GPEMU_VERSION, "recipe",
		      recipe_json(r), "complete", complete, "bytes",
		      (json_int_t)bytes, "deciles",
		      data_sizes_deciles(sorted, r->files));
	if (!j)
		return -ENOMEM;
	return json_write(j, path, err);
}

void data_sizes_sort(uint64_t *sizes, uint64_t n)
{
	qsort(sizes, n, sizeof(*sizes), util_compare_u64);
}

double data_sizes_quantile(const uint64_t *sorted, uint64_t n, double q)
{
	/* the i-th of n is at (i + 1/2) / n; linear in between */
	double at = MIN(MAX(q * (double)n - .5, 0), (double)(n - 1));
	uint64_t i = (uint64_t)at, next = MIN(i + 1, n - 1);

	return (double)sorted[i] +
	       ((double)sorted[next] - (double)sorted[i]) * (at - (double)i);
}

json_t *data_sizes_deciles(const uint64_t *sorted, uint64_t n)
{
	json_t *j = json_array();

	for (int i = 1; j && i <= DATA_DECILES; i++)
		if (json_array_append_new(j, json_real(data_sizes_quantile(
						     sorted, n, i / 10.0))) <
		    0) {
			json_decref(j);
			j = NULL;
		}
	return j;
}

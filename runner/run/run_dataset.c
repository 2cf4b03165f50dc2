/* SPDX-License-Identifier: MIT */
#include "runner/run/run_dataset.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <xxhash.h>

#include "common/json.h"
#include "common/log.h"
#include "common/system/mkdir_all.h"
#include "common/units.h"
#include "common/util.h"
#include "runner/run/run_identity.h"
#include "runner/run/run_lock.h"
#include "runner/run/run_remove.h"

/* arbitrary: gpemu-data has no state to save */
#define GRACE_NS (5 * NS_PER_S)

static bool is_folder(const char *path)
{
	struct stat st;

	return stat(path, &st) == 0 && S_ISDIR(st.st_mode);
}

/* `dir:`, relative to the workload file unless absolute. */
static int locate_dir(const struct runner *r, const char *dir, char **ret,
		      struct err *err)
{
	const struct conf_node *node =
		r->w->dataset ? conf_node_get(r->w->dataset, "dir") : NULL;
	_cleanup_free_ char *path = util_beside(r->w->path, dir);

	if (!path)
		return -ENOMEM;
	if (!is_folder(path) && node && !strcmp(node->value, dir))
		return conf_node_error(node, r->w->path, err, "no folder %s",
				       path);
	if (!is_folder(path))
		return err_set(err, -ENOENT, "%s: no folder %s", r->w->path,
			       path);
	*ret = realpath(path, NULL);
	return *ret ? 0 : -errno;
}

static int locate_pack(const struct runner *r, const char *pack, char **ret,
		       struct err *err)
{
	_cleanup_free_ char *path = util_beside(r->w->path, pack), *real = NULL;

	real = path ? realpath(path, NULL) : NULL;
	if (!real)
		return err_set(err, -errno, "%s: %s: %s", r->w->path,
			       path ? path : pack, strerror(errno));
	return asprintf(ret, DATASET_PACK "%s", real) < 0 ? -ENOMEM : 0;
}

static int default_dir(char **ret, struct err *err)
{
	*ret = util_cache_folder();
	return *ret ? 0
		    : err_set(err, -ENOENT,
			      "HOME is not set: name a folder for datasets "
			      "with --data-dir");
}

/* "synth:NAME,files=3", a source for gpemu-fs; keys in the order of the file.
 */
static char *synth_source(const json_t *recipe)
{
	char *text = NULL;
	size_t n;
	FILE *f = open_memstream(&text, &n);
	const char *key;
	json_t *value;

	if (!f)
		return NULL;
	fprintf(f, "synth:%s",
		json_string_value(json_object_get(recipe, "synth")));
	json_object_foreach ((json_t *)recipe, key, value)
		if (strcmp(key, "synth"))
			fprintf(f, ",%s=%s", key, json_string_value(value));
	fclose(f);
	return text;
}

bool dataset_is_folder(const json_t *recipe)
{
	return !dataset_is_synth(recipe) && !json_object_get(recipe, "pack");
}

bool dataset_is_synth(const json_t *recipe)
{
	return json_object_get(recipe, "synth") != NULL;
}

int dataset_path(const struct runner *r, const json_t *recipe, char **ret,
		 struct err *err)
{
	const char *dir = json_string_value(json_object_get(recipe, "dir"));
	const char *pack = json_string_value(json_object_get(recipe, "pack"));
	const char *name =
		json_string_value(json_object_get(recipe, "dataset"));
	_cleanup_free_ char *recipe_text = NULL, *text = NULL;

	if (dir)
		return locate_dir(r, dir, ret, err);
	if (pack)
		return locate_pack(r, pack, ret, err);
	if (dataset_is_synth(recipe)) {
		*ret = synth_source(recipe);
		return *ret ? 0 : -ENOMEM;
	}
	recipe_text = json_dumps(recipe, JSON_COMPACT | JSON_SORT_KEYS);
	if (!recipe_text ||
	    asprintf(&text, "%s %s", recipe_text,
		     identity_program(r->w, RUN_DATA)) < 0 ||
	    asprintf(ret, "%s/%s-%016llx", r->data_dir,
		     name && !strchr(name, '/') ? name : "data",
		     (unsigned long long)XXH3_64bits(text, strlen(text))) < 0)
		return -ENOMEM;
	return 0;
}

int dataset_like(const struct runner *r, const json_t *recipe, char **ret,
		 struct err *err)
{
	static const char *const keys[][2] = {
		{ "dataset", "synth" },	  { "files", "files" },
		{ "classes", "classes" }, { "scale_bytes", "scale" },
		{ "seed", "seed" },
	};
	json_auto_t *like = json_object();

	if (!json_object_get(recipe, "dataset"))
		return dataset_path(r, recipe, ret, err);
	for (size_t i = 0; i < ARRAY_SIZE(keys); i++)
		if (json_object_get(recipe, keys[i][0]))
			json_object_set(like, keys[i][1],
					json_object_get(recipe, keys[i][0]));
	*ret = like ? synth_source(like) : NULL;
	return *ret ? 0 : -ENOMEM;
}

int dataset_each(struct runner *r,
		 int (*fn)(struct runner *r, const json_t *recipe, void *ctx,
			   struct err *err),
		 void *ctx, struct err *err)
{
	json_auto_t *seen = json_object();
	int code = seen ? 0 : -ENOMEM;

	for (size_t i = 0; code == 0 && i < r->w->n_points; i++) {
		_cleanup_(cell_free) struct cell cell = { 0 };

		code = workload_configure(r->w, i, &cell);
		if (code < 0)
			break;
		for (size_t k = 0; code == 0 && k < cell.n_mounts; k++) {
			const json_t *recipe = cell.mounts[k].dataset;
			_cleanup_free_ char *text = json_dumps(
				recipe, JSON_COMPACT | JSON_SORT_KEYS);

			if (!text)
				code = -ENOMEM;
			else if (!json_object_get(seen, text)) {
				json_object_set_new(seen, text, json_true());
				code = fn(r, recipe, ctx, err);
			}
		}
	}
	return code;
}

static int check_one(struct runner *r, const json_t *recipe, void *ctx,
		     struct err *err)
{
	_cleanup_free_ char *path = NULL;

	(void)ctx;
	return dataset_path(r, recipe, &path, err);
}

int dataset_init(struct runner *r, const char *data_dir, struct err *err)
{
	_cleanup_free_ char *made = NULL;
	int code = 0;

	if (!data_dir) {
		code = default_dir(&made, err);
		data_dir = made;
	}
	if (code == 0)
		code = mkdir_all(data_dir, 0777, err);
	if (code < 0)
		return code;
	r->data_dir = realpath(data_dir, NULL);
	return r->data_dir ? dataset_each(r, check_one, NULL, err) : -errno;
}

/* gpemu-data make --config RECIPE FOLDER */
static int make_in(struct runner *r, char *recipe, char *folder,
		   struct err *err)
{
	_cleanup_free_ char *path = runner_program(r, RUN_DATA);
	_cleanup_close_ int null_fd = open("/dev/null", O_WRONLY | O_CLOEXEC);
	char *argv[] = { path,	 (char *)"make", (char *)"--config",
			 recipe, folder,	 NULL };
	struct child child;
	int status = 0;
	int code;

	if (!path || null_fd < 0)
		return -ENOMEM;
	/* its progress bar and errors go to the terminal */
	code = child_start(&child, argv, NULL, null_fd, STDERR_FILENO, err);
	if (code == 0)
		code = child_wait(&child, &r->stop, 0, &status);
	child_end(&child, GRACE_NS);
	if (code < 0)
		return err_set(err, code, "gpemu-data: %s", strerror(-code));
	if (status)
		return err_set(err, -EIO,
			       "gpemu-data make --config %s: exit status %d",
			       recipe, status);
	return 0;
}

/* With the lock held: make it under a temporary name, then rename it. */
static int make_locked(struct runner *r, const json_t *recipe, const char *path,
		       struct err *err)
{
	_cleanup_free_ char *beside = util_text("%s.unfinished", path);
	_cleanup_free_ char *config = util_text("%s.yaml", path);
	int code;

	if (!beside || !config)
		return -ENOMEM;
	run_remove(beside); /* left by a killed gpemu-run */
	/* where others may write, what they put there meanwhile is not ours */
	if (mkdir(beside, 0777) < 0)
		return err_set(err, -errno, "%s: %s", beside, strerror(errno));
	code = json_replace(recipe, config, err);
	if (code == 0)
		code = make_in(r, config, beside, err);
	if (code == 0 && rename(beside, path) < 0)
		code = err_set(err, -errno, "%s: %s", path, strerror(errno));
	if (code < 0)
		run_remove(beside);
	return code;
}

/* Lock the dataset; another gpemu-run may be making it. */
static int wait_for_maker(struct runner *r, int fd, bool shared,
			  const char *lock, struct err *err)
{
	int code;

	while ((code = lock_try(fd, 0, shared)) == -EAGAIN) {
		fprintf(stderr,
			"gpemu-run: another gpemu-run has %s, waiting\n", lock);
		code = lock_wait(lock, 0, &r->stop, err);
		if (code < 0)
			return code;
	}
	return code < 0 ? lock_error(lock, code, err) : 0;
}

static int make_one(struct runner *r, const json_t *recipe, void *ctx,
		    struct err *err)
{
	_cleanup_free_ char *path = NULL, *lock = NULL;
	_cleanup_close_ int fd = -1;
	int code = dataset_path(r, recipe, &path, err);
	bool shared;

	(void)ctx;
	if (code < 0 || !dataset_is_folder(recipe) || is_folder(path))
		return code;
	lock = util_text("%s.lock", path);
	if (!lock)
		return -ENOMEM;
	fd = lock_open(lock);
	/* of another user, who may be making it: wait, then use it */
	shared = fd == -EACCES;
	if (shared)
		fd = lock_open_shared(lock);
	if (fd < 0)
		return lock_error(lock, fd, err);
	code = wait_for_maker(r, fd, shared, lock, err);
	if (code < 0)
		return code;
	if (is_folder(path))
		return 0;
	if (shared)
		return lock_error(lock, -EACCES, err);
	fprintf(stderr, "gpemu-run: making the dataset in %s\n", path);
	return make_locked(r, recipe, path, err);
}

int dataset_make(struct runner *r, struct err *err)
{
	return dataset_each(r, make_one, NULL, err);
}

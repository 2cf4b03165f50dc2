/* SPDX-License-Identifier: MIT */
#include "workloads/run_dataset.h"

#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <xxhash.h>

#include "common/json.h"
#include "common/log.h"
#include "common/units.h"
#include "common/util.h"

/* arbitrary: gpemu-data has no state worth more time to save */
#define GRACE_NS (5 * NS_PER_S)

static bool is_folder(const char *path)
{
	struct stat st;

	return stat(path, &st) == 0 && S_ISDIR(st.st_mode);
}

/* `dir:`, relative to the workload file unless absolute. */
static int locate_dir(struct runner *r, const char *dir, struct err *err)
{
	_cleanup_free_ char *copy = strdup(r->w->path);
	_cleanup_free_ char *path = NULL;

	if (!copy)
		return -ENOMEM;
	if (asprintf(&path, "%s%s%s", dir[0] == '/' ? "" : dirname(copy),
		     dir[0] == '/' ? "" : "/", dir) < 0)
		return -ENOMEM;
	if (!is_folder(path))
		return conf_node_error(conf_node_get(r->w->dataset, "dir"),
				       r->w->path, err, "no folder %s", path);
	r->data = realpath(path, NULL);
	return r->data ? 0 : -errno;
}

static int default_dir(char **ret, struct err *err)
{
	const char *cache = getenv("XDG_CACHE_HOME");
	const char *home = getenv("HOME");
	int n;

	if (cache && cache[0] == '/')
		n = asprintf(ret, "%s/gpemu", cache);
	else if (home && home[0] == '/')
		n = asprintf(ret, "%s/.cache/gpemu", home);
	else
		return err_set(err, -ENOENT,
			       "no home folder to keep datasets in: use "
			       "--data-dir");
	return n < 0 ? -ENOMEM : 0;
}

int dataset_locate(struct runner *r, const char *data_dir, struct err *err)
{
	json_auto_t *recipe = workload_dataset(r->w);
	_cleanup_free_ char *text = NULL, *dir = NULL, *made = NULL;
	const char *name;
	int code = 0;

	if (workload_dir(r->w))
		return locate_dir(r, workload_dir(r->w), err);
	text = recipe ? json_dumps(recipe, JSON_COMPACT | JSON_SORT_KEYS)
		      : NULL;
	if (!text)
		return -ENOMEM;
	if (!data_dir) {
		code = default_dir(&made, err);
		data_dir = made;
	}
	if (code == 0)
		code = runner_mkdirs(data_dir, err);
	if (code < 0)
		return code;
	dir = realpath(data_dir, NULL);
	name = json_string_value(json_object_get(recipe, "dataset"));
	if (!dir ||
	    asprintf(&r->data, "%s/%s-%016llx", dir,
		     name && !strchr(name, '/') ? name : "data",
		     (unsigned long long)XXH3_64bits(text, strlen(text))) < 0)
		return -ENOMEM;
	return 0;
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
	/* its progress bar and complaints are for the terminal */
	code = child_start(&child, argv, null_fd, STDERR_FILENO, err);
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

/* With the lock held: make it beside, then give it its name. */
static int make_locked(struct runner *r, struct err *err)
{
	json_auto_t *recipe = workload_dataset(r->w);
	_cleanup_free_ char *beside = NULL, *config = NULL;
	int code;

	if (!recipe || asprintf(&beside, "%s.unfinished", r->data) < 0 ||
	    asprintf(&config, "%s.yaml", r->data) < 0)
		return -ENOMEM;
	runner_remove(beside); /* of a gpemu-run that was killed */
	code = json_write(recipe, config, err);
	if (code == 0)
		code = make_in(r, config, beside, err);
	if (code == 0 && rename(beside, r->data) < 0)
		code = err_set(err, -errno, "%s: %s", r->data, strerror(errno));
	if (code < 0)
		runner_remove(beside);
	return code;
}

int dataset_make(struct runner *r, struct err *err)
{
	_cleanup_free_ char *lock = NULL;
	_cleanup_close_ int fd = -1;

	if (is_folder(r->data))
		return 0;
	if (asprintf(&lock, "%s.lock", r->data) < 0)
		return -ENOMEM;
	fd = open(lock, O_RDWR | O_CREAT | O_CLOEXEC, 0666);
	if (fd < 0)
		return err_set(err, -errno, "%s: %s", lock, strerror(errno));
	if (flock(fd, LOCK_EX | LOCK_NB) < 0)
		return err_set(err, -EAGAIN,
			       "%s: another gpemu-run is making it", r->data);
	if (is_folder(r->data))
		return 0;
	fprintf(stderr, "gpemu-run: making the dataset in %s\n", r->data);
	return make_locked(r, err);
}

/* SPDX-License-Identifier: MIT */
#include "loader/mount.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

#include "common/json.h"
#include "common/util.h"

static char *in_dir(const struct mount *m, const char *name)
{
	char *path;

	return asprintf(&path, "%s/%s", m->dir, name) < 0 ? NULL : path;
}

/* `dir` is canonical. */
static char *control_dir(const char *dir)
{
	_cleanup_free_ char *stats = NULL;
	char *ret;

	if (asprintf(&stats, "%s/.gpemu/stats", dir) < 0) {
		stats = NULL;
		return NULL;
	}
	if (access(stats, R_OK) < 0)
		return NULL;
	return asprintf(&ret, "%s/.gpemu", dir) < 0 ? NULL : ret;
}

void mount_find(const char *dir, struct mount *ret)
{
	_cleanup_free_ char *at = realpath(dir, NULL);
	struct stat first, st;

	ret->dir = NULL;
	if (!at || stat(at, &first) < 0)
		return;
	while (!(ret->dir = control_dir(at))) {
		char *slash = strrchr(at, '/');

		if (!slash || slash == at)
			return;
		*slash = 0;
		if (stat(at, &st) < 0 || st.st_dev != first.st_dev)
			return;
	}
}

void mount_fini(struct mount *m)
{
	free(m->dir);
	m->dir = NULL;
}

int mount_command(const struct mount *m, const char *command, struct err *err)
{
	_cleanup_free_ char *path = in_dir(m, "control");
	_cleanup_close_ int fd = -1;
	int r;

	if (!path)
		return err_set(err, -ENOMEM, "out of memory");
	fd = open(path, O_WRONLY | O_CLOEXEC);
	if (fd >= 0 && write(fd, command, strlen(command)) > 0)
		return 0;
	r = -errno;
	return err_set(err, r, "%s: '%s': %s", path, command, strerror(-r));
}

int mount_mark_epoch(const struct mount *m, struct err *err)
{
	int r = m->dir ? mount_command(m, "epoch", err) : 0;

	return r == -EACCES ? 0 : r;
}

json_t *mount_stats(const struct mount *m)
{
	_cleanup_free_ char *path = m->dir ? in_dir(m, "stats") : NULL;
	json_t *j = NULL;

	if (!path || json_read(path, &j, NULL) < 0)
		return NULL;
	return j;
}

bool mount_hits(const struct mount *m, struct mount_hits *ret)
{
	json_auto_t *j = mount_stats(m);
	const json_t *hits = json_object_get(j, "hits");
	const json_t *misses = json_object_get(j, "misses");

	if (!json_is_integer(hits) || !json_is_integer(misses))
		return false;
	ret->hits = (uint64_t)json_integer_value(hits);
	ret->misses = (uint64_t)json_integer_value(misses);
	return true;
}

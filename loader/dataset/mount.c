/* SPDX-License-Identifier: MIT */
#include "loader/dataset/mount.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

#include "common/json.h"
#include "common/system/control.h"
#include "common/util.h"

/* `dir` is canonical. */
static char *control_dir(const char *dir)
{
	_cleanup_free_ char *ret = NULL;
	_cleanup_close_ int fd = -1;

	if (asprintf(&ret, "%s/.gpemu", dir) < 0)
		ret = NULL;
	if (ret)
		fd = control_open(ret, "stats", O_PATH);
	return fd < 0 ? NULL : TAKE_PTR(ret);
}

void mount_find(const char *dir, struct mount *ret)
{
	_cleanup_free_ char *at = realpath(dir, NULL);
	struct stat first, st;

	*ret = (struct mount){ 0 };
	if (!at || stat(at, &first) < 0)
		return;
	ret->dev = first.st_dev;
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
	_cleanup_close_ int fd = control_open(m->dir, "control", O_WRONLY);
	int r = fd < 0 ? fd : 0;

	if (r == 0 && write(fd, command, strlen(command)) < 0)
		r = -errno;
	return r < 0 ? err_set(err, r, "%s/control: '%s': %s", m->dir, command,
			       strerror(-r))
		     : 0;
}

int mount_mark_epoch(const struct mount *m, struct err *err)
{
	int r = m->dir ? mount_command(m, "epoch", err) : 0;

	return r == -EACCES || r == -EROFS ? 0 : r;
}

json_t *mount_stats(const struct mount *m)
{
	_cleanup_free_ char *path = m->dir ? util_join(m->dir, "stats") : NULL;
	json_t *j = NULL;

	if (!path || json_read(path, &j, NULL) < 0)
		return NULL;
	return j;
}

int mount_nic(const struct mount *m, json_t **ret, struct err *err)
{
	_cleanup_free_ char *path = util_join(m->dir, "nic");

	return path ? json_read(path, ret, err)
		    : err_set(err, -ENOMEM, "out of memory");
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

/* SPDX-License-Identifier: MIT */
#include "loader/dataset/folder.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "common/units.h"

int folder_open(struct folder *f, int dirfd, const char *path, struct err *err)
{
	int r;

	*f = (struct folder){ .path = path };
	f->fd = openat(dirfd, *path ? path : ".",
		       O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	r = -errno;
	if (f->fd < 0)
		return err_set(err, r, "%s: %s", *path ? path : ".",
			       strerror(-r));
	f->dir = fdopendir(f->fd);
	if (!f->dir) {
		close(f->fd);
		return err_set(err, -ENOMEM, "out of memory");
	}
	return 0;
}

int folder_next(struct folder *f, struct err *err)
{
	struct dirent *e;
	int r;

	do {
		errno = 0;
		e = readdir(f->dir);
	} while (e && e->d_name[0] == '.');
	r = -errno;
	if (!e)
		return r ? err_set(err, r, "%s: %s", f->path, strerror(-r)) : 0;
	f->name = e->d_name;
	f->type = e->d_type;
	return 1;
}

bool folder_is_folder(const struct folder *f)
{
	struct statx st;

	if (f->type != DT_UNKNOWN && f->type != DT_LNK)
		return f->type == DT_DIR;
	return folder_look(f->fd, f->name, &st) == 0 && S_ISDIR(st.stx_mode);
}

void folder_close(struct folder *f)
{
	if (f->dir)
		closedir(f->dir);
	f->dir = NULL;
}

int folder_join(char ret[PATH_MAX], const char *path, const char *name,
		struct err *err)
{
	int n = snprintf(ret, PATH_MAX, "%s%s%s", path, *path ? "/" : "", name);

	return n < PATH_MAX ? 0
			    : err_set(err, -ENAMETOOLONG,
				      "%.100s...: a path of more than %d bytes",
				      path, PATH_MAX - 1);
}

int folder_look(int dirfd, const char *path, struct statx *ret)
{
	/* not asked for more: some file systems look further for it */
	unsigned want = STATX_TYPE | STATX_SIZE | STATX_MTIME | STATX_INO;
	int r = statx(dirfd, *path ? path : ".", AT_NO_AUTOMOUNT, want, ret);

	return r < 0 ? -errno : 0;
}

int64_t folder_mtime_ns(const struct statx *st)
{
	return units_time_ns(st->stx_mtime.tv_sec, st->stx_mtime.tv_nsec);
}

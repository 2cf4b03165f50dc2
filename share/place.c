/* SPDX-License-Identifier: MIT */
/* The folders of the sockets. */
#include <errno.h>
#include <string.h>
#include <sys/stat.h>

#include "common/util.h"
#include "share/server.h"

int server_own_folder(const char *folder, mode_t mode, struct err *err)
{
	mode_t mask = umask((mode_t)~mode & 0777);
	int r = mkdir(folder, mode) < 0 && errno != EEXIST ? -errno : 0;
	struct stat st;

	umask(mask);
	if (r == 0 && lstat(folder, &st) < 0)
		r = -errno;
	if (r < 0)
		return err_set(err, r, "%s: %s", folder, strerror(-r));
	/* in /tmp any user can create a folder of this name first */
	if (!S_ISDIR(st.st_mode) || st.st_uid != geteuid() ||
	    st.st_mode & (S_IWGRP | S_IWOTH))
		return err_set(err, -EACCES,
			       "%s: not a private folder of this user; choose "
			       "another --socket",
			       folder);
	return 0;
}

int server_make_folder(const char *path, struct err *err)
{
	_cleanup_free_ char *folder = strdup(path);

	if (!folder)
		return err_set(err, -ENOMEM, "out of memory");
	*strrchr(folder, '/') = '\0';
	return server_own_folder(folder, 0700, err);
}

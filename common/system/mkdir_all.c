/* SPDX-License-Identifier: MIT */
#include "common/system/mkdir_all.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>

#include "common/util.h"

int mkdir_all(const char *path, mode_t mode, struct err *err)
{
	_cleanup_free_ char *copy = strdup(path);
	char *slash = copy && *copy ? copy : NULL;
	struct stat st;

	while (slash) {
		slash = strchr(slash + 1, '/');
		if (slash)
			*slash = 0;
		if (mkdir(copy, mode) < 0 && errno != EEXIST)
			return err_set(err, -errno, "%s: %s", copy,
				       strerror(errno));
		if (slash)
			*slash = '/';
	}
	if (!copy || stat(path, &st) < 0)
		return err_set(err, -errno, "%s: %s", path, strerror(errno));
	if (!S_ISDIR(st.st_mode))
		return err_set(err, -ENOTDIR, "%s: not a folder", path);
	return 0;
}

/* SPDX-License-Identifier: MIT */
#include "net/key_file.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

#include "common/util.h"

ssize_t key_file_read(const char *path, void *buf, size_t n, struct err *err)
{
	struct stat st;
	_cleanup_close_ int fd = util_open_file(AT_FDCWD, path, 0, &st);
	ssize_t r;

	if (fd < 0)
		return err_set(err, fd, "%s: %s", path, strerror(-fd));
	if (!util_follows(st.st_uid))
		return err_set(err, -EACCES,
			       "%s: owned by user %u, who knows the key: use "
			       "one of your own",
			       path, (unsigned)st.st_uid);
	if (st.st_mode & 077)
		return err_set(err, -EACCES,
			       "%s: other users may access the key: chmod 600",
			       path);
	r = util_read_all(fd, buf, n, UTIL_HERE);
	return r < 0 ? err_set(err, (int)r, "%s: %s", path, strerror((int)-r))
		     : r;
}

/* SPDX-License-Identifier: MIT */
/*
 * Landlock, and not openat2(2) with RESOLVE_BENEATH: it holds for whoever opens
 * a file in the process, io_uring and libraries included.
 * Source: Documentation/userspace-api/landlock.rst
 */
#include "common/system/confine.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/landlock.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include "common/util.h"

#define READS (LANDLOCK_ACCESS_FS_READ_FILE | LANDLOCK_ACCESS_FS_READ_DIR)

static int allow(int rules, const char *path)
{
	_cleanup_close_ int fd = open(path, O_PATH | O_CLOEXEC);
	struct landlock_path_beneath_attr beneath = { .parent_fd = fd };
	struct stat st;

	if (fd < 0)
		return errno == ENOENT ? 0 : -errno;
	if (fstat(fd, &st) < 0)
		return -errno;
	beneath.allowed_access =
		S_ISDIR(st.st_mode) ? READS : LANDLOCK_ACCESS_FS_READ_FILE;
	return syscall(SYS_landlock_add_rule, rules, LANDLOCK_RULE_PATH_BENEATH,
		       &beneath, 0) < 0
		       ? -errno
		       : 0;
}

int confine_reads(const char *const *paths, size_t n)
{
	const struct landlock_ruleset_attr attr = { .handled_access_fs =
							    READS };
	_cleanup_close_ int rules =
		(int)syscall(SYS_landlock_create_ruleset, &attr,
			     sizeof(attr.handled_access_fs), 0);
	int r = 0;

	if (rules < 0)
		/* not built in, not enabled, or a filter of a container */
		return errno == ENOSYS || errno == EOPNOTSUPP || errno == EPERM
			       ? -ENOTSUP
			       : -errno;
	for (size_t i = 0; r == 0 && i < n; i++)
		r = allow(rules, paths[i]);
	/* else only root may give up rights for good */
	if (r == 0 && prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
		r = -errno;
	if (r == 0 && syscall(SYS_landlock_restrict_self, rules, 0) < 0)
		r = -errno;
	return r;
}

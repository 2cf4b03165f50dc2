/* SPDX-License-Identifier: MIT */
#include "fs/source/acl.h"

#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/posix_acl.h>
#include <linux/posix_acl_xattr.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "common/util.h"

/* arbitrary: 500 users and groups; a longer list grants nothing */
enum { MOST_BYTES = 4096 };

/*
 * A member of the group, or one of the others, may also be named in the list
 * with fewer rights. So group and others get only the bits that every named
 * entry has, within the mask.
 */
uint32_t acl_limit(uint32_t mode, const void *list, size_t n)
{
	const struct posix_acl_xattr_header *h = list;
	const struct posix_acl_xattr_entry *e = (const void *)(h + 1);
	uint32_t group = 7, all = 7;

	if (n < sizeof(*h) || (n - sizeof(*h)) % sizeof(*e) ||
	    le32toh(h->a_version) != POSIX_ACL_XATTR_VERSION)
		return mode & ~077u;
	for (n = (n - sizeof(*h)) / sizeof(*e); n--; e++)
		switch (le16toh(e->e_tag)) {
		case ACL_GROUP_OBJ: group = le16toh(e->e_perm); break;
		case ACL_USER:
		case ACL_GROUP:
		case ACL_MASK: all &= le16toh(e->e_perm);
		}
	return mode & (~077u | (group & all) << 3 | all);
}

/* Of Linux 6.13, on all machines; Debian 12's headers are older. */
enum { CALL_GETXATTRAT = 464 };
struct xattr_out {
	uint64_t value;
	uint32_t size, flags;
};

static ssize_t list_of(int fd, const char *name, void *list, size_t n)
{
	static const char key[] = "system.posix_acl_access";
	struct xattr_out out = { (uintptr_t)list, (uint32_t)n, 0 };
	char path[NAME_MAX + 40];
	long got;

	if (!name)
		return fgetxattr(fd, key, list, n);
	got = syscall(CALL_GETXATTRAT, fd, name, AT_SYMLINK_NOFOLLOW, key, &out,
		      sizeof(out));
	if (got >= 0 || (errno != ENOSYS && errno != EPERM))
		return got;
	/* three times as slow */
	snprintf(path, sizeof(path), "/proc/self/fd/%d/%s", fd, name);
	return lgetxattr(path, key, list, n);
}

uint32_t acl_limit_file(uint32_t mode, int fd, const char *name)
{
	uint32_t list[MOST_BYTES / 4];
	ssize_t n;

	/* a list does not limit the owner; a link has no list */
	if (!(mode & 077) || S_ISLNK(mode))
		return mode;
	if (!name && S_ISDIR(mode))
		name = "."; /* it may be open with O_PATH */
	n = list_of(fd, name, list, sizeof(list));
	if (n < 0 && (errno == ENODATA || errno == EOPNOTSUPP))
		return mode;
	return acl_limit(mode, list, (size_t)MAX(n, 0));
}

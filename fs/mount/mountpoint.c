/* SPDX-License-Identifier: MIT */
#include "fs/mount/mountpoint.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <mntent.h>
#include <spawn.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/log.h"
#include "common/util.h"
#include "fs/front/mountpoint_hold.h"
#include "fs/mount/options.h"

extern char **environ;

/* The type of the last mount on `path`, or "" when there is none. */
static void mount_type(const char *path, char *type, size_t n)
{
	FILE *f = setmntent("/proc/self/mounts", "re");
	char buf[PATH_MAX + 1024];
	struct mntent m;

	type[0] = 0;
	while (f && getmntent_r(f, &m, buf, sizeof(buf)))
		if (!strcmp(m.mnt_dir, path))
			snprintf(type, n, "%s", m.mnt_type);
	if (f)
		endmntent(f);
}

static bool is_ours(const char *type)
{
	return !strcmp(type, "fuse.gpemu-fs");
}

/* -EBUSY stands for every refusal of fusermount3. */
static int run_fusermount(const char *path, bool lazily)
{
	char *argv[] = { (char *)"fusermount3", (char *)"-u", (char *)"-q",
			 (char *)path,		NULL,	      NULL };
	int status, r;
	pid_t pid;

	if (lazily)
		argv[4] = (char *)"-z";
	r = posix_spawnp(&pid, argv[0], NULL, NULL, argv, environ);
	if (r)
		return -r;
	if (waitpid(pid, &status, 0) < 0)
		return -errno;
	return status == 0 ? 0 : -EBUSY;
}

static int unmount_exactly(const char *path, int flags)
{
	const char *slash = strrchr(path, '/');
	_cleanup_free_ char *up = strndup(path, (size_t)MAX(slash - path, 1));
	_cleanup_close_ int fd = up ? mountpoint_open(up) : -ENOMEM;
	char name[NAME_MAX + 32];

	if (fd < 0)
		return fd;
	snprintf(name, sizeof(name), "/proc/self/fd/%d/%s", fd, slash + 1);
	return umount2(name, flags | UMOUNT_NOFOLLOW) < 0 ? -errno : 0;
}

static int unmount(const char *path, bool lazily)
{
	int r = unmount_exactly(path, lazily ? MNT_DETACH : 0);

	return r == -EPERM ? run_fusermount(path, lazily) : r;
}

/* A mount whose daemon is gone fails every call with ENOTCONN. */
static int clear_stale(const char *path, struct err *err)
{
	char type[64];
	int r;

	mount_type(path, type, sizeof(type));
	if (!is_ours(type))
		return err_set(err, -ENOTCONN,
			       "%s: a dead mount of another program (%s); "
			       "unmount it first",
			       path, type[0] ? type : "unknown");
	log_warn("%s: clearing the mount of a gpemu-fs that was killed", path);
	r = unmount(path, true);
	if (r < 0)
		return err_set(err, r, "%s: cannot clear the dead mount: %s",
			       path, strerror(-r));
	return 0;
}

static bool is_empty(const char *path)
{
	DIR *d = opendir(path);
	struct dirent *e;
	int n = 0;

	while (d && (e = readdir(d)))
		n++;
	if (d)
		closedir(d);
	return n <= 2; /* the dots; unreadable: mount(2) reports it */
}

/* readlink(2) does not access the mounted file system. */
static bool is_link(const char *path)
{
	char c;

	return readlink(path, &c, 1) >= 0;
}

/* Make a path absolute, without access to the mounted file system. */
static char *absolute(const char *path)
{
	_cleanup_free_ char *copy = strdup(path), *dir = NULL;
	char *slash, *full = NULL;
	size_t n = copy ? strlen(copy) : 0;

	while (n > 1 && copy[n - 1] == '/')
		copy[--n] = 0;
	slash = n ? strrchr(copy, '/') : NULL;
	if (!n || !strcmp(copy, ".") || !strcmp(copy, "/") || is_link(copy))
		return realpath(path, NULL);
	dir = slash ? strndup(copy, (size_t)MAX(slash - copy, 1)) : strdup(".");
	char *parent = dir ? realpath(dir, NULL) : NULL;

	if (parent &&
	    asprintf(&full, "%s/%s", strcmp(parent, "/") ? parent : "",
		     slash ? slash + 1 : copy) < 0)
		full = NULL;
	free(parent);
	return full;
}

/* A folder on which nothing is mounted: can it be a mount point? */
static int check_folder(const char *path, const char *options, struct err *err)
{
	struct stat st;

	if (stat(path, &st) < 0)
		return err_set(err, -errno, "%s: %s", path, strerror(errno));
	if (!S_ISDIR(st.st_mode))
		return err_set(err, -ENOTDIR, "%s: not a folder", path);
	if (!setup_has_word(options, "nonempty") && !is_empty(path))
		return err_set(err, -ENOTEMPTY,
			       "%s: not empty, its files would be hidden; use "
			       "an empty folder or -o nonempty",
			       path);
	return 0;
}

/* Clears dead mounts. On success nothing is mounted there, or with `replace` a
 * gpemu-fs. */
static int check_mounts(const char *path, bool replace, struct err *err)
{
	struct statvfs vfs;
	char type[64];
	int r;

	/* not stat(2): the kernel may still answer it for a dead mount */
	while (statvfs(path, &vfs) < 0 && errno == ENOTCONN) {
		r = clear_stale(path, err);
		if (r < 0)
			return r;
	}
	mount_type(path, type, sizeof(type));
	if (!type[0] || (replace && is_ours(type)))
		return 0;
	if (is_ours(type))
		return err_set(err, -EBUSY,
			       "%s: already a mount point (%s); unmount it "
			       "first: fusermount3 -u %s, or use --replace",
			       path, type, path);
	return err_set(err, -EBUSY,
		       "%s: already a mount point (%s); unmount it first", path,
		       type);
}

int mountpoint_running(const char *path, char **ret, struct err *err)
{
	_cleanup_free_ char *full = absolute(path);
	char type[64];

	if (!full)
		return err_set(err, -errno, "%s: %s", path, strerror(errno));
	mount_type(full, type, sizeof(type));
	if (!is_ours(type))
		return err_set(err, -ENOENT, "%s: no gpemu-fs is mounted there",
			       full);
	*ret = TAKE_PTR(full);
	return 0;
}

int mountpoint_prepare(const char *path, const char *options, bool replace,
		       char **ret, struct err *err)
{
	_cleanup_free_ char *full = absolute(path);
	char type[64];
	int r;

	if (!full)
		return err_set(err, -errno, "%s: %s", path, strerror(errno));
	if (access("/dev/fuse", F_OK) < 0)
		return err_set(err, -ENODEV,
			       "/dev/fuse does not exist: load the fuse "
			       "module, or give the container the device");
	if (access("/dev/fuse", R_OK | W_OK) < 0)
		return err_set(err, -EPERM,
			       "no permission to open /dev/fuse: as root, "
			       "chmod 666 /dev/fuse (Debian's default)");
	r = check_mounts(full, replace, err);
	mount_type(full, type, sizeof(type));
	if (r == 0 && !type[0])
		r = check_folder(full, options, err);
	if (r < 0)
		return r;
	*ret = TAKE_PTR(full);
	return 0;
}

int mountpoint_replace(const char *path, struct err *err)
{
	char type[64];
	int r = check_mounts(path, true, err);

	/* mounts may be stacked */
	for (mount_type(path, type, sizeof(type)); r == 0 && is_ours(type);
	     mount_type(path, type, sizeof(type))) {
		r = unmount(path, false);
		if (r == -EBUSY) {
			log_warn("%s: files of the old mount are in use; it "
				 "keeps serving them",
				 path);
			r = unmount(path, true);
		}
		if (r < 0)
			return err_set(err, r, "%s: cannot replace it: %s",
				       path, strerror(-r));
	}
	if (r == 0)
		r = check_mounts(path, false, err);
	return r == 0 ? check_folder(path, "nonempty", err) : r;
}

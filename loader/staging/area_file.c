/* SPDX-License-Identifier: MIT */
#include "loader/staging/area_file.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

#include "common/tick.h"
#include "common/units.h"
#include "common/util.h"

/* Offsets of locks; the file need not be that long. */
enum { LOCK_AT = 0, LIFE_AT = 1 };

/* No util_lock_byte_wait: that waits, with no way to end it, as long as a job
 * that holds the lock is stopped (SIGSTOP). */
int area_file_lock(const struct area_file *f)
{
	return util_lock_byte(f->fd, LOCK_AT, F_WRLCK);
}

void area_file_unlock(const struct area_file *f)
{
	util_lock_byte(f->fd, LOCK_AT, F_UNLCK);
}

int area_file_live(const struct area_file *f, uint32_t i)
{
	return util_lock_byte(f->fd, LIFE_AT + i, F_WRLCK);
}

bool area_file_lives(const struct area_file *f, uint32_t i)
{
	return util_byte_is_locked(f->fd, LIFE_AT + i) > 0;
}

/* May other users write there? */
static int check_owner(int fd, const char *path, struct err *err)
{
	struct stat st;

	if (fstat(fd, &st) < 0)
		return err_set(err, -errno, "%s: %s", path, strerror(errno));
	if (st.st_uid != geteuid())
		return err_set(
			err, -EACCES,
			"%s belongs to user %u; set XDG_RUNTIME_DIR to a "
			"folder of your own",
			path, (unsigned)st.st_uid);
	if (st.st_mode & (S_IWGRP | S_IWOTH))
		return err_set(err, -EACCES,
			       "%s: other users may write there; run chmod "
			       "go-w, or set XDG_RUNTIME_DIR to a folder of "
			       "your own",
			       path);
	return 0;
}

static int open_dir(char **ret_path, struct err *err)
{
	const char *own = secure_getenv("XDG_RUNTIME_DIR");
	int flags = O_RDONLY | O_DIRECTORY | O_CLOEXEC, fd;

	*ret_path = own && own[0] ? strdup(own)
				  : util_text("/dev/shm/gpemu-%u",
					      (unsigned)geteuid());
	if (!*ret_path)
		return err_set(err, -ENOMEM, "out of memory");
	if (!own || !own[0]) {
		mkdir(*ret_path, 0700); /* open reports why not */
		flags |= O_NOFOLLOW;
	}
	fd = open(*ret_path, flags);
	return fd < 0 ? err_set(err, -errno,
				"%s: %s; set XDG_RUNTIME_DIR to a folder of "
				"your own",
				*ret_path, strerror(errno))
		      : fd;
}

int area_name_check(const char *name, struct err *err)
{
	static const char chars[] = "abcdefghijklmnopqrstuvwxyz"
				    "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.";
	size_t n = strlen(name);

	if (n && n <= AREA_NAME && strspn(name, chars) == n)
		return 0;
	return err_set(err, -EINVAL,
		       "'%s' is not a valid name: give NAME:jobs=N, where NAME "
		       "has 1 to %d letters, digits, '-', '_' and '.'",
		       name, AREA_NAME);
}

/* The lock, before there is an area in which one can wait for it. */
static int wait_for_lock(const struct area_file *f, uint64_t wait_ns)
{
	uint64_t start = tick_wall();
	int r;

	while ((r = area_file_lock(f)) == -EAGAIN &&
	       (!wait_ns || tick_wall() - start < wait_ns))
		tick_pause(NS_PER_MS);
	return r;
}

/* Open `path`, f->file in f->dirfd, and lock it. 0: another process has removed
 * it in between. */
static int try_open(struct area_file *f, const char *path, uint64_t wait_ns,
		    struct err *err)
{
	struct stat st;
	int r;

	f->fd = openat(f->dirfd, f->file,
		       O_RDWR | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC,
		       0600);
	r = f->fd < 0 ? -errno : check_owner(f->fd, path, err);
	if (r == 0)
		r = wait_for_lock(f, wait_ns);
	if (r == 0 && fstat(f->fd, &st) < 0)
		r = -errno;
	if (r < 0)
		return err_set(err, r, "%s: %s", path,
			       r == -ELOOP ? "it is a symbolic link; remove it"
			       : r == -EAGAIN
				       ? "another job holds its lock; is it "
					 "stopped?"
				       : strerror(-r));
	if (!S_ISREG(st.st_mode) || st.st_nlink > 1)
		return err_set(err, -EACCES,
			       "%s: not a file of gpemu-train; remove it, or "
			       "choose another NAME",
			       path);
	if (st.st_nlink == 1)
		return 1;
	close(TAKE_FD(f->fd));
	return 0;
}

int area_file_open(const char *name, uint64_t wait_ns, struct area_file *ret,
		   struct err *err)
{
	_cleanup_free_ char *dir = NULL, *path = NULL;
	int r = area_name_check(name, err);

	*ret = (struct area_file){ .dirfd = -1, .fd = -1 };
	if (r < 0)
		return r;
	snprintf(ret->file, sizeof(ret->file), "gpemu-%s.area", name);
	ret->dirfd = open_dir(&dir, err);
	if (ret->dirfd < 0)
		return ret->dirfd;
	r = check_owner(ret->dirfd, dir, err);
	if (r < 0)
		return r;
	path = util_join(dir, ret->file);
	if (!path)
		return err_set(err, -ENOMEM, "out of memory");
	while ((r = try_open(ret, path, wait_ns, err)) == 0)
		;
	return r < 0 ? r : 0;
}

void area_file_unlink(const struct area_file *f)
{
	unlinkat(f->dirfd, f->file, 0);
}

void area_file_close(struct area_file *f)
{
	if (f->fd >= 0)
		close(f->fd);
	if (f->dirfd >= 0)
		close(f->dirfd);
	*f = (struct area_file){ .dirfd = -1, .fd = -1 };
}

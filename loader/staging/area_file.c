/* SPDX-License-Identifier: MIT */
#include "loader/staging/area_file.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

#include "common/util.h"

/* Offsets of locks; the file need not be that long. */
enum { LOCK_AT = 0, LIFE_AT = 1 };

static int lock_at(int fd, int how, short type, off_t at)
{
	struct flock l = { .l_type = type, .l_start = at, .l_len = 1 };

	while (fcntl(fd, how, &l) < 0)
		if (errno != EINTR)
			return -errno;
	return 0;
}

int area_file_lock(const struct area_file *f)
{
	return lock_at(f->fd, F_OFD_SETLKW, F_WRLCK, LOCK_AT);
}

void area_file_unlock(const struct area_file *f)
{
	lock_at(f->fd, F_OFD_SETLK, F_UNLCK, LOCK_AT);
}

int area_file_live(const struct area_file *f, uint32_t i)
{
	return lock_at(f->fd, F_OFD_SETLK, F_WRLCK, LIFE_AT + (off_t)i);
}

bool area_file_lives(const struct area_file *f, uint32_t i)
{
	struct flock l = { .l_type = F_WRLCK,
			   .l_start = LIFE_AT + (off_t)i,
			   .l_len = 1 };

	return fcntl(f->fd, F_OFD_GETLK, &l) == 0 && l.l_type != F_UNLCK;
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
		return err_set(err, -EACCES, "%s: other users may write there",
			       path);
	return 0;
}

static int open_dir(char **ret_path, struct err *err)
{
	const char *own = secure_getenv("XDG_RUNTIME_DIR");
	int flags = O_RDONLY | O_DIRECTORY | O_CLOEXEC, fd;

	if (own && own[0]) {
		*ret_path = strdup(own);
	} else if (asprintf(ret_path, "/dev/shm/gpemu-%u",
			    (unsigned)geteuid()) < 0) {
		*ret_path = NULL;
	} else {
		mkdir(*ret_path, 0700); /* open reports why not */
		flags |= O_NOFOLLOW;
	}
	if (!*ret_path)
		return err_set(err, -ENOMEM, "out of memory");
	fd = open(*ret_path, flags);
	return fd < 0 ? err_set(err, -errno, "%s: %s", *ret_path,
				strerror(errno))
		      : fd;
}

static int check_name(const char *name, struct err *err)
{
	static const char chars[] = "abcdefghijklmnopqrstuvwxyz"
				    "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.";
	size_t n = strlen(name);

	if (n && n <= AREA_NAME && strspn(name, chars) == n)
		return 0;
	return err_set(err, -EINVAL,
		       "'%s' is no name for jobs that share their batches: it "
		       "takes up to %d letters, digits, '-', '_' and '.'",
		       name, AREA_NAME);
}

/* Open and lock. 0: another process has removed it in between. */
static int try_open(struct area_file *f, const char *dir, struct err *err)
{
	struct stat st;
	int r;

	f->fd = openat(f->dirfd, f->file,
		       O_RDWR | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC,
		       0600);
	if (f->fd < 0)
		return err_set(err, -errno, "%s/%s: %s", dir, f->file,
			       strerror(errno));
	r = check_owner(f->fd, f->file, err);
	if (r == 0)
		r = area_file_lock(f);
	if (r == 0 && fstat(f->fd, &st) < 0)
		r = -errno;
	if (r < 0)
		return err_set(err, r, "%s/%s: %s", dir, f->file, strerror(-r));
	if (!S_ISREG(st.st_mode) || st.st_nlink > 1)
		return err_set(err, -EACCES, "%s/%s: not a file of gpemu-train",
			       dir, f->file);
	if (st.st_nlink == 1)
		return 1;
	close(TAKE_FD(f->fd));
	return 0;
}

int area_file_open(const char *name, struct area_file *ret, struct err *err)
{
	_cleanup_free_ char *dir = NULL;
	int r = check_name(name, err);

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
	while ((r = try_open(ret, dir, err)) == 0)
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

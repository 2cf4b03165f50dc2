/* SPDX-License-Identifier: MIT */
#include "s3/store/folders.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <utlist.h>

#include "common/thread.h"
#include "common/util.h"
#include "s3/store/place.h"

/* One that was made, and whose name is not yet on the disk. */
struct folder {
	uint64_t number; /* of its making, from 1 */
	struct folder *prev, *next;
	char path[];
};

void folders_init(struct folders *f, const struct beneath *dir)
{
	*f = (struct folders){ .dir = dir };
	pthread_mutex_init(&f->lock, NULL);
}

void folders_fini(struct folders *f)
{
	struct folder *one, *next;

	DL_FOREACH_SAFE (f->unsynced, one, next)
		free(one);
	pthread_mutex_destroy(&f->lock);
}

int folders_open(int at, const char *name)
{
	int fd = openat(at, name,
			O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

	return fd < 0 ? -errno : fd;
}

/* --- the list ----------------------------------------------------------- */

/* Under the lock. */
static struct folder *find_folder(struct folders *f, const char *path)
{
	struct folder *one;

	DL_FOREACH (f->unsynced, one)
		if (!strcmp(one->path, path))
			return one;
	return NULL;
}

static void drop(struct folders *f, struct folder *one)
{
	DL_DELETE(f->unsynced, one);
	free(one);
}

static void forget_path(struct folders *f, const char *path)
{
	struct folder *one;

	LOCK_SCOPE(&f->lock);
	one = find_folder(f, path);
	if (one)
		drop(f, one);
}

/* Another of the same path may have been made since. */
static void forget(struct folders *f, uint64_t number)
{
	struct folder *one, *next;

	LOCK_SCOPE(&f->lock);
	DL_FOREACH_SAFE (f->unsynced, one, next)
		if (one->number == number)
			drop(f, one);
}

/* 0: its name is on the disk. */
static uint64_t number_of(struct folders *f, const char *path)
{
	const struct folder *one;

	LOCK_SCOPE(&f->lock);
	one = find_folder(f, path);
	return one ? one->number : 0;
}

/* --- make, remove ------------------------------------------------------- */

/* The folder of the first `n` bytes of `path`, whose last name is `name`. */
static int make(struct folders *f, int at, const char *path, size_t n,
		const char *name)
{
	struct folder *one = calloc(1, sizeof(*one) + n + 1);

	if (!one)
		return -ENOMEM;
	memcpy(one->path, path, n);
	if (mkdirat(at, name, 0777) < 0) {
		int r = errno == EEXIST ? 0 : -errno;

		free(one);
		return r;
	}
	LOCK_SCOPE(&f->lock);
	one->number = ++f->n_made;
	DL_APPEND(f->unsynced, one);
	return 0;
}

int folders_make(struct folders *f, const char *path, const char **ret_name)
{
	int fd = folders_open(f->dir->fd, ".");
	const char *rest = path, *slash;

	while (fd >= 0 && (slash = strchr(rest, '/'))) {
		_cleanup_free_ char *name =
			strndup(rest, (size_t)(slash - rest));
		int next =
			name ? make(f, fd, path, (size_t)(slash - path), name)
			     : -ENOMEM;

		if (next == 0)
			next = folders_open(fd, name);
		close(fd);
		fd = next;
		rest = slash + 1;
	}
	*ret_name = rest;
	return fd;
}

void folders_remove(struct folders *f, const char *path)
{
	_cleanup_free_ char *copy = strdup(path);
	char *slash;

	while (copy && (slash = strrchr(copy, '/'))) {
		_cleanup_close_ int fd = -1;
		const char *name = copy;

		*slash = 0;
		if (!strcmp(copy, PLACE_ODD))
			return;
		slash = strrchr(copy, '/');
		if (slash) {
			*slash = 0;
			fd = beneath_open(f->dir, copy, O_RDONLY | O_DIRECTORY,
					  false);
			*slash = '/';
			name = slash + 1;
		} else {
			fd = folders_open(f->dir->fd, ".");
		}
		if (fd < 0 || unlinkat(fd, name, AT_REMOVEDIR) < 0)
			return;
		forget_path(f, copy);
	}
}

/* --- sync --------------------------------------------------------------- */

/* -ENOENT: it has gone. */
static int sync_one(const struct folders *f, const char *path)
{
	_cleanup_close_ int fd =
		beneath_open(f->dir, path, O_RDONLY | O_DIRECTORY, false);

	if (fd < 0)
		return fd == -ENOTDIR ? -ENOENT : fd;
	/* EINVAL: a file system that does not sync folders */
	return fsync(fd) < 0 && errno != EINVAL ? -errno : 0;
}

int folders_sync(struct folders *f, const char *path)
{
	_cleanup_free_ char *copy = strdup(path);
	uint64_t number = 0;
	bool changed = true; /* names in the folder */
	char *slash;
	int r;

	if (!copy)
		return -ENOMEM;
	do {
		slash = strrchr(copy, '/');
		if (slash)
			*slash = 0;
		r = changed ? sync_one(f, slash ? copy : ".") : 0;
		if (r < 0 && r != -ENOENT)
			return r;
		if (r == 0 && number)
			forget(f, number);
		number = slash ? number_of(f, copy) : 0;
		/* one that was removed is a name less in the one above it */
		changed = number || r == -ENOENT;
	} while (slash);
	return 0;
}

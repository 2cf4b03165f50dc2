/* SPDX-License-Identifier: MIT */
#include "fs/upper/upper.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <utlist.h>

#include "common/thread.h"
#include "common/util.h"

/* arbitrary: a hundred thousand names. One list may always be longer. */
enum { MOST_LISTED = 64 << 20 };

/* Memory for a name, which other users may not take without end. */
static int charge(struct upper *u, struct upper_list *l, size_t bytes)
{
	int r = 0;

	if (!l->other)
		return 0;
	LOCK_SCOPE(&u->lock);
	if (u->listed_bytes + bytes > MOST_LISTED &&
	    u->listed_bytes > l->bytes) {
		r = -ENFILE;
	} else {
		u->listed_bytes += bytes;
		l->bytes += bytes;
	}
	return r;
}

static void empty(struct upper *u, struct upper_list *l)
{
	while (l->n)
		free(l->v[--l->n].name);
	pthread_mutex_lock(&u->lock);
	u->listed_bytes -= l->bytes;
	pthread_mutex_unlock(&u->lock);
	l->bytes = 0;
}

struct upper_list *upper_list_new(struct upper *u, bool other)
{
	struct upper_list *l = calloc(1, sizeof(*l));

	if (!l)
		return NULL;
	l->other = other;
	LOCK_SCOPE(&u->lock);
	DL_APPEND(u->lists, l);
	return l;
}

void upper_list_free(struct upper *u, struct upper_list *l)
{
	pthread_mutex_lock(&u->lock);
	DL_DELETE(u->lists, l);
	pthread_mutex_unlock(&u->lock);
	empty(u, l);
	free(l->v);
	free(l);
}

static int add_entry(struct upper *u, uint64_t folder, DIR *dir,
		     const struct dirent *d, struct upper_list *l)
{
	const struct upper_at at = { folder, d->d_name };
	mode_t type = DTTOIF(d->d_type);
	struct stat st;
	int r;

	if (!strcmp(d->d_name, ".") || !strcmp(d->d_name, "..") ||
	    upper_is_taken(u, &at))
		return 0;
	if (d->d_type == DT_UNKNOWN) {
		if (fstatat(dirfd(dir), d->d_name, &st, AT_SYMLINK_NOFOLLOW) <
		    0)
			return errno == ENOENT ? 0 : -errno;
		type = st.st_mode & S_IFMT;
	}
	r = charge(u, l, sizeof(*l->v) + strlen(d->d_name) + 1);
	if (r == 0)
		r = util_reserve(&l->v, &l->allocated, l->n + 1, sizeof(*l->v));
	if (r < 0)
		return r;
	l->v[l->n] = (struct upper_listed){ .name = strdup(d->d_name),
					    .ino = upper_number(d->d_ino),
					    .type = type };
	return l->v[l->n].name ? (l->n++, 0) : -ENOMEM;
}

/* A descriptor for a listing, or -errno. */
static int list_fd(struct upper *u, uint64_t folder)
{
	_cleanup_close_ int at = -1;
	int fd;

	pthread_mutex_lock(&u->paths);
	at = upper_fd(u, folder);
	pthread_mutex_unlock(&u->paths);
	if (at < 0)
		return at;
	fd = openat(at, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

int upper_list(struct upper *u, uint64_t folder, struct upper_list *ret)
{
	int fd = list_fd(u, folder), r = 0;
	const struct dirent *d;
	DIR *dir;

	empty(u, ret);
	if (fd < 0) /* nothing was made in this folder of the dataset */
		return !upper_has(folder) && (fd == -ENOENT || fd == -ENOTDIR)
			       ? 0
			       : fd;
	dir = fdopendir(fd);
	if (!dir) {
		close(fd);
		return -ENOMEM;
	}
	while (r == 0) {
		errno = 0;
		d = readdir(dir);
		if (!d) {
			r = -errno;
			break;
		}
		r = add_entry(u, folder, dir, d, ret);
	}
	closedir(dir);
	return r;
}

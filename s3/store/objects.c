/* SPDX-License-Identifier: MIT */
/*
 * One lock orders all changes of names: a commit, a removal, and the folders
 * that these make and remove. Bytes are written without it.
 */
#include "s3/store/objects.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "common/log.h"
#include "common/thread.h"
#include "common/util.h"
#include "fs/upper/upper.h"
#include "s3/store/folders.h"
#include "s3/store/place.h"

#define ATTRIBUTE "user.gpemu.s3"
#define OWN TREE_CONTROL_NAME
/* arbitrary: file systems have attributes of up to 4 or 64 KiB */
enum { MOST_ATTRIBUTE = 16384 };

struct objects {
	struct upper *upper;
	const struct names *names;
	int uploads;	 /* that folder */
	uint64_t n_made; /* atomic */
	bool attributes; /* the file system has them */
	pthread_mutex_t lock;
	struct index index;
	struct folders folders;
};

/* --- attributes --------------------------------------------------------- */

/* "bytes s.ns etag\nheaders" */
static int write_attribute(struct objects *o, int fd, const struct stored *w)
{
	_cleanup_free_ char *text = NULL;
	int n;

	if (!o->attributes)
		return 0;
	n = asprintf(&text, "%" PRIu64 " %" PRId64 ".%09u %s\n%s", w->bytes,
		     w->mtime_s, w->mtime_ns, w->etag,
		     w->headers ? w->headers : "");
	if (n < 0) {
		text = NULL;
		return -ENOMEM;
	}
	return fsetxattr(fd, ATTRIBUTE, text, (size_t)n, 0) < 0 ? -errno : 0;
}

/* What the attribute says, if it is about these bytes. */
static void read_attribute(int fd, struct stored *w)
{
	_cleanup_free_ char *text = calloc(1, MOST_ATTRIBUTE + 1);
	ssize_t n = text ? fgetxattr(fd, ATTRIBUTE, text, MOST_ATTRIBUTE) : -1;
	char etag[STORED_ETAG];
	uint64_t bytes;
	int64_t s;
	unsigned ns;
	int end;

	if (n < 0 || (size_t)n != strlen(text) ||
	    sscanf(text, "%" SCNu64 " %" SCNd64 ".%9u %40s%n", &bytes, &s, &ns,
		   etag, &end) != 4 ||
	    text[end] != '\n' || bytes != w->bytes || s != w->mtime_s ||
	    ns != w->mtime_ns || etag[0] != '"')
		return;
	strcpy(w->etag, etag);
	w->headers = strdup(text + end + 1);
}

/* Size and time. -ESTALE: it is no file. */
static int describe(int fd, struct stored *w)
{
	struct stat st;

	if (fstat(fd, &st) < 0)
		return -errno;
	if (!S_ISREG(st.st_mode))
		return -ESTALE;
	w->bytes = (uint64_t)st.st_size;
	w->mtime_s = st.st_mtim.tv_sec;
	w->mtime_ns = (uint32_t)st.st_mtim.tv_nsec;
	return 0;
}

/* --- what is there at the start ----------------------------------------- */

static int add_file(struct objects *o, int dir, const char *name,
		    const char *path, const char *key)
{
	struct stored *w;
	int fd, r;

	if (names_find(o->names, key) != TREE_NONE ||
	    index_find(&o->index, key))
		return 0;
	fd = openat(dir, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	if (fd < 0) /* a link, or not ours to read */
		return 0;
	w = stored_new(key);
	r = w ? describe(fd, w) : -ENOMEM;
	if (r == 0) {
		stored_make_etag(key, w->bytes, w->mtime_s, w->mtime_ns,
				 w->etag);
		read_attribute(fd, w);
		w->path = strdup(path);
		r = w->path ? index_reserve(&o->index) : -ENOMEM;
	}
	close(fd);
	if (r == 0)
		index_add(&o->index, w);
	else
		stored_put(w);
	return r == -ESTALE ? 0 : r;
}

static int scan(struct objects *o, int fd, const char *path, bool odd);

/* A folder in one. Those that are not ours to read, that have gone, or that are
 * links by now, have no objects. */
static int scan_folder(struct objects *o, int at, const char *name,
		       const char *path, bool odd)
{
	int fd = place_leads(path, odd) ? folders_open(at, name) : -ENOENT;

	return fd == -EACCES || fd == -ENOENT || fd == -ENOTDIR || fd == -ELOOP
		       ? 0
		       : scan(o, fd, path, odd);
}

/* Takes `fd`, of the folder `path`; `odd`: that of keys that are no paths. */
static int scan(struct objects *o, int fd, const char *path, bool odd)
{
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);
	const struct dirent *d;
	int r = 0;

	if (!dir)
		return fd < 0 ? fd : (close(fd), -ENOMEM);
	while (r == 0 && (d = readdir(dir))) {
		_cleanup_free_ char *below = NULL;
		char key[NAMES_MOST + 1];
		struct stat st;

		if (!strcmp(d->d_name, ".") || !strcmp(d->d_name, "..") ||
		    (!*path && !strcmp(d->d_name, OWN)) ||
		    fstatat(dirfd(dir), d->d_name, &st, AT_SYMLINK_NOFOLLOW) <
			    0)
			continue;
		if (asprintf(&below, "%s%s%s", path, *path ? "/" : "",
			     d->d_name) < 0) {
			below = NULL;
			r = -ENOMEM;
		} else if (S_ISDIR(st.st_mode)) {
			r = scan_folder(o, dirfd(dir), d->d_name, below, odd);
		} else if (S_ISREG(st.st_mode) && place_key(below, odd, key)) {
			r = add_file(o, dirfd(dir), d->d_name, below, key);
		}
	}
	closedir(dir);
	return r;
}

/* A folder of our own. */
static int make_own(int at, const char *name)
{
	if (mkdirat(at, name, S_IRWXU) < 0 && errno != EEXIST)
		return -errno;
	return folders_open(at, name);
}

/* Files of a server that was killed. */
static int empty(int fd)
{
	int own = folders_open(fd, ".");
	DIR *dir = own < 0 ? NULL : fdopendir(own);
	const struct dirent *d;

	if (!dir)
		return own < 0 ? own : (close(own), -ENOMEM);
	while ((d = readdir(dir)))
		if (d->d_name[0] != '.')
			unlinkat(fd, d->d_name, 0);
	closedir(dir);
	return 0;
}

static int start_objects(struct objects *o)
{
	_cleanup_close_ int own = make_own(o->upper->dir.fd, OWN);
	int r, odd;

	if (own < 0)
		return own;
	o->uploads = make_own(own, "uploads");
	r = o->uploads < 0 ? o->uploads : empty(o->uploads);
	o->attributes = fsetxattr(own, ATTRIBUTE, "", 0, 0) == 0;
	if (!o->attributes && r == 0)
		log_warn(
			"--writable: its file system has no extended "
			"attributes of users (%s): ETags and metadata are lost "
			"at the end",
			strerror(errno));
	if (r == 0)
		r = scan(o, folders_open(o->upper->dir.fd, "."), "", false);
	odd = r == 0 ? make_own(own, PLACE_ODD_NAME) : -1;
	if (r == 0)
		r = scan(o, odd, PLACE_ODD, true);
	/* those of a server that was killed before it had synced them */
	if (r == 0 && syncfs(o->upper->dir.fd) < 0)
		r = -errno;
	return r;
}

int objects_new(const char *dir, const struct names *names,
		struct objects **ret, struct err *err)
{
	struct objects *o = calloc(1, sizeof(*o));
	int r;

	if (!o)
		return err_set(err, -ENOMEM, "out of memory");
	o->names = names;
	o->uploads = -1;
	pthread_mutex_init(&o->lock, NULL);
	r = upper_new(dir, names->tree, &o->upper, err);
	if (r == 0)
		folders_init(&o->folders, &o->upper->dir);
	if (r == 0 && (r = start_objects(o)) < 0)
		err_set(err, r, "--writable %s: %s", dir, strerror(-r));
	if (r < 0) {
		objects_free(o);
		return r;
	}
	*ret = o;
	return 0;
}

int objects_limit(struct objects *o, uint64_t bytes, struct err *err)
{
	return upper_limit(o->upper, bytes, 1, err);
}

void objects_free(struct objects *o)
{
	if (!o)
		return;
	if (o->uploads >= 0) {
		empty(o->uploads);
		close(o->uploads);
	}
	index_fini(&o->index);
	if (o->upper)
		folders_fini(&o->folders);
	upper_free(o->upper);
	pthread_mutex_destroy(&o->lock);
	free(o);
}

/* --- reading ------------------------------------------------------------ */

/* Whoever planted something else there meanwhile: only files are opened. */
static int open_stored(struct objects *o, const struct stored *w)
{
	int fd = beneath_open(&o->upper->dir, w->path, O_RDONLY | O_NONBLOCK,
			      false);
	struct stat st;

	if (fd < 0)
		return fd;
	if (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode)) {
		close(fd);
		return -EIO;
	}
	return fd;
}

struct stored *objects_find(struct objects *o, const char *key, int *ret_fd)
{
	struct stored *w;

	if (!o)
		return NULL;
	LOCK_SCOPE(&o->lock);
	w = index_find(&o->index, key);
	if (w && ret_fd)
		*ret_fd = open_stored(o, w);
	return w ? stored_get(w) : NULL;
}

bool objects_list(struct objects *o, const struct names_query *q,
		  char last[NAMES_MOST + 1])
{
	LOCK_SCOPE(&o->lock);

	return names_list(o->names, &o->index, q, last);
}

/* --- writing ------------------------------------------------------------ */

struct number {
	char text[24];
};

static struct number name_of(const struct staged *s)
{
	struct number n;

	snprintf(n.text, sizeof(n.text), "%" PRIu64, s->number);
	return n;
}

/* Of the store's limit, if it has one. */
static uint64_t blocks_of(const struct objects *o, uint64_t bytes)
{
	return o->upper->space.capacity
		       ? upper_space_blocks(&o->upper->space, bytes)
		       : 0;
}

int objects_stage(struct objects *o, uint64_t bytes, struct staged *ret)
{
	uint64_t blocks = blocks_of(o, bytes);
	int r = blocks ? upper_space_take(&o->upper->space, blocks) : 0;

	if (r < 0)
		return r;
	ret->blocks = blocks;
	ret->number = __atomic_add_fetch(&o->n_made, 1, __ATOMIC_RELAXED);
	ret->fd = openat(o->uploads, name_of(ret).text,
			 O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC,
			 0666);
	if (ret->fd >= 0)
		return 0;
	r = -errno;
	ret->number = 0;
	objects_drop(o, ret);
	return r;
}

int objects_reopen(struct objects *o, struct staged *s)
{
	s->fd = openat(o->uploads, name_of(s).text,
		       O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	return s->fd < 0 ? -errno : 0;
}

void objects_drop(struct objects *o, struct staged *s)
{
	if (s->number && s->fd >= 0)
		close(s->fd);
	if (s->number)
		unlinkat(o->uploads, name_of(s).text, 0);
	if (s->blocks)
		upper_space_move(&o->upper->space, 0, s->blocks);
	*s = (struct staged){ .fd = -1 };
}

/* What the device gets back when a name goes. */
static uint64_t blocks_at(const struct objects *o, int dir, const char *name)
{
	struct stat st;

	if (!o->upper->space.capacity ||
	    fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) < 0 ||
	    !S_ISREG(st.st_mode) || st.st_nlink > 1)
		return 0;
	return blocks_of(o, (uint64_t)st.st_size);
}

/* Under the lock. */
static int move_to(struct objects *o, const struct staged *s, const char *path)
{
	const char *name;
	_cleanup_close_ int fd = folders_make(&o->folders, path, &name);
	uint64_t less = fd < 0 ? 0 : blocks_at(o, fd, name);
	int r = 0;

	if (fd < 0)
		r = fd;
	else if (renameat(o->uploads, name_of(s).text, fd, name) < 0)
		r = -errno;
	if (r < 0)
		folders_remove(&o->folders, path);
	else
		upper_space_move(&o->upper->space, 0, less);
	return r;
}

/* Under the lock: where the object is already, or at the path that its key is,
 * or else beside. */
static int settle_object(struct objects *o, const struct staged *s,
			 struct stored *w, const struct stored *now)
{
	int r = -EINVAL;

	if (now) {
		w->path = strdup(now->path);
		return w->path ? move_to(o, s, w->path) : -ENOMEM;
	}
	if (place_is_path(w->key)) {
		w->path = strdup(w->key);
		r = w->path ? move_to(o, s, w->path) : -ENOMEM;
	}
	/* a file where a folder must be, or the other way round */
	if (r == -EINVAL || r == -ENOTDIR || r == -EISDIR || r == -ELOOP ||
	    r == -EEXIST || r == -ENOTEMPTY) {
		free(w->path);
		w->path = place_odd(w->key);
		r = w->path ? move_to(o, s, w->path) : -ENOMEM;
	}
	return r;
}

/* Under the lock. Takes `what` if it succeeds. */
static int add_object(struct objects *o, const struct staged *s,
		      struct stored *what, objects_may *may, void *ctx)
{
	const struct stored *now = index_find(&o->index, what->key);
	int r = may ? may(ctx, now) : 0;

	if (r == 0)
		r = index_reserve(&o->index);
	if (r == 0)
		r = settle_object(o, s, what, now);
	if (r < 0)
		return r;
	upper_space_move(&o->upper->space, blocks_of(o, what->bytes),
			 s->blocks);
	index_add(&o->index, what);
	return 0;
}

int objects_commit(struct objects *o, struct staged *s, struct stored *what,
		   objects_may *may, void *ctx)
{
	int r = describe(s->fd, what);

	if (r == 0)
		r = write_attribute(o, s->fd, what);
	/* before it has its name: until then the disk has the one before it */
	if (r == 0 && fsync(s->fd) < 0)
		r = -errno;
	stored_get(what); /* others may replace it at once */
	if (r == 0) {
		pthread_mutex_lock(&o->lock);
		r = add_object(o, s, what, may, ctx);
		pthread_mutex_unlock(&o->lock);
	}
	if (r < 0) {
		stored_put(what);
	} else {
		close(s->fd);
		*s = (struct staged){ .fd = -1 };
		r = folders_sync(&o->folders, what->path);
	}
	objects_drop(o, s);
	stored_put(what);
	return r;
}

static int remove_file(struct objects *o, const struct stored *w)
{
	const char *slash = strrchr(w->path, '/');
	_cleanup_free_ char *folder =
		slash ? strndup(w->path, (size_t)(slash - w->path))
		      : strdup(".");
	const char *name = slash ? slash + 1 : w->path;
	_cleanup_close_ int fd = -1;
	uint64_t less;

	if (!folder)
		return -ENOMEM;
	fd = beneath_open(&o->upper->dir, folder, O_RDONLY | O_DIRECTORY,
			  false);
	if (fd < 0)
		return fd;
	less = blocks_at(o, fd, name);
	if (unlinkat(fd, name, 0) < 0)
		return -errno;
	upper_space_move(&o->upper->space, 0, less);
	return 0;
}

/* *ret_path: where it was, malloc'ed; NULL: it was not there. */
static int remove_object(struct objects *o, const char *key, objects_may *may,
			 void *ctx, char **ret_path)
{
	struct stored *w;
	char *path;
	int r;

	*ret_path = NULL;
	LOCK_SCOPE(&o->lock);
	w = index_find(&o->index, key);
	r = may ? may(ctx, w) : 0;
	if (r < 0 || !w)
		return r;
	path = strdup(w->path);
	r = path ? remove_file(o, w) : -ENOMEM;
	if (r < 0 && r != -ENOENT) {
		free(path);
		return r;
	}
	if (r == -ENOENT) /* others removed it */
		upper_space_move(&o->upper->space, 0, blocks_of(o, w->bytes));
	folders_remove(&o->folders, path);
	index_remove(&o->index, key);
	*ret_path = path;
	return 0;
}

int objects_remove(struct objects *o, const char *key, objects_may *may,
		   void *ctx)
{
	_cleanup_free_ char *path = NULL;
	int r = remove_object(o, key, may, ctx, &path);

	return r == 0 && path ? folders_sync(&o->folders, path) : r;
}

/* Are they in the same folder? */
static bool are_beside(const char *a, const char *b)
{
	const char *end = strrchr(a, '/');
	size_t n = end ? (size_t)(end - a) + 1 : 0;

	return !strncmp(a, b, n) && !strchr(b + n, '/');
}

void objects_remove_all(struct objects *o, char *const *keys, size_t n,
			int *errors)
{
	_cleanup_free_ char *last = NULL;
	size_t since = 0; /* of those, which wait for its folder */

	for (size_t i = 0; i <= n; i++) {
		_cleanup_free_ char *path = NULL;

		if (i < n && errors[i] == 0)
			errors[i] =
				remove_object(o, keys[i], NULL, NULL, &path);
		if (i < n && (!path || (last && are_beside(last, path))))
			continue;
		if (last) {
			int r = folders_sync(&o->folders, last);

			for (; since < i; since++)
				errors[since] = errors[since] ? errors[since]
							      : r;
			free(last);
		}
		since = i;
		last = TAKE_PTR(path);
	}
}

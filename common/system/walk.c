/* SPDX-License-Identifier: MIT */
/*
 * Folders are read with getdents64(2) from a descriptor that stays the
 * caller's; readdir(3) would take it. A tree is walked depth first, with one
 * path that grows and shrinks, and one list for each folder on the way.
 */
#include "common/system/walk.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <search.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sysmacros.h>

#include "common/units.h"
#include "common/util.h"

/* What readdir(3) takes. Source: glibc, sysdeps/unix/sysv/linux/opendir.c */
enum { BUFFER = 32768 };

/* --- a name --------------------------------------------------------------- */

int walk_look(int dirfd, const char *path, int flags, struct statx *ret)
{
	/* not asked for more: some file systems look further for it */
	unsigned want = STATX_TYPE | STATX_MODE | STATX_UID | STATX_GID |
			STATX_SIZE | STATX_MTIME | STATX_INO | STATX_NLINK;
	int r = statx(dirfd, path, flags | AT_EMPTY_PATH | AT_NO_AUTOMOUNT,
		      want, ret);

	return r < 0 ? -errno : 0;
}

int64_t walk_mtime_ns(const struct statx *st)
{
	return units_time_ns(st->stx_mtime.tv_sec, st->stx_mtime.tv_nsec);
}

static bool is_kind(uint32_t mode)
{
	return S_ISREG(mode) || S_ISDIR(mode) || S_ISLNK(mode);
}

/* Followed, or as a link where that leads nowhere. */
static int follow(int fd, const char *name, struct statx *ret)
{
	int why = walk_look(fd, name, 0, ret), r;

	if (why == 0 && is_kind(ret->stx_mode))
		return 0;
	r = walk_look(fd, name, AT_SYMLINK_NOFOLLOW, ret);
	if (r == 0 && !S_ISLNK(ret->stx_mode))
		return why;
	ret->stx_size = 0;
	return r;
}

static int look(unsigned flags, int fd, const char *name,
		struct walk_entry *ret)
{
	struct statx st;
	int r = flags & WALK_FOLLOW
			? follow(fd, name, &st)
			: walk_look(fd, name, AT_SYMLINK_NOFOLLOW, &st);

	if (r == 0)
		*ret = (struct walk_entry){ .bytes = st.stx_size,
					    .mtime_s = st.stx_mtime.tv_sec,
					    .mtime_ns = st.stx_mtime.tv_nsec,
					    .mode = st.stx_mode,
					    .uid = st.stx_uid,
					    .gid = st.stx_gid,
					    .dev = makedev(st.stx_dev_major,
							   st.stx_dev_minor),
					    .ino = st.stx_ino,
					    .n_names = st.stx_nlink };
	return r;
}

/* --- a folder ------------------------------------------------------------- */

static bool must_look(unsigned flags, unsigned char type)
{
	switch (type) {
	case DT_REG: return flags & WALK_FILES;
	case DT_DIR: return flags & WALK_FOLDERS;
	case DT_LNK: return flags & (WALK_FILES | WALK_FOLLOW);
	case DT_UNKNOWN: return true;
	default: return false; /* left out */
	}
}

static bool is_left_out(unsigned flags, const char *name)
{
	if (name[0] != '.')
		return false;
	return !(flags & WALK_HIDDEN) || !name[1] ||
	       (name[1] == '.' && !name[2]);
}

static int take_name(struct walk_names *w, int fd, const struct dirent64 *d)
{
	struct walk_entry e = { .mode = DTTOIF(d->d_type) };
	int r = 0;

	if (is_left_out(w->flags, d->d_name))
		return 0;
	if (must_look(w->flags, d->d_type))
		r = look(w->flags, fd, d->d_name, &e);
	if (r == -ENOENT)
		return 0; /* gone meanwhile */
	if (r < 0) {
		snprintf(w->failed, sizeof(w->failed), "%s", d->d_name);
		return r;
	}
	return is_kind(e.mode) ? w->name(w->ctx, d->d_name, &e) : 0;
}

/* Not inlined where folders nest: its buffer is large. */
__attribute__((noinline)) int walk_names(struct walk_names *w, int fd)
{
	_Alignas(struct dirent64) char buf[BUFFER];
	ssize_t n;

	w->failed[0] = 0;
	while ((n = getdents64(fd, buf, sizeof(buf))) > 0)
		for (ssize_t at = 0; at < n;) {
			const struct dirent64 *d =
				(const struct dirent64 *)(buf + at);
			int r = take_name(w, fd, d);

			if (r)
				return r;
			at += d->d_reclen;
		}
	return n < 0 ? -errno : 0;
}

static int add_entry(void *ctx, const char *name, const struct walk_entry *e)
{
	struct walk_list *l = ctx;
	size_t n = strlen(name) + 1;

	if (n > UINT32_MAX - l->names_bytes)
		return -E2BIG;
	if (util_reserve(&l->names, &l->names_capacity, l->names_bytes + n, 1) <
		    0 ||
	    util_reserve(&l->entry, &l->capacity, l->n + 1, sizeof(*e)) < 0)
		return -ENOMEM;
	memcpy(l->names + l->names_bytes, name, n);
	l->entry[l->n] = *e;
	l->entry[l->n++].name = (uint32_t)l->names_bytes;
	l->names_bytes += n;
	return 0;
}

static int by_name(const void *a, const void *b, void *names)
{
	const struct walk_entry *x = a, *y = b;

	return strcmp((char *)names + x->name, (char *)names + y->name);
}

int walk_list(int fd, unsigned flags, struct walk_list *ret)
{
	struct walk_names w = { .flags = flags, .name = add_entry, .ctx = ret };
	int r;

	*ret = (struct walk_list){ 0 };
	r = walk_names(&w, fd);
	memcpy(ret->failed, w.failed, sizeof(w.failed));
	if (r == 0 && ret->n)
		qsort_r(ret->entry, ret->n, sizeof(*ret->entry), by_name,
			ret->names);
	return r;
}

void walk_list_fini(struct walk_list *l)
{
	free(l->entry);
	free(l->names);
	*l = (struct walk_list){ 0 };
}

/* --- folders that links lead to ------------------------------------------ */

struct seen {
	uint64_t dev, ino;
	unsigned n;
};

static int by_file(const void *a, const void *b)
{
	const struct seen *x = a, *y = b;

	if (x->ino != y->ino)
		return x->ino < y->ino ? -1 : 1;
	return (x->dev > y->dev) - (x->dev < y->dev);
}

int walk_seen_add(struct walk_seen *s, uint64_t dev, uint64_t ino)
{
	struct seen *one = malloc(sizeof(*one)), **at;

	if (!one)
		return -ENOMEM;
	*one = (struct seen){ .dev = dev, .ino = ino };
	at = tsearch(one, &s->root, by_file);
	if (!at || *at != one)
		free(one);
	if (!at)
		return -ENOMEM;
	(*at)->n += (*at)->n <= WALK_AGAIN;
	return (*at)->n > WALK_AGAIN;
}

void walk_seen_fini(struct walk_seen *s)
{
	tdestroy(s->root, free);
	s->root = NULL;
}

/* --- a tree --------------------------------------------------------------- */

/* A folder on the way from the root. */
struct level {
	const struct level *above;
	uint64_t ino;
	uint32_t dev_major, dev_minor;
	int depth;
};

struct state {
	const struct walk *w;
	char path[PATH_MAX];
	size_t n; /* of the path */
	struct walk_seen seen;
	struct err *err;
};

static int failed(struct state *s, int r)
{
	return err_set(s->err, r, "%s: %s", s->n ? s->path : ".", strerror(-r));
}

static int enter(struct state *s, const char *name)
{
	size_t n = strlen(name), slash = s->n > 0;

	if (s->n + slash + n >= sizeof(s->path))
		return err_set(s->err, -ENAMETOOLONG,
			       "%.100s...: a path of more than %d bytes",
			       s->path, PATH_MAX - 1);
	if (slash)
		s->path[s->n] = '/';
	memcpy(s->path + s->n + slash, name, n + 1);
	s->n += slash + n;
	return 0;
}

static void leave(struct state *s, size_t n)
{
	s->n = n;
	s->path[n] = 0;
}

static int check_level(struct state *s, const struct level *l)
{
	if (l->depth > WALK_DEPTH)
		return err_set(s->err, -ELOOP, "%s: " WALK_TOO_DEEP, s->path);
	for (const struct level *a = l->above; a; a = a->above)
		if (a->ino == l->ino && a->dev_major == l->dev_major &&
		    a->dev_minor == l->dev_minor)
			return err_set(
				s->err, -ELOOP,
				"%s: a link to one of its parent folders",
				s->path);
	return 0;
}

static int walk_folder(struct state *s, int parent, const char *name,
		       const struct level *above, int depth);

static int list_files(struct state *s, const struct walk_list *l)
{
	size_t n = s->n;
	int r = 0;

	for (size_t i = 0; r == 0 && i < l->n; i++) {
		if (S_ISDIR(l->entry[i].mode))
			continue;
		r = enter(s, walk_name(l, &l->entry[i]));
		if (r == 0)
			r = s->w->file(s->w->ctx, s->path, &l->entry[i],
				       s->err);
		leave(s, n);
	}
	return r;
}

static int walk_folders(struct state *s, int fd, const struct walk_list *l,
			const struct level *level)
{
	size_t n = s->n;
	int r = 0;

	for (size_t i = 0; r == 0 && i < l->n; i++) {
		const char *name = walk_name(l, &l->entry[i]);

		if (!S_ISDIR(l->entry[i].mode))
			continue;
		r = enter(s, name);
		if (r == 0)
			r = walk_folder(s, fd, name, level, level->depth + 1);
		leave(s, n);
	}
	return r;
}

static int list_folder(struct state *s, int fd, const struct level *level)
{
	_cleanup_(walk_list_fini) struct walk_list l;
	int r = walk_list(fd, s->w->flags, &l);
	size_t n = s->n;

	if (r < 0) {
		if (l.failed[0] && enter(s, l.failed) < 0)
			return -ENAMETOOLONG;
		r = failed(s, r);
		leave(s, n);
		return r;
	}
	r = list_files(s, &l);
	return r ? r : walk_folders(s, fd, &l, level);
}

/* A descriptor of the folder; *ret_link: a link led to it. */
static int open_folder(const struct state *s, int parent, const char *name,
		       bool *ret_link)
{
	int flags = O_RDONLY | O_DIRECTORY | O_CLOEXEC;
	int fd = openat(parent, *name ? name : ".", flags | O_NOFOLLOW);

	/* ENOTDIR: of a link, as O_DIRECTORY was given */
	*ret_link = fd < 0 && (errno == ELOOP || errno == ENOTDIR) &&
		    s->w->flags & WALK_FOLLOW;
	if (*ret_link)
		fd = openat(parent, name, flags);
	return fd < 0 ? -errno : fd;
}

static int count_link(struct state *s, const struct level *l)
{
	uint64_t dev = makedev(l->dev_major, l->dev_minor);
	int r = walk_seen_add(&s->seen, dev, l->ino);

	if (r <= 0)
		return r < 0 ? failed(s, r) : 0;
	return err_set(s->err, -ELOOP,
		       "%s: links lead to this folder more than %d times",
		       s->path, WALK_AGAIN);
}

/* `name` in `parent`; it is the last of s->path. */
static int walk_folder(struct state *s, int parent, const char *name,
		       const struct level *above, int depth)
{
	bool link;
	_cleanup_close_ int fd = open_folder(s, parent, name, &link);
	struct level level = { .above = above, .depth = depth };
	struct statx st;
	int r = fd < 0 ? fd : walk_look(fd, "", 0, &st);

	if (r < 0)
		return failed(s, r);
	level.ino = st.stx_ino;
	level.dev_major = st.stx_dev_major;
	level.dev_minor = st.stx_dev_minor;
	r = check_level(s, &level);
	if (r == 0 && link)
		r = count_link(s, &level);
	if (r == 0 && s->w->folder)
		r = s->w->folder(s->w->ctx, s->path, &st, s->err);
	return r ? r : list_folder(s, fd, &level);
}

int walk_tree(const struct walk *w, int dirfd, const char *path,
	      struct err *err)
{
	struct state s = { .w = w, .err = err };
	int depth = *path != 0;
	int r = enter(&s, path);

	for (const char *at = path; (at = strchr(at, '/')); at++)
		depth++;
	if (r == 0)
		r = walk_folder(&s, dirfd, path, NULL, depth);
	walk_seen_fini(&s.seen);
	return r;
}

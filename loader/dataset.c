/* SPDX-License-Identifier: MIT */
#include "loader/dataset.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

#include "common/util.h"

/* Deep enough for any dataset, shallow enough to stop at a link to a parent.
 * arbitrary: no known dataset nests classes this deep */
enum { MAX_DEPTH = 16 };

struct entry {
	size_t path;	/* in names */
	size_t dir_len; /* of the folder's part of the path */
	uint64_t size;
	uint32_t label;
};

struct scan {
	struct dataset *d;
	size_t names_len, names_cap;
	struct entry *entries;
	size_t n, cap;
	struct err *err;
};

static int no_memory(struct err *err)
{
	return err_set(err, -ENOMEM, "out of memory while listing a dataset");
}

/* Make room for one more item of `item` bytes, or for `want` items. */
static int grow(void *pp, size_t *cap, size_t want, size_t item)
{
	size_t new_cap = MAX(*cap ? *cap * 2 : 1024, want);
	void *p;

	if (want <= *cap)
		return 0;
	p = reallocarray(*(void **)pp, new_cap, item);
	if (!p)
		return -ENOMEM;
	*(void **)pp = p;
	*cap = new_cap;
	return 0;
}

static int add_file(struct scan *s, const char *path, size_t dir_len,
		    uint64_t size, uint32_t label)
{
	size_t len = strlen(path) + 1;

	if (s->n >= UINT32_MAX)
		return err_set(s->err, -E2BIG,
			       "more than %u samples in one dataset",
			       UINT32_MAX);
	if (grow(&s->d->names, &s->names_cap, s->names_len + len, 1) < 0 ||
	    grow(&s->entries, &s->cap, s->n + 1, sizeof(*s->entries)) < 0)
		return no_memory(s->err);
	memcpy(s->d->names + s->names_len, path, len);
	s->entries[s->n++] = (struct entry){
		.path = s->names_len,
		.dir_len = dir_len,
		.size = size,
		.label = label,
	};
	s->names_len += len;
	return 0;
}

static int open_dir(struct scan *s, const char *path, DIR **ret)
{
	int fd = openat(s->d->dirfd, *path ? path : ".",
			O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	int r = -errno;

	if (fd < 0)
		return err_set(s->err, r, "%s: %s", path, strerror(-r));
	*ret = fdopendir(fd);
	if (!*ret) {
		close(fd);
		return no_memory(s->err);
	}
	return 0;
}

/* The next name that is not hidden; NULL at the end, or with *ret < 0. */
static const char *next_name(DIR *dir, int *ret)
{
	struct dirent *e;

	do {
		errno = 0;
		e = readdir(dir);
	} while (e && e->d_name[0] == '.');
	*ret = e ? 0 : -errno;
	return e ? e->d_name : NULL;
}

/* All regular files below `dir`; its folders too when `depth` > 0. */
static int walk(struct scan *s, const char *dir, uint32_t label, int depth)
{
	const char *name;
	DIR *d = NULL;
	int r = open_dir(s, dir, &d), rd = 0;

	while (r == 0 && (name = next_name(d, &rd))) {
		_cleanup_free_ char *path = NULL;
		struct stat st = { .st_mode = S_IFREG };

		if (asprintf(&path, "%s%s%s", dir, *dir ? "/" : "", name) < 0) {
			path = NULL;
			r = no_memory(s->err);
			break;
		}
		if (fstatat(s->d->dirfd, path, &st, 0) < 0)
			st = (struct stat){ .st_mode = S_IFREG };
		if (S_ISREG(st.st_mode))
			r = add_file(s, path, strlen(dir), (uint64_t)st.st_size,
				     label);
		else if (S_ISDIR(st.st_mode) && depth > 1)
			r = walk(s, path, label, depth - 1);
		else if (S_ISDIR(st.st_mode) && depth == 1)
			r = err_set(s->err, -ELOOP, "%s: nested too deeply",
				    path);
	}
	if (r == 0 && rd < 0)
		r = err_set(s->err, rd, "%s: %s", dir, strerror(-rd));
	if (d)
		closedir(d);
	return r;
}

/* By folder, then by name, bytewise: sorted(os.walk()) of Python. */
static int by_path(const void *a, const void *b, void *names)
{
	const struct entry *x = a, *y = b;
	const char *px = (char *)names + x->path, *py = (char *)names + y->path;
	size_t n = MIN(x->dir_len, y->dir_len);
	int c = memcmp(px, py, n);

	if (c)
		return c;
	if (x->dir_len != y->dir_len)
		return x->dir_len < y->dir_len ? -1 : 1;
	return strcmp(px + n, py + n);
}

static int by_name(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

struct classes {
	char **name;
	size_t n, cap;
};

static void classes_fini(struct classes *c)
{
	for (size_t i = 0; i < c->n; i++)
		free(c->name[i]);
	free(c->name);
}

static int list_classes(struct scan *s, struct classes *c)
{
	const char *name;
	DIR *d = NULL;
	int r = open_dir(s, "", &d), rd = 0;

	while (r == 0 && (name = next_name(d, &rd))) {
		struct stat st;

		if (fstatat(s->d->dirfd, name, &st, 0) < 0 ||
		    !S_ISDIR(st.st_mode))
			continue;
		if (grow(&c->name, &c->cap, c->n + 1, sizeof(*c->name)) < 0 ||
		    !(c->name[c->n] = strdup(name)))
			r = no_memory(s->err);
		else
			c->n++;
	}
	if (r == 0 && rd < 0)
		r = err_set(s->err, rd, "%s", strerror(-rd));
	if (d)
		closedir(d);
	if (c->n)
		qsort(c->name, c->n, sizeof(*c->name), by_name);
	return r;
}

static int scan_all(struct scan *s)
{
	_cleanup_(classes_fini) struct classes c = { 0 };
	int r = list_classes(s, &c);

	/* files only, without folders: there are none then */
	if (r == 0 && c.n == 0)
		r = walk(s, "", 0, 0);
	for (size_t i = 0; r == 0 && i < c.n; i++) {
		size_t first = s->n;

		r = walk(s, c.name[i], (uint32_t)i, MAX_DEPTH);
		if (s->n > first)
			qsort_r(s->entries + first, s->n - first,
				sizeof(*s->entries), by_path, s->d->names);
	}
	if (r == 0 && c.n == 0 && s->n)
		qsort_r(s->entries, s->n, sizeof(*s->entries), by_path,
			s->d->names);
	s->d->n_classes = c.n ? (uint32_t)c.n : 1;
	return r;
}

static int fill(struct scan *s)
{
	struct dataset *d = s->d;

	d->path = calloc(s->n, sizeof(*d->path));
	d->size = calloc(s->n, sizeof(*d->size));
	d->label = calloc(s->n, sizeof(*d->label));
	if (!d->path || !d->size || !d->label)
		return no_memory(s->err);
	for (size_t i = 0; i < s->n; i++) {
		d->path[i] = s->entries[i].path;
		d->size[i] = s->entries[i].size;
		d->label[i] = s->entries[i].label;
		d->bytes += d->size[i];
		d->largest = MAX(d->largest, d->size[i]);
	}
	d->n = s->n;
	return 0;
}

int dataset_open(const char *dir, struct dataset *ret, struct err *err)
{
	struct scan s = { .d = ret, .err = err };
	int r;

	*ret = (struct dataset){ .dirfd = -1 };
	ret->dirfd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (ret->dirfd < 0) {
		r = -errno;
		return err_set(err, r, "%s: %s", dir, strerror(-r));
	}
	r = scan_all(&s);
	if (r < 0)
		err_prefix(err, "%s", dir);
	if (r == 0 && s.n == 0)
		r = err_set(err, -ENODATA,
			    "%s: no samples: neither files nor class folders "
			    "with files",
			    dir);
	if (r == 0)
		r = fill(&s);
	free(s.entries);
	return r;
}

void dataset_close(struct dataset *d)
{
	if (d->dirfd >= 0)
		close(d->dirfd);
	free(d->names);
	free(d->path);
	free(d->size);
	free(d->label);
	for (uint32_t i = 0; i < d->n_containers; i++)
		close(d->container_fd[i]);
	free(d->container_fd);
	free(d->container);
	free(d->offset);
	free(d->group);
	*d = (struct dataset){ .dirfd = -1 };
}

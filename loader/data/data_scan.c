/* SPDX-License-Identifier: MIT */
#include "loader/data/data_scan.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/util.h"

enum { DEEPEST = 32 };

static int add(struct data_scan *s, char *path, uint64_t bytes)
{
	int r = util_reserve(&s->files, &s->capacity, s->n + 1,
			     sizeof(*s->files));

	if (r == 0)
		s->files[s->n++] = (struct data_scan_file){ path, bytes };
	return r;
}

static int folder(struct data_scan *s, const char *dir, const char *below,
		  int depth, struct err *err);

/* Takes over `path`, which is relative to `dir`. */
static int entry(struct data_scan *s, DIR *d, const char *name, const char *dir,
		 char *path, int depth, struct err *err)
{
	_cleanup_free_ char *own = path;
	struct stat st;
	int r = 0;

	if (fstatat(dirfd(d), name, &st, 0) < 0)
		return err_set(err, -errno, "%s/%s: %s", dir, path,
			       strerror(errno));
	if (S_ISDIR(st.st_mode))
		return folder(s, dir, path, depth + 1, err);
	if (S_ISREG(st.st_mode)) {
		r = add(s, path, (uint64_t)st.st_size);
		if (r == 0)
			own = NULL;
	}
	return r;
}

static int entries(struct data_scan *s, DIR *d, const char *dir,
		   const char *below, int depth, struct err *err)
{
	uint64_t before = s->n;
	struct dirent *e;
	int r = 0;

	while (r == 0 && (errno = 0, e = readdir(d))) {
		char *path;

		if (e->d_name[0] == '.')
			continue;
		if (asprintf(&path, "%s%s%s", below, *below ? "/" : "",
			     e->d_name) < 0)
			return -ENOMEM;
		r = entry(s, d, e->d_name, dir, path, depth, err);
	}
	if (r == 0 && errno)
		return err_set(err, -errno, "%s/%s: %s", dir, below,
			       strerror(errno));
	/* what subfolders added counts for them */
	for (uint64_t i = before; i < s->n; i++)
		if (!strchr(s->files[i].path + strlen(below) + !!*below, '/')) {
			s->folders++;
			break;
		}
	return r;
}

static int folder(struct data_scan *s, const char *dir, const char *below,
		  int depth, struct err *err)
{
	_cleanup_free_ char *path = NULL;
	DIR *d;
	int r;

	if (asprintf(&path, "%s%s%s", dir, *below ? "/" : "", below) < 0)
		return -ENOMEM;
	if (depth > DEEPEST)
		return err_set(err, -ELOOP, "%s: folders too deep", path);
	d = opendir(path);
	if (!d)
		return err_set(err, -errno, "%s: %s", path, strerror(errno));
	r = entries(s, d, dir, below, depth, err);
	closedir(d);
	return r;
}

static int compare(const void *a, const void *b)
{
	const struct data_scan_file *x = a, *y = b;

	return strcmp(x->path, y->path);
}

int data_scan_read(const char *dir, struct data_scan *ret, struct err *err)
{
	int r;

	*ret = (struct data_scan){ 0 };
	r = folder(ret, dir, "", 0, err);
	if (r < 0)
		return r;
	if (ret->n)
		qsort(ret->files, ret->n, sizeof(*ret->files), compare);
	return 0;
}

void data_scan_fini(struct data_scan *s)
{
	for (uint64_t i = 0; i < s->n; i++)
		free(s->files[i].path);
	free(s->files);
	*s = (struct data_scan){ 0 };
}

int data_scan_file_read(const char *path, uint8_t **ret, size_t *ret_n,
			struct err *err)
{
	struct stat st;
	_cleanup_close_ int fd = util_open_file(AT_FDCWD, path, 0, &st);
	char *bytes;
	int r = fd < 0 ? fd : util_read_whole(fd, SIZE_MAX, &bytes, ret_n);

	if (r < 0)
		return err_set(err, r, "%s: %s", path, strerror(-r));
	*ret = (uint8_t *)bytes;
	return 0;
}

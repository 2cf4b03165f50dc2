/* SPDX-License-Identifier: MIT */
#include "platform/k8s/grant_files.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/log.h"
#include "common/replace.h"
#include "common/util.h"

/* The last line: without it the file is not whole. */
#define LAST "end"

/* arbitrary: more than all devices of a resource have */
enum { FILE_MOST = NODE_MAX_DEVICES * (K8S_ID + 1) + 4096 };

static int write_all(FILE *f, const char *resource,
		     const struct k8s_device *const *devices, size_t n)
{
	fprintf(f, "%s\n", resource);
	for (size_t i = 0; i < n; i++)
		fprintf(f, "%s\n", devices[i]->id);
	fprintf(f, LAST "\n");
	return fflush(f) == 0 && fsync(fileno(f)) == 0 ? 0 : -errno;
}

int grant_files_write(const char *folder, const char *name,
		      const char *resource,
		      const struct k8s_device *const *devices, size_t n)
{
	_cleanup_free_ char *path = util_join(folder, name);
	struct replace r;
	FILE *f;
	int code;

	if (!path)
		return -ENOMEM;
	if (mkdir(folder, 0700) < 0 && errno != EEXIST)
		return -errno;
	code = replace_begin_stream(&r, path, &f);
	if (code < 0)
		return code;
	code = write_all(f, resource, devices, n);
	if (code < 0) {
		fclose(f);
		return replace_end(&r, code);
	}
	return replace_end_stream(&r, f);
}

void grant_files_remove(const char *folder, const char *name)
{
	_cleanup_free_ char *path = util_join(folder, name);

	if (!path || (unlink(path) < 0 && errno != ENOENT))
		log_warn("%s/%s: cannot be removed, and will be granted again: "
			 "%s",
			 folder, name, strerror(errno));
}

bool grant_files_has(const char *folder, const char *name)
{
	_cleanup_free_ char *path = util_join(folder, name);

	return path && access(path, F_OK) == 0;
}

int grant_file_parse(char *bytes, size_t n, char ***ret, size_t *ret_n)
{
	_cleanup_free_ char **lines = NULL;
	size_t size = 0, k = 0;

	for (char *at = bytes, *end; at < bytes + n; at = end + 1) {
		end = memchr(at, '\n', (size_t)(bytes + n - at));
		if (!end || end == at || memchr(at, '\0', (size_t)(end - at)))
			return -EINVAL;
		*end = '\0';
		if (util_reserve(&lines, &size, k + 1, sizeof(char *)) < 0)
			return -ENOMEM;
		lines[k++] = at;
	}
	if (k < 2 || strcmp(lines[k - 1], LAST) != 0)
		return -EINVAL;
	*ret_n = k - 1;
	*ret = TAKE_PTR(lines);
	return 0;
}

static int load(const char *path, const char *name,
		int (*fn)(void *, const char *, char *const *, size_t),
		void *ctx)
{
	_cleanup_free_ char *bytes = NULL;
	_cleanup_free_ char **lines = NULL;
	size_t size, n;
	int r = util_read_file(path, FILE_MOST, &bytes, &size);

	if (r == 0)
		r = grant_file_parse(bytes, size, &lines, &n);
	return r < 0 ? r : fn(ctx, name, lines, n);
}

int grant_files_load(const char *folder,
		     int (*fn)(void *ctx, const char *name, char *const *lines,
			       size_t n),
		     void *ctx, struct err *err)
{
	DIR *dir = opendir(folder);
	const struct dirent *e;
	int r = 0;

	if (!dir && errno != ENOENT)
		return err_set(err, -errno, "%s: %s", folder, strerror(errno));
	while (dir && r == 0 && (e = readdir(dir))) {
		_cleanup_free_ char *path = util_join(folder, e->d_name);

		if (e->d_name[0] == '.') {
			if (path && strlen(e->d_name) > 2)
				unlink(path); /* of a write that was killed */
			continue;
		}
		r = path ? load(path, e->d_name, fn, ctx) : -ENOMEM;
		if (r == -EINVAL || r == -EFBIG) {
			log_warn("%s: no grant of this node; removed", path);
			unlink(path);
			r = 0;
		} else if (r == -EISDIR || r == -ESPIPE || r == -ENOENT) {
			r = 0; /* no file, or not any more */
		} else if (r < 0) {
			err_set(err, r, "%s/%s: %s", folder, e->d_name,
				strerror(-r));
		}
	}
	if (dir)
		closedir(dir);
	return r;
}

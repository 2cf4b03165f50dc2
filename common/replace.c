/* SPDX-License-Identifier: MIT */
#include "common/replace.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdbool.h>
#include <string.h>
#include <sys/random.h>

#include "common/util.h"

enum {
	/* arbitrary: names of 64 random bits are taken only on purpose */
	TRIES = 100,
	RANDOM_DIGITS = 16,
};

static const char *base_of(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

/* O_EXCL follows no link. mkostemp would do the same, without the umask. */
static int try_one(struct replace *r, int flags, mode_t mode)
{
	const char *name = base_of(r->path);
	uint64_t random;
	int fd;

	if (getrandom(&random, sizeof(random), 0) != sizeof(random))
		return -EIO;
	r->beside = util_text("%.*s.%s.%0*" PRIx64 ".tmp",
			      (int)(name - r->path), r->path, name,
			      RANDOM_DIGITS, random);
	if (!r->beside)
		return -ENOMEM;
	fd = openat(r->dirfd, r->beside, flags | O_CREAT | O_EXCL | O_CLOEXEC,
		    mode);
	if (fd >= 0)
		return fd;
	fd = -errno;
	free(TAKE_PTR(r->beside));
	return fd;
}

static int begin_file(struct replace *r, int dirfd, const char *path, int flags,
		      mode_t mode)
{
	int fd = -EEXIST;

	*r = (struct replace){ .dirfd = dirfd, .path = path };
	for (int i = 0; fd == -EEXIST && i < TRIES; i++)
		fd = try_one(r, flags, mode);
	return fd;
}

int replace_begin(struct replace *r, int dirfd, const char *path, mode_t mode)
{
	return begin_file(r, dirfd, path, O_RDWR, mode);
}

int replace_begin_stream(struct replace *r, const char *path, FILE **ret)
{
	int fd = begin_file(r, AT_FDCWD, path, O_WRONLY, 0666);

	if (fd < 0)
		return fd;
	*ret = fdopen(fd, "w");
	if (*ret)
		return 0;
	close(fd);
	return replace_end(r, -ENOMEM);
}

int replace_end(struct replace *r, int code)
{
	if (code == 0 && renameat(r->dirfd, r->beside, r->dirfd, r->path) < 0)
		code = -errno;
	if (code < 0)
		unlinkat(r->dirfd, r->beside, 0);
	free(TAKE_PTR(r->beside));
	return code;
}

int replace_end_stream(struct replace *r, FILE *f)
{
	int code = util_flush(f);

	if (fclose(f) != 0 && code == 0)
		code = -errno;
	return replace_end(r, code);
}

int replace_open(struct replace *r, const char *folder, const char *name,
		 FILE **ret, struct err *err)
{
	char *path = folder ? util_join(folder, name) : strdup(name);
	int code = path ? replace_begin_stream(r, path, ret) : -ENOMEM;

	if (code < 0)
		err_set(err, code, "%s: %s", path ? path : name,
			strerror(-code));
	if (code < 0)
		free(path);
	else
		r->joined = path;
	return code;
}

int replace_close(struct replace *r, FILE *f, int code, struct err *err)
{
	if (code == 0) {
		code = replace_end_stream(r, f);
	} else {
		fclose(f);
		replace_end(r, code);
	}
	if (code < 0)
		err_set(err, code, "%s: %s", r->path, strerror(-code));
	free(TAKE_PTR(r->joined));
	return code;
}

/* .NAME.RANDOM.tmp */
static bool is_beside(const char *entry, const char *name)
{
	size_t n = strlen(name);

	if (entry[0] != '.' || strncmp(entry + 1, name, n) != 0 ||
	    entry[1 + n] != '.')
		return false;
	entry += 1 + n + 1;
	return strspn(entry, "0123456789abcdef") == RANDOM_DIGITS &&
	       !strcmp(entry + RANDOM_DIGITS, ".tmp");
}

void replace_sweep(const char *path)
{
	const char *name = base_of(path);
	_cleanup_free_ char *folder =
		name == path ? strdup(".")
			     : strndup(path, (size_t)(name - path));
	DIR *dir = folder ? opendir(folder) : NULL;
	const struct dirent *entry;

	while (dir && (entry = readdir(dir)))
		if (is_beside(entry->d_name, name))
			unlinkat(dirfd(dir), entry->d_name, 0);
	if (dir)
		closedir(dir);
}

/* SPDX-License-Identifier: MIT */
#include "common/replace.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <string.h>
#include <sys/random.h>

#include "common/util.h"

/* arbitrary: names of 64 random bits are taken only on purpose */
enum { TRIES = 100 };

/* O_EXCL follows no link. mkostemp would do the same, without the umask. */
static int try_one(struct replace *r)
{
	const char *slash = strrchr(r->path, '/');
	const char *name = slash ? slash + 1 : r->path;
	uint64_t random;
	int fd;

	if (getrandom(&random, sizeof(random), 0) != sizeof(random))
		return -EIO;
	if (asprintf(&r->beside, "%.*s.%s.%016" PRIx64 ".tmp",
		     (int)(name - r->path), r->path, name, random) < 0) {
		r->beside = NULL;
		return -ENOMEM;
	}
	fd = openat(r->dirfd, r->beside, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC,
		    0666);
	if (fd >= 0)
		return fd;
	fd = -errno;
	free(TAKE_PTR(r->beside));
	return fd;
}

int replace_begin(struct replace *r, int dirfd, const char *path)
{
	int fd = -EEXIST;

	*r = (struct replace){ .dirfd = dirfd, .path = path };
	for (int i = 0; fd == -EEXIST && i < TRIES; i++)
		fd = try_one(r);
	return fd;
}

int replace_begin_stream(struct replace *r, const char *path, FILE **ret)
{
	int fd = replace_begin(r, AT_FDCWD, path);

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
	int code = ferror(f) ? -EIO : 0;

	if (fclose(f) != 0)
		code = -errno;
	return replace_end(r, code);
}

/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <xxhash.h>

#include "common/replace.h"
#include "common/util.h"
#include "loader/dataset/index.h"
#include "loader/dataset/peek.h"

/* After the magic and the sum. Source: index.h */
enum { SUM = 8, SUMMED = 16 };

static int load(int fd, void **ret, size_t *ret_n)
{
	_cleanup_free_ char *v = NULL;
	struct peek p = { .fd = fd };
	struct stat st;
	int r;

	if (fstat(fd, &st) < 0)
		return -errno;
	if (!S_ISREG(st.st_mode) || st.st_size < SUMMED)
		return -EINVAL;
	p.size = (uint64_t)st.st_size;
	v = malloc(p.size);
	r = v ? peek_copy(&p, 0, p.size, v) : -ENOMEM;
	if (r < 0)
		return r;
	*ret = TAKE_PTR(v);
	*ret_n = p.size;
	return 0;
}

int index_read(const char *path, uint64_t recipe, struct dataset *ret,
	       struct err *err)
{
	_cleanup_close_ int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	_cleanup_free_ void *v = NULL;
	uint64_t sum;
	size_t n = 0;
	struct notes notes;
	int r = fd < 0 ? -errno : load(fd, &v, &n);

	*ret = (struct dataset){ .dirfd = -1 };
	if (r < 0)
		return err_set(err, r, "%s: %s", path, strerror(-r));
	memcpy(&sum, (char *)v + SUM, sizeof(sum));
	if (XXH3_64bits((char *)v + SUMMED, n - SUMMED) != sum)
		r = err_set(err, -EINVAL, "a damaged index: its checksum");
	else
		r = index_parse(v, n, recipe, ret, err);
	/* more may be added */
	notes = ret->notes;
	ret->notes = (struct notes){ 0 };
	if (r == 0 && notes_merge(&ret->notes, &notes) < 0)
		r = err_set(err, -ENOMEM, "out of memory");
	if (r < 0) {
		notes_fini(&ret->notes);
		*ret = (struct dataset){ .dirfd = -1 };
		err_prefix(err, "%s", path);
		return r;
	}
	ret->block = TAKE_PTR(v);
	return 0;
}

/* No fsync: the checksum detects a torn file after a crash. */
static int replace(const char *path, const void *v, size_t n)
{
	struct replace file;
	_cleanup_close_ int fd = replace_begin(&file, AT_FDCWD, path);

	if (fd < 0)
		return fd;
	/* as readable as the dataset; it holds nothing else */
	return replace_end(&file, fchmod(fd, 0644) < 0
					  ? -errno
					  : util_write_all(fd, v, n));
}

int index_write(const char *path, uint64_t recipe, const struct dataset *d,
		struct err *err)
{
	_cleanup_free_ void *v = NULL;
	size_t n = 0;
	int r = index_format(d, recipe, &v, &n);

	if (r == 0)
		r = replace(path, v, n);
	return r < 0 ? err_set(err, r, "%s: %s", path, strerror(-r)) : 0;
}

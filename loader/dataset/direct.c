/* SPDX-License-Identifier: MIT */
#include "loader/dataset/direct.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/stat.h>
#include <stdbool.h>
#include <string.h>
#include <sys/syscall.h>

#include "common/util.h"

enum { LEAST = 512 };

static int refused(const char *what, const char *why, struct err *err)
{
	return err_set(err, -EOPNOTSUPP,
		       "%s: its file system cannot bypass the page cache (%s)",
		       what, why);
}

/* The unit that the file system reports; DIRECT_MAX: it reports nothing; 0: no
 * O_DIRECT. */
static uint32_t reported_unit(int fd)
{
	struct statx st = { 0 };

	/* glibc 2.36 lacks these fields; the kernel's header has them */
	if (syscall(SYS_statx, fd, "", AT_EMPTY_PATH, STATX_DIOALIGN, &st) <
		    0 ||
	    !(st.stx_mask & STATX_DIOALIGN))
		return DIRECT_MAX;
	return MAX(st.stx_dio_mem_align, st.stx_dio_offset_align);
}

/* Check with one read. `fd` was opened with O_DIRECT. */
static int try(int fd, const char *what, uint32_t *unit, struct err *err)
{
	_cleanup_free_ void *buf = NULL;
	uint32_t u = reported_unit(fd);

	if (u == 0)
		return refused(what, "no O_DIRECT, by statx", err);
	if (u > DIRECT_MAX || (u & (u - 1)))
		return refused(what, "it needs an alignment above 4096 bytes",
			       err);
	u = MAX(u, LEAST);
	if (posix_memalign(&buf, DIRECT_MAX, DIRECT_MAX))
		return err_set(err, -ENOMEM, "out of memory");
	if (pread(fd, buf, u, 0) < 0)
		return refused(what, strerror(errno), err);
	*unit = MAX(*unit, u);
	return 0;
}

static int try_file(const struct dataset *d, uint32_t *unit, struct err *err)
{
	const char *path = dataset_path(d, 0);
	struct stat st;
	_cleanup_close_ int fd = util_open_file(d->dirfd, path, O_DIRECT, &st);

	if (fd == -EINVAL)
		return refused(path, strerror(-fd), err);
	/* the sample's own read reports this error */
	if (fd < 0) {
		*unit = DIRECT_MAX;
		return 0;
	}
	return try(fd, path, unit, err);
}

static void set_containers(const struct dataset *d, uint32_t n, bool on)
{
	for (uint32_t i = 0; i < n; i++) {
		int fd = d->container_fd[i], flags = fcntl(fd, F_GETFL);

		fcntl(fd, F_SETFL, on ? flags | O_DIRECT : flags & ~O_DIRECT);
	}
}

int direct_begin(const struct dataset *d, uint32_t *ret, struct err *err)
{
	uint32_t unit = 0;
	int r = 0;

	if (d->n_containers == 0)
		r = try_file(d, &unit, err);
	set_containers(d, d->n_containers, true);
	for (uint32_t i = 0; r == 0 && i < d->n_containers; i++) {
		int fd = d->container_fd[i];

		if (fcntl(fd, F_GETFL) & O_DIRECT)
			r = try(fd, "container", &unit, err);
		else
			r = refused("container", strerror(EINVAL), err);
	}
	if (r < 0)
		set_containers(d, d->n_containers, false);
	else
		*ret = unit;
	return r;
}

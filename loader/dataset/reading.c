/* SPDX-License-Identifier: MIT */
#include "loader/dataset/reading.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/fiemap.h>
#include <linux/fs.h>
#include <linux/stat.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>

#include "common/util.h"
#include "loader/dataset/mount.h"

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

/* --- device addresses of samples ----------------------------------------- */

/* Extents without a device address. */
#define NOWHERE (FIEMAP_EXTENT_UNKNOWN | FIEMAP_EXTENT_DATA_INLINE)

static int address_of(int fd, uint64_t offset, uint64_t *ret)
{
	char room[sizeof(struct fiemap) + sizeof(struct fiemap_extent)]
		__attribute__((aligned(8))) = { 0 };
	struct fiemap *map = (struct fiemap *)room;
	const struct fiemap_extent *e = map->fm_extents;

	map->fm_start = offset;
	map->fm_length = 1;
	/* assigns addresses to data just written */
	map->fm_flags = FIEMAP_FLAG_SYNC;
	map->fm_extent_count = 1;
	if (ioctl(fd, FS_IOC_FIEMAP, map) < 0)
		return -errno;
	*ret = 0;
	if (map->fm_mapped_extents == 1 && !(e->fe_flags & NOWHERE))
		*ret = e->fe_physical + (offset - e->fe_logical);
	return 0;
}

static int sample_address(const struct dataset *d, size_t i, uint64_t *ret)
{
	_cleanup_close_ int fd = -1;
	struct stat st;

	if (d->container)
		return address_of(d->container_fd[d->container[i]],
				  d->offset[i], ret);
	fd = util_open_file(d->dirfd, dataset_path(d, i), 0, &st);
	/* the sample's own read reports this error */
	if (fd < 0)
		return 0;
	return address_of(fd, 0, ret);
}

/* The address of a file on a gpemu-fs mount. Needs no open: the mount would
 * count it. false: not on a mount, or its device has no addresses. */
static bool mount_place(const struct dataset *d, size_t i, uint64_t *ret)
{
	return mount_attribute(d, i, "user.gpemu.place", ret);
}

int extents_find(const struct dataset *d, uint64_t **ret, struct err *err)
{
	_cleanup_free_ uint64_t *address = calloc(d->n, sizeof(*address));
	bool on_mount;

	if (!address)
		return err_set(err, -ENOMEM, "out of memory");
	on_mount = d->n && mount_place(d, 0, &address[0]);
	for (size_t i = 0; i < d->n; i++) {
		int r = 0;

		if (!on_mount)
			r = sample_address(d, i, &address[i]);
		else /* on failure it stays 0; the read reports why */
			mount_place(d, i, &address[i]);
		if (r < 0)
			return err_set(err, -EOPNOTSUPP,
				       "%s: its file system does not say where "
				       "files lie (FIEMAP: %s)",
				       dataset_path(d, i), strerror(-r));
	}
	*ret = TAKE_PTR(address);
	return 0;
}

/* SPDX-License-Identifier: MIT */
#include "loader/dataset/extents.h"

#include <errno.h>
#include <linux/fiemap.h>
#include <linux/fs.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>

#include "common/util.h"
#include "loader/dataset/mount.h"

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

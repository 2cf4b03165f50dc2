/* SPDX-License-Identifier: MIT */
#include "loader/dataset/mount.h"

#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/system/control.h"
#include "common/system/future.h"
#include "common/system/importance.h"
#include "common/util.h"

/* Numbers written at once. arbitrary: 64 KiB on the stack */
enum { PIECE = 16 << 10 };

_Static_assert((int)MOUNT_MOST_ACCESSES == (int)FUTURE_MOST, "the same");

bool mount_foresees(const struct mount *m)
{
	json_auto_t *stats = mount_stats(m);

	return json_is_object(json_object_get(stats, "prefetch"));
}

static int put(const struct mount *m, int fd, const char *name,
	       const void *bytes, size_t n, struct err *err)
{
	const char *at = bytes;

	while (n > 0) {
		ssize_t put = write(fd, at, n);

		if (put < 0)
			return err_set(err, -errno, "%s/%s: %s", m->dir, name,
				       strerror(errno));
		at += put;
		n -= (size_t)put;
	}
	return 0;
}

int mount_announce(const struct mount *m, int fd, const uint32_t *inodes,
		   size_t n, struct err *err)
{
	uint32_t piece[PIECE];
	int r = 0;

	while (r == 0 && n > 0) {
		size_t k = MIN(n, PIECE);

		for (size_t i = 0; i < k; i++)
			piece[i] = htole32(inodes[i]);
		r = put(m, fd, FUTURE_FILE, piece, k * sizeof(piece[0]), err);
		inodes += k;
		n -= k;
	}
	return r;
}

int mount_open_future(const struct mount *m, const struct mount_future *f,
		      struct err *err)
{
	const uint32_t v[FUTURE_FIELDS] = {
		[FUTURE_VERSION] = FUTURE_IS_VERSION,
		[FUTURE_RANK] = f->rank,
		[FUTURE_WORLD] = f->world,
		[FUTURE_EPOCHS] = f->epochs,
		[FUTURE_FIRST] = f->first,
		[FUTURE_REST] = f->rest,
		[FUTURE_FLAGS] = f->continues ? FUTURE_CONTINUES : 0,
	};
	_cleanup_close_ int fd = control_open(m->dir, FUTURE_FILE, O_WRONLY);
	int r;

	if (fd < 0)
		return err_set(err, fd, "%s/" FUTURE_FILE ": %s", m->dir,
			       strerror(-fd));
	r = put(m, fd, FUTURE_FILE, FUTURE_MAGIC, strlen(FUTURE_MAGIC), err);
	if (r == 0)
		r = mount_announce(m, fd, v, FUTURE_FIELDS, err);
	return r < 0 ? r : TAKE_FD(fd);
}

bool mount_weighs(const struct mount *m)
{
	json_auto_t *stats = mount_stats(m);

	return json_is_true(json_object_get(stats, "uses_importance"));
}

int mount_weigh(const struct mount *m, const uint32_t *inodes,
		const float *importance, size_t n, struct err *err)
{
	_cleanup_close_ int fd =
		control_open(m->dir, IMPORTANCE_FILE, O_WRONLY);
	uint64_t piece[PIECE / 2];
	size_t k = 0;
	int r = 0;

	if (fd < 0)
		return err_set(err, fd, "%s/" IMPORTANCE_FILE ": %s", m->dir,
			       strerror(-fd));
	_Static_assert(sizeof(piece[0]) == IMPORTANCE_RECORD, "one record");
	for (size_t i = 0; r == 0 && i < n; i++) {
		if (inodes[i])
			importance_put((unsigned char *)&piece[k++], inodes[i],
				       importance[i]);
		if (k < ARRAY_SIZE(piece) && i + 1 < n)
			continue;
		r = put(m, fd, IMPORTANCE_FILE, piece, k * sizeof(piece[0]),
			err);
		k = 0;
	}
	return r;
}

uint32_t *mount_inodes(const struct mount *m, const struct dataset *d)
{
	uint32_t *ret = calloc(d->n, sizeof(*ret));
	struct stat root, st;

	if (!ret || stat(m->dir, &root) < 0)
		return ret;
	for (size_t i = 0; i < d->n; i++)
		if (fstatat(d->dirfd, dataset_path(d, i), &st, 0) == 0 &&
		    st.st_dev == root.st_dev && S_ISREG(st.st_mode))
			ret[i] = (uint32_t)st.st_ino;
	return ret;
}
